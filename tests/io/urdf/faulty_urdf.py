"""A corpus of faulty URDF: a sound robot, and what to write in place of a piece of it."""

HEAVY = (
    '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" '
    'izz="1"/></inertial>'
)

ROBOT = f"""<?xml version="1.0"?>
<robot name="sound">
  <link name="base"/>
  <link name="arm">
    <inertial>
      <origin xyz="0.1 0 0.3" rpy="0 0 0.2"/>
      <mass value="2.5"/>
      <inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.12" iyz="0" izz="0.08"/>
    </inertial>
    <visual>
      <origin xyz="0 0 0"/>
      <geometry><cylinder radius="0.1" length="0.5"/></geometry>
      <material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
    </visual>
    <collision><geometry><mesh filename="package://sound/arm.stl" scale="1 1 1"/></geometry></collision>
  </link>
  <link name="hand">{HEAVY}</link>
  <link name="finger">{HEAVY}</link>
  <link name="tool"><inertial><mass value="0.1"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
  <joint name="shoulder" type="revolute">
    <origin xyz="0 0 0.5" rpy="0 1.5 0"/>
    <parent link="base"/>
    <child link="arm"/>
    <axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" velocity="3" effort="80"/>
    <dynamics damping="0.1" friction="0.2"/>
  </joint>
  <joint name="wrist" type="continuous">
    <parent link="arm"/><child link="hand"/>
    <axis xyz="0 1 0"/>
    <mimic joint="shoulder" multiplier="2" offset="0.1"/>
  </joint>
  <joint name="grip" type="prismatic">
    <parent link="hand"/><child link="finger"/><axis xyz="1 0 0"/><limit lower="0" upper="0.1" velocity="1" effort="1"/>
  </joint>
  <joint name="weld" type="fixed"><parent link="finger"/><child link="tool"/></joint>
</robot>
"""  # noqa: E501


def apply(old: str, new: str) -> str:
    """The sound robot with the first `old` replaced by `new`."""
    assert old in ROBOT, old
    return ROBOT.replace(old, new, 1)


def meshed(filename: str) -> str:
    return apply("package://sound/arm.stl", filename)


MASS, AXIS, XYZ, RPY = (
    '<mass value="2.5"/>',
    '<axis xyz="0 0 1"/>',
    'xyz="0 0 0.5"',
    'rpy="0 1.5 0"',
)
LIMIT, DYNAMICS, MIMIC = (
    'lower="-2" upper="2" velocity="3" effort="80"',
    'damping="0.1" friction="0.2"',
    '<mimic joint="shoulder"',
)
TENSOR, END = 'ixx="0.1" ixy="0.01" ixz="0" iyy="0.12" iyz="0" izz="0.08"', "</robot>"
GRIP = '<parent link="hand"/><child link="finger"/><axis xyz="1 0 0"/>'

BAD_NUMBERS = {
    "nan": "finite",
    "NaN": "finite",
    "inf": "finite",
    "-Infinity": "finite",
    "1e999": "finite",
    "abc": "expected a number",
    "1,5": "decimal point",
    "1 2 3": "expected a number",
    "": "empty",
    "  ": "empty",
    "0x10": "expected a number",
    "1_000": "expected a number",
    "１": "expected a number",
    "--1": "expected a number",
    "1.2.3": "expected a number",
    "1e": "expected a number",
    "True": "expected a number",
    "1kg": "expected a number",
    "2.5;": "expected a number",
    "1e60": "beyond",
    "${m}": "xacro",
    "$(arg m)": "xacro",
}
BAD_VECTORS = {
    "0 1": "3 numbers",
    "0 0 1 0": "3 numbers",
    "a b c": "3 numbers",
    "0,0,1": "decimal point",
    "nan 0 1": "finite",
    "0 0 inf": "finite",
    "": "empty",
    "0;0;1": "3 numbers",
    "[0 0 1]": "3 numbers",
}


def link(name: str, inside: str = HEAVY) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, kind: str = "continuous", inside: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child '
        f'link="{child}"/>{inside}</joint>'
    )


POINT = (
    '<inertial><origin xyz="1 0 0"/><mass value="1"/><inertia ixx="0" ixy="0" '
    'ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'
)
NOTHING = (
    '<inertial><mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" '
    'izz="0"/></inertial>'
)

