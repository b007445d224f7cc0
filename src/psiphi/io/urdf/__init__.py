"""URDF, URDF+ and SRDF: reader and writer.

In: a file. Out: a `Model`; `urdf_writer.py` writes URDF. Read `urdf.py` first.

    urdf.py          Reader of URDF: links, joints, limits, mimic joints
    urdf_plus.py     Loops and couplings of URDF+
    urdf_shapes.py   Visual and collision shapes
    urdf_schema.py   Elements and attributes of URDF, and the check for misspelled ones
    unit_checks.py   Numbers that look like other units, or forgotten
    xml_fields.py    Attributes of XML elements as numbers, names and placements
    xml_reader.py    Parser of untrusted XML, with line numbers and limits
    mesh_paths.py    Which folders a mesh may be in
    ros_packages.py  Search for installed ROS packages and robot descriptions
    srdf.py          Named postures from an SRDF file
    urdf_writer.py   Writer: a robot as URDF text
    xml_writer.py    XML elements as text
"""
