"""Contact geometry: shapes on links, and the ground that they touch.

In: shapes and the frames they are on. Out: contact points, which the contact solver moves with the
robot. Read `contact_shapes.py` first.

    contact_shapes.py    `pp.Sphere`, `pp.Box`, ...: shapes as contact points
    contact_points.py    One contact point: a sphere, or the rim of a disc, on a frame
    contact_pairs.py     Two solids that can touch each other
    closest_points.py    Their closest points, without branches
    convex_hull.py       Points whose hull contains nearly all of a cloud
    contact_reader.py    `robot.with_contacts`: names and shapes to contact points
    contact_state.py     `ContactState`: forces, gaps, modes and residual of a step
    given_contacts.py    `pp.GivenContacts`: contacts that are found outside
    ground.py            `pp.Ground`: a plane or heights with friction, restitution and compliance
    height_field.py      How points and spheres touch heights
"""
