"""Tables of the bundled robots, and generators of chains and trees.

In: TOML files, numbers of links. Out: a `Model`. Read `robot_tables.py` first.

    dh_tables.py     Arms in Denavit-Hartenberg rows
    generators.py    Models made to measure
    robot_tables.py  Robots kept as tables
    tree_tables.py   Robots of any shape
"""