# (name, what to replace, by what, words that the message has; "D:" marks a SingularError)
FAULTY: list[tuple[str, str, str, str]] = [
    *(
        (f"mass {text!r}", MASS, f'<mass value="{text}"/>', words)
        for text, words in BAD_NUMBERS.items()
    ),
    *(
        (f"axis {text!r}", AXIS, f'<axis xyz="{text}"/>', words)
        for text, words in BAD_VECTORS.items()
    ),
    *((f"origin xyz {text!r}", XYZ, f'xyz="{text}"', words) for text, words in BAD_VECTORS.items()),
    *((f"origin rpy {text!r}", RPY, f'rpy="{text}"', words) for text, words in BAD_VECTORS.items()),
    ("axis zero", AXIS, '<axis xyz="0 0 0"/>', "axis is zero"),
    ("axis without xyz", AXIS, "<axis/>", "no attribute 'xyz'"),
    ("axis misspelt", AXIS, '<axis xzy="0 0 1"/>', "did you mean 'xyz'"),
    ("quaternion zero", RPY, 'quat_xyzw="0 0 0 0"', "length 0"),
    ("quaternion and rpy", RPY, RPY + ' quat_xyzw="0 0 0 1"', "both"),
    ("mass negative", MASS, '<mass value="-1"/>', "mass is -1 kg"),
    ("mass as text", MASS, "<mass>2.5</mass>", 'write <mass value="...">'),
    ("mass misspelt", MASS, '<mass massvalue="2.5"/>', "'massvalue'"),
    ("mass capital", MASS, '<Mass value="2.5"/>', "did you mean <mass>"),
    ("mass twice", MASS, MASS + MASS, "a second <mass>"),
    ("mass missing", MASS, "", "has no <mass>"),
    ("inertia missing", f"<inertia {TENSOR}/>", "", "has no <inertia>"),
    ("inertia without izz", ' izz="0.08"', "", "no attribute 'izz'"),
    ("inertia with units", TENSOR, TENSOR.replace("0.08", "0.08kgm2"), "expected a number"),
    ("inertia nan", TENSOR, TENSOR.replace("0.08", "nan"), "finite"),
    ("inertia negative", TENSOR, TENSOR.replace("0.08", "-0.08"), "principal moments"),
    ("inertia all negative", TENSOR, TENSOR.replace('="0.', '="-0.'), "expected 0 or more"),
    ("inertia indefinite", TENSOR, TENSOR.replace("0.01", "5"), "principal moments"),
    ("limits reversed", LIMIT, LIMIT.replace("-2", "4"), "above upper limit"),
    ("limit nan", LIMIT, LIMIT.replace("-2", "nan"), "finite"),
    ("limit inf", LIMIT, LIMIT.replace("-2", "-inf"), "omit a limit"),
    ("limit text", LIMIT, LIMIT.replace("-2", "low"), "expected a number"),
    ("limit velocity negative", LIMIT, LIMIT.replace("3", "-3"), "velocity limit is -3.0"),
    ("limit effort negative", LIMIT, LIMIT.replace("80", "-80"), "effort limit is -80.0"),
    ("limit misspelt", LIMIT, LIMIT.replace("lower", "lowr"), "did you mean 'lower'"),
    ("limits twice", f"<limit {LIMIT}/>", f"<limit {LIMIT}/><limit {LIMIT}/>", "a second <limit>"),
    ("damping negative", DYNAMICS, 'damping="-0.1"', "damping is -0.1"),
    ("damping nan", DYNAMICS, 'damping="nan"', "finite"),
    ("friction negative", DYNAMICS, 'friction="-0.1"', "friction is -0.1"),
    ("armature negative", DYNAMICS, 'armature="-1"', "armature is -1"),
    ("mimic itself", MIMIC, '<mimic joint="wrist"', "cycle"),
    ("mimic cycle", "<dynamics", '<mimic joint="wrist"/><dynamics', "cycle"),
    ("mimic without joint", MIMIC, "<mimic", "no attribute 'joint'"),
    ("mimic multiplier", 'multiplier="2"', 'multiplier="two"', "expected a number"),
    ("link twice", END, link("arm") + END, "already a link"),
    ("joint twice", END, link("more") + joint("wrist", "hand", "more") + END, "already a joint"),
    ("two roots", END, link("loose") + END, "2 roots"),
    ("closed loop", END, joint("loop", "base", "finger") + END, "closed loop"),
    (
        "circle beside the tree",
        END,
        link("x") + link("y") + joint("a", "x", "y") + joint("b", "y", "x") + END,
        "cycle",
    ),
    (
        "circle alone",
        '<link name="base"/>',
        '<link name="base"/>' + joint("back", "tool", "base"),
        "cycle",
    ),
    ("joint on itself", END, link("x") + joint("a", "x", "x") + END, "same link"),
    ("parent unknown", '<parent link="base"/>', '<parent link="bse"/>', "did you mean 'base'"),
    ("parent world not declared", '<parent link="base"/>', '<parent link="world"/>', "not a link"),
    ("child unknown", '<child link="arm"/>', '<child link="leg"/>', "'leg' is not a link"),
    ("parent missing", '<parent link="base"/>', "", "has no <parent>"),
    ("child missing", '<child link="arm"/>', "", "has no <child>"),
    ("parent empty", '<parent link="base"/>', '<parent link=""/>', "empty"),
    (
        "parent twice",
        '<parent link="base"/>',
        '<parent link="base"/><parent link="hand"/>',
        "a second <parent>",
    ),
    ("joint without name", 'name="shoulder" ', "", "no attribute 'name'"),
    ("joint without type", ' type="revolute"', "", "no attribute 'type'"),
    ("joint type unknown", 'type="revolute"', 'type="hinge"', "no joint type 'hinge'"),
    ("joint type capital", 'type="revolute"', 'type="Revolute"', "did you mean 'revolute'"),
    ("link without name", '<link name="base"/>', "<link/>", "no attribute 'name'"),
    ("link name empty", '<link name="base"/>', '<link name=" "/>', "empty"),
    ("link misspelt", '<link name="base"/>', '<lnk name="base"/>', "did you mean <link>"),
    ("origin misspelt", f"<origin {XYZ}", f"<orgin {XYZ}", "did you mean <origin>"),
    ("origin twice", f"<origin {XYZ}", f"<origin/><origin {XYZ}", "a second <origin>"),
    (
        "inertial misspelt",
        f'<link name="hand">{HEAVY}',
        f'<link name="hand">{HEAVY.replace("inertial", "inertail")}',
        "<inertial>",
    ),
    (
        "inertial twice",
        f'<link name="hand">{HEAVY}',
        f'<link name="hand">{HEAVY}{HEAVY}',
        "a second <inertial>",
    ),
    ("dynamics misspelt", "<dynamics", "<dynamic", "did you mean <dynamics>"),
    ("damping misspelt", 'damping="0.1"', 'dampening="0.1"', "did you mean 'damping'"),
    ("xacro element", '<link name="base"/>', '<xacro:base name="base"/>', "run xacro first"),
    ("xacro name", '<link name="base"/>', '<link name="${prefix}base"/>', "run xacro first"),
    (
        "box with two sizes",
        '<cylinder radius="0.1" length="0.5"/>',
        '<box size="1 2"/>',
        "3 numbers",
    ),
    (
        "two shapes",
        '<cylinder radius="0.1" length="0.5"/>',
        '<box size="1 1 1"/><sphere radius="1"/>',
        "both",
    ),
    ("no shape", '<cylinder radius="0.1" length="0.5"/>', "", "no geometry"),
    (
        "color of the robot",
        END,
        '<material name="m"><color rgba="1 1 1"/></material>' + END,
        "4 numbers",
    ),
    (
        "sphere negative",
        '<cylinder radius="0.1" length="0.5"/>',
        '<sphere radius="-1"/>',
        "negative size",
    ),
    ("cylinder without radius", 'radius="0.1" ', "", "no attribute 'radius'"),
    ("mesh without filename", 'filename="package://sound/arm.stl" ', "", "no attribute 'filename'"),
    ("mesh scale", 'scale="1 1 1"', 'scale="big"', "3 numbers"),
    ("color", 'rgba="0.5 0.5 0.5 1"', 'rgba="red"', "4 numbers"),
    (
        "visual without geometry",
        '<geometry><cylinder radius="0.1" length="0.5"/></geometry>',
        "",
        "no geometry",
    ),
    ("visual origin nan", '<origin xyz="0 0 0"/>', '<origin xyz="0 0 nan"/>', "finite"),
    (
        "no inertial at the tip",
        END,
        '<link name="x"/>' + joint("a", "hand", "x") + END,
        "D:joint 'a'",
    ),
    (
        "no mass at the tip",
        END,
        link("x", NOTHING) + joint("a", "hand", "x") + END,
        "D:mass or inertia",
    ),
    (
        "massless chain",
        END,
        '<link name="x"/><link name="y"/>' + joint("a", "hand", "x") + joint("b", "x", "y") + END,
        "D:joint 'a'",
    ),
    (
        "point mass on the axis",
        END,
        link("x", POINT) + joint("a", "hand", "x") + END,
        "D:joint 'a'",
    ),
    (
        "point mass on a ball",
        END,
        link("x", POINT) + joint("a", "hand", "x", "ball") + END,
        "D:not positive definite",
    ),
    (
        "point mass floating",
        END,
        link("x", POINT) + joint("a", "hand", "x", "floating") + END,
        "D:not positive definite",
    ),
    (
        "same axis twice",
        END,
        '<link name="x"/>' + link("y") + joint("a", "hand", "x") + joint("b", "x", "y") + END,
        "D:joint 'a'",
    ),
    (
        "same slide twice",
        END,
        '<link name="x"/>'
        + link("y")
        + joint("a", "hand", "x", "prismatic")
        + joint("b", "x", "y", "prismatic")
        + END,
        "D:joint 'a'",
    ),
]

