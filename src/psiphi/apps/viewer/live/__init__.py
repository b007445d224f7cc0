"""Live pages, and the viser viewer.

In: a robot, a scene or a motion. Out: a page in which the robot is simulated (`live_page.py`), or a
server for the browser (`viser_viewer.py`). Read `live_page.py` first.

    policy_page.py       a live page in which the policy of an environment moves the robot
    live_page.py         the HTML of a live page: data, compiled step, controls
    interactive_step.py  the simulation step of the page, with all user inputs as arguments
    live_controls.py     slider ranges and initial gains
    viser_viewer.py      the live viewer on a viser server
    viser_scene.py       solids, frames and plots as viser objects
    server_security.py   accepts requests and messages of the viewer's own page only
"""
