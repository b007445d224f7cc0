"""URDF, URDF+ and SRDF: reader and writer.

In: a file. Out: a `Model`. Read `urdf.py` first.

    mesh_paths.py    Where a mesh may lie
    ros_packages.py  Where robot descriptions are installed on this machine
    srdf.py          Named postures from an SRDF file
    urdf.py          URDF files into models
    urdf_plus.py     Loops and gears in URDF files (URDF+, Chignoli, Slotine, Wensing and Kim 2024
    urdf_schema.py   The words of URDF, one row an element
    urdf_shapes.py   Readers of the visual and collision shapes of a URDF link
    urdf_writer.py   A robot as URDF text
    xml_fields.py    Attributes of XML elements as numbers, names and places
    xml_reader.py    Untrusted XML into elements that know their line
    xml_writer.py    Elements of XML as text
"""
