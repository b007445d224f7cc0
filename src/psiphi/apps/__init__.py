"""Applications built on the library.

In: robots, files, command-line arguments. Out: motions, pages, text. Read `demo.py` first.

    demo.py       `psiphi demo`: simulates a scene and writes a page
    ik/           Inverse kinematics
    path_timing/  Time-optimal motion along a path
    environments/ Environments for reinforcement learning
    optimal_control/  Motions of least cost, with their gains: `pp.OptimalControl`
    estimation/   Kalman filters and smoothers on the tree
    scenes/       Scene files: robots, objects, constraints, controllers
    studies/      Monte-Carlo studies: many motions with varied parameters
    viewer/       HTML pages, plots and the live viewer
    cli/          The command line
"""
