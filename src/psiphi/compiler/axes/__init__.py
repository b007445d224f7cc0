"""The tree in the link axes that cost least.

In: a `Model`. Out: a `Tree` of links. Read `link_axes.py` first.

    axial_screws.py  Placements as products of axial screws
    cluster_axes.py  A cluster of bodies in their working axes, as a body with one joint
                     (docs/embedding.md)
    link.py          One body in its working axes
    link_axes.py     Frames as a gauge
"""
