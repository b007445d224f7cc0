"""Uses of the library.

In: robots, files, words. Out: motions, pages, text. Read `demo.py` first.

    cli/          The command line
    demo.py       `psiphi demo`
    estimation/   The estimation side of the algebra
    ik/           Inverse kinematics
    path_timing/  Paths in time
    scenes/       Scenes
    studies/      Many motions with numbers of their own
    viewer/       Robots and motions to look at
"""