# accepted, with a line in the report: (name, what to replace, by what, words of the line)
REPORTED: list[tuple[str, str, str, str]] = [
    ("triangle inequality", TENSOR, TENSOR.replace("0.08", "0.5"), "physically impossible"),
    (
        "inertia of a welded link",
        'value="0.1"/><inertia ixx="0" ixy="0"',
        'value="0.1"/><inertia ixx="0" ixy="1e-3"',
        "one is negative",
    ),
    ("mass but no inertia", MASS, '<mass value="0"/>', "but no mass"),
    (
        "no inertial",
        f'<link name="hand">{HEAVY}</link>',
        '<link name="hand"/>',
        "neither mass nor inertia",
    ),
    ("axis not unit", AXIS, '<axis xyz="0 0 2"/>', "normalized"),
    ("mimic of nobody", MIMIC, '<mimic joint="sholder"', "did you mean 'shoulder'"),
    ("mimic of a weld", MIMIC, '<mimic joint="weld"', "is fixed"),
    ("no limit", f"<limit {LIMIT}/>", "", "unlimited"),
    ("half a limit", LIMIT, 'lower="-2"', "an absent one is 0"),
    (
        "limit of a continuous joint",
        '<axis xyz="0 1 0"/>',
        '<limit lower="-1" upper="1"/>',
        "the joint is continuous",
    ),
    ("gazebo", END, "<gazebo/>" + END, "<gazebo> in <robot>"),
    (
        "safety controller",
        "<dynamics",
        '<safety_controller k_velocity="1"/><dynamics',
        "<safety_controller> in <joint>",
    ),
    ("foreign attribute", "<dynamics", '<dynamics mu_coulomb="1"', "'mu_coulomb' of <dynamics>"),
    ("stray text", END, "oops" + END, "text in <robot>"),
    ("no name", ' name="sound"', "", "no name"),
    ("joint called like a link", 'name="shoulder"', 'name="tool"', "has the name of link 'tool'"),
]

# refused, but repaired on request; the first word is the repair
REPAIRED: list[tuple[str, str, str, str]] = [
    ("inertia negative", TENSOR, TENSOR.replace("0.08", "-0.08"), "repaired: principal moments"),
    ("inertia indefinite", TENSOR, TENSOR.replace("0.01", "5"), "repaired: principal moments"),
    ("axis zero", AXIS, '<axis xyz="0 0 0"/>', "repaired: axis was zero"),
    ("limits reversed", LIMIT, LIMIT.replace("-2", "4"), "exchanged"),
    ("mimic circle", "<dynamics", '<mimic joint="wrist"/><dynamics', "mimic dropped"),
]
