"""The tree in the link axes that cost least.

In: a `Model`. Out: a `Tree` of links. Read `link_axes.py` first.

    link_axes.py     the choice of link frames: `Tree`, `frame_tree`
    link.py          one body in working axes: the numbers that a local step reads
    axial_screws.py  placements of joints as products of axial screws
    cluster_axes.py  clusters of bodies as links of the tree (docs/embedding.md)
"""
