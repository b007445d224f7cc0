"""Beams, Craig-Bampton bodies and series-elastic joints.

In: material, section and modes. Out: links with mode shapes. Read `flexible_body.py` first.

    flexible_body.py   `pp.FlexibleBody`: a body with a few mode shapes
    beam.py            `pp.Beam`: uniform Euler-Bernoulli beams
    craig_bampton.py   Craig-Bampton reduction of mass and stiffness matrices
    lumped_masses.py   A few point masses that replace many
    modal_checks.py    Checks of the data of a flexible body
    modal_files.py     Flexible bodies in .npz and .json files
    flexible_link.py   A flexible body as links and joints of a builder
    modal_cluster.py   A flexible body as a cluster
    series_elastic.py  Joint springs and series-elastic joints
"""
