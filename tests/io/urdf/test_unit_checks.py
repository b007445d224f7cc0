"""Files in millimetres, grams and kg mm^2, written from a sound robot, are warned of; the sound one
and real ones are not."""

import re

import pytest

from psiphi.io.urdf.urdf import load_urdf
from psiphi.model.diagnostics import ReaderWarning

ARM = """<robot name="arm"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="8.4"/>
  <inertia ixx="0.01" iyy="0.13" izz="0.13" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><geometry><box size="0.4 0.1 0.1"/></geometry></visual></link>
<link name="lower"><inertial><origin xyz="0.15 0 0"/><mass value="2.3"/>
  <inertia ixx="0.004" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><geometry><box size="0.3 0.1 0.1"/></geometry></visual></link>
<joint name="shoulder" type="continuous"><origin xyz="0 0 0.1"/><parent link="base"/>
  <child link="upper"/><axis xyz="0 1 0"/></joint>
<joint name="elbow" type="continuous"><origin xyz="0.42 0 0"/><parent link="upper"/>
  <child link="lower"/><axis xyz="0 1 0"/></joint>
</robot>"""


def scaled(tag, factor):
    """The file with all numbers of one kind of element in other units."""

    def element(found):
        number = lambda x: f'"{" ".join(str(float(w) * factor) for w in x[1].split())}"'  # noqa: E731
        return re.sub(r'"([-\d. ]+)"', number, found[0])

    return re.sub(rf"<{tag} [^>]*>", element, ARM)


def warned(text):
    return [line for line in load_urdf(text).report if isinstance(line, ReaderWarning)]


def test_a_sound_file_gets_no_warning():
    assert warned(ARM) == []


@pytest.mark.parametrize(
    ("tag", "factor", "words"),
    [
        ("origin", 1e3, "are they in millimetres?"),
        ("mass", 1e3, "are the masses in grams?"),
        ("inertia", 1e6, "inertias of upper, lower are those of bodies of tens of metres"),
    ],
)
def test_other_units(tag, factor, words):
    assert [words in line for line in warned(scaled(tag, factor))] == [True]


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ('xyz="0.42 0 0"', 'xyz="0.42 0 0" rpy="0 90 0"', 1),
        ('xyz="0.42 0 0"', 'xyz="0.42 0 0" rpy="0 0 -180"', 1),
        ('xyz="0.2 0 0"', 'xyz="0.2 0 0" rpy="45 0 0"', 1),
        ('xyz="0.42 0 0"', 'xyz="0.42 0 0" rpy="0 0 -6.2832"', 0),  # a turn
    ],
)
def test_angles_in_degrees(old, new, count):
    lines = warned(ARM.replace(old, new))
    assert ["in degrees?" in line for line in lines] == [True] * count


def test_a_forgotten_inertial():
    bare = re.sub(r"<inertial>.*?</inertial>", "", ARM[: ARM.index('<link name="lower"')], flags=16)
    rest = ARM[ARM.index('<link name="lower"') :]
    (line,) = warned(bare + rest)
    assert "upper: moving links with shapes, without mass: forgotten <inertial>?" in line


def test_zero_limits_of_some_joints():
    limit = '<limit lower="-1" upper="1" effort="0" velocity="0"/></joint>'
    text = ARM.replace("continuous", "revolute").replace("</joint>", limit)
    effort, velocity = warned(text)
    assert "effort limit 0 of shoulder, elbow" in effort and "velocity limit 0" in velocity
    assert len(warned(text.replace('type="revolute"', 'type="fixed"'))) == 0
