"""One load of a messy file tells all its faults: in the error, and in `psiphi check`."""

import warnings

import pytest

import psiphi as pp
from psiphi.apps.cli import main as cli

INERTIAL = """<inertial><mass value="{mass}"/>
<inertia ixx="{ixx}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>"""
MESSY = f"""<robot name="messy">
<link name="base"/>
<link name="a">{INERTIAL.format(mass=-1, ixx=1)}</link>
<link name="b">{INERTIAL.format(mass="heavy", ixx=1)}</link>
<link name="c">{INERTIAL.format(mass=1, ixx=-9)}</link>
<link name="d"><inertail/></link>
<joint name="one" type="revolute"><parent link="base"/><child link="a"/>
  <limit lower="2" upper="-2"/></joint>
<joint name="two" type="revolut"><parent link="a"/><child link="b"/></joint>
<joint name="three" type="continuous"><parent link="b"/><child link="c"/>
  <axis xyz="0 0 0"/></joint>
<joint name="four" type="continuous"><parent link="c"/><child link="d"/>
  <axis xyz="0, 0, 1"/></joint>
</robot>"""
FAULTS = {
    "link 'a'": "mass is -1 kg",
    "link 'b'": "value of <mass> is 'heavy'",
    "link 'c'": "principal moments -9",
    "link 'd'": "unknown element <inertail>",
    "joint 'one'": "above upper limit",
    "joint 'two'": "no joint type 'revolut'",
    "joint 'three'": "axis is zero",
    "joint 'four'": "xyz of <axis> is '0, 0, 1'",
}


def test_a_load_tells_all_faults_with_their_lines():
    with pytest.raises(pp.ModelError) as caught:
        pp.load(MESSY)
    error = caught.value
    found = {fault.element: fault for fault in error.faults}
    assert found.keys() == FAULTS.keys() and len(error.faults) == len(FAULTS)
    for element, words in FAULTS.items():
        assert words in found[element].cause and found[element].remedy
        assert words in str(error)
    lines = [fault.line for fault in error.faults]
    assert lines == sorted(lines) and str(error).startswith("<text>: 8 faults: line 3, link 'a'")
    assert str(error).count("<text>") == 1


def test_faults_of_the_tree_come_with_those_of_links_and_alone():
    tree = MESSY.replace("-9", "9").replace("heavy", "1").replace("<inertail/>", "")
    tree = tree.replace('"revolut"', '"revolute"').replace("0 0 0", "0 0 1")
    tree = tree.replace("0, 0, 1", "1 0 0")
    tree = tree.replace('lower="2" upper="-2"', 'lower="-2" upper="2"')
    with pytest.raises(pp.ModelError, match="mass is -1 kg") as caught:
        pp.load(tree)
    assert caught.value.faults == (caught.value,)  # one fault is raised as it is
    lost = tree.replace('<parent link="b"/>', '<parent link="bb"/>')
    with pytest.raises(pp.ModelError) as caught:
        pp.load(lost.replace('<child link="b"/>', '<child link="x"/>'))
    assert [fault.element for fault in caught.value.faults][:3] == [
        "link 'a'",
        "joint 'two'",
        "joint 'three'",
    ]


def test_faults_of_all_kinds_are_told_at_once():
    """Elements that cannot be read still have names: others refer to them, or repeat them."""
    more = """<joint name="two" type="fixed"><parent link="a"/><child link="x"/></joint>
    <joint name="five" type="fixed"><parent link="d"/><child link="nobody"/></joint>
    <joint name="six" type="fixed"><parent link="base"/><child link="a"/></joint>
    <link name="b"/><link name="tail"><visual><origin rpy="90 0 0"/>
    <geometry><mesh filename="lost.stl"/></geometry></visual></link>
    <joint name="seven" type="fixed"><parent link="base"/><child link="tail"/>
    <origin xyz="0 0 900"/></joint></robot>"""
    with pytest.raises(pp.ModelError) as caught:
        pp.load(MESSY.replace("</robot>", more))
    found = [(fault.element, fault.cause) for fault in caught.value.faults]
    assert len(found) == len(FAULTS) + 4
    for element, words in (
        ("joint 'two'", "already a joint with this name"),
        ("joint 'five'", "its child 'nobody' is not a link"),
        ("joint 'six'", "already the child of joint 'one'"),
        ("link 'b'", "already a link with this name"),
    ):
        assert any(element == place and words in cause for place, cause in found), element
    report = "\n".join(caught.value.report)
    for words in ("in millimetres?", "in degrees?", "not found are drawn as boxes: 'lost.stl'"):
        assert words in report


