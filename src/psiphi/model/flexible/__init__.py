"""Beams, Craig-Bampton bodies and series-elastic joints.

In: material, section and modes. Out: links with mode shapes. Read `flexible_body.py` first.

    beam.py            Uniform beams by Euler and Bernoulli
    craig_bampton.py   Craig and Bampton's shapes
    flexible_body.py   A body that bends by a few shapes
    flexible_link.py   A body that bends, and how a builder hangs it on a link
    lumped_masses.py   Few points of mass in place of many
    modal_checks.py    What the data of a flexible body must be
    modal_cluster.py   A body that bends, as a cluster
    modal_files.py     Flexible bodies in files
    series_elastic.py  Springs of joints as they are given, and series-elastic joints
"""
