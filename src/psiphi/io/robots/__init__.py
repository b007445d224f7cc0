"""Tables of the bundled robots, and generators of chains and trees.

In: TOML files, or a number of links. Out: a `Model`. Read `robot_tables.py` first.

    robot_tables.py  Reader of the bundled robots, `data/<robot>.toml`
    dh_tables.py     Tables of arms, as Denavit-Hartenberg rows
    tree_tables.py   Tables of other robots, as links and joints
    generators.py    Chains of any length and random trees
"""
