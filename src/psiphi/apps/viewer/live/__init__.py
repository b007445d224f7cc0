"""Live pages, and the viewer of viser.

In: a robot or a motion. Out: a page in which the robot runs; a server. Read `live_page.py` first.

    interactive_step.py  A step with everything a hand can change as an input
    live_controls.py     The numbers a live page begins with
    live_page.py         A live page
    server_security.py   Who may talk to the live viewer, and what they may say
    viser_scene.py       A scene's things in viser
    viser_viewer.py      The live viewer
"""