def test_meshes_that_are_not_found_are_reported(tmp_path):
    file = tmp_path / "arm.urdf"
    names = ("package://nobody/a.stl", "b.stl", "here.stl", "package://nobody/a.stl")
    shapes = "".join(
        f'<visual><geometry><mesh filename="{name}"/></geometry></visual>' for name in names
    )
    file.write_text(
        f"""<robot name="arm"><link name="base"/><link name="a">{shapes}
        {INERTIAL.format(mass=1, ixx=1)}</link><joint name="hinge" type="continuous">
        <parent link="base"/><child link="a"/></joint></robot>""",
        encoding="utf-8",
    )
    (tmp_path / "here.stl").write_text("solid x\nendsolid x\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = pp.load(file)
    (line,) = robot.report
    assert "not found are drawn as boxes: 'package://nobody/a.stl', 'b.stl'; put them" in line
    assert robot.html(tmp_path / "arm.html").stat().st_size > 1000


def test_very_many_faults_end_the_reading():
    links = "".join(f'<link name="x{k}"><inertial/></link>' for k in range(3000))
    with pytest.raises(pp.ModelError, match=r"1001 faults.*and 991 more, in error\.faults"):
        pp.load(f"<robot name='r'>{links}</robot>")


def test_psiphi_check_lists_them(tmp_path, capsys):
    file = tmp_path / "messy.urdf"
    file.write_text(MESSY, encoding="utf-8")
    assert cli.main(["check", str(file)]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{file}: 8 faults\n  line 3, link 'a': mass is -1 kg")
    assert out.count(str(file)) == 1 and out.count("remedy:") == 8
    assert all(words in out for words in FAULTS.values())


def test_check_and_info_take_the_options_of_load(tmp_path, capsys):
    text = f"""<robot name="arm"><link name="base"/><link name="a">
    <visual><geometry><mesh filename="../../arm.stl"/></geometry></visual>
    <visual><geometry><mesh filename="../../arm.stl"/></geometry></visual>
    {INERTIAL.format(mass=1, ixx=-9)}</link><joint name="hinge" type="continuous">
    <parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint></robot>"""
    file = tmp_path / "arm.urdf"
    file.write_text(text, encoding="utf-8")
    assert cli.main(["check", str(file)]) == 1
    assert "1 fault" in capsys.readouterr().out
    assert cli.main(["check", str(file), "--repair", "inertia,limits"]) == 0
    out = capsys.readouterr().out
    assert "no faults" in out and out.count("arm.stl") == 1 and "repaired" in out
    assert "meshes outside the package are not read" in out and str(file) not in out
    words = ["--repair", "all", "--allow-outside", "--lock", "hin*"]
    assert cli.main(["info", str(file), *words]) == 0
    out = capsys.readouterr().out
    assert "nv=0" in out and "outside the package" not in out
    with pytest.warns(pp.ModelWarning, match="outside the package"):
        robot = pp.load(file, repair="inertia")
    assert robot.html(tmp_path / "arm.html").stat().st_size > 1000  # a box, or a stick figure


def test_a_warning_names_its_file_once(tmp_path):
    limit = '<limit lower="-90" upper="90" effort="0" velocity="0"/>'
    file = tmp_path / "arm.urdf"
    file.write_text(
        f"""<robot name="arm"><link name="base"/><link name="a">{INERTIAL.format(mass=1, ixx=3)}
        </link><joint name="hinge" type="revolute"><parent link="base"/><child link="a"/>{limit}
        </joint></robot>""",
        encoding="utf-8",
    )
    with pytest.warns(pp.ModelWarning) as caught:
        pp.load(file)
    text = str(caught[0].message)
    assert text.count(str(file)) == 1 and text.startswith(f"{file}:1: robot: effort limit 0")
    assert "; line 1: robot: velocity limit 0" in text and "; and 1 more" in text
