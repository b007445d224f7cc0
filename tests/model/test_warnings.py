"""What a reader repaired or doubts is one ModelWarning, at the caller's line, beside the report."""

import warnings

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.cli.main import main

ODD = '<inertia ixx="1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'
SOUND = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'


def urdf(inertia: str = SOUND, mimic: str = "", links: int = 1) -> str:
    """A star of links on one root."""
    parts = ['<robot name="r"><link name="root"/>']
    for k in range(links):
        parts.append(f'<link name="l{k}"><inertial><mass value="1"/>{inertia}</inertial></link>')
        limit = '<axis xyz="0 0 1"/><limit effort="1" velocity="1" lower="-1" upper="1"/>'
        ends = f'<parent link="root"/><child link="l{k}"/>'
        parts.append(f'<joint name="j{k}" type="revolute">{ends}{limit}{mimic}</joint>')
    return "".join([*parts, "</robot>"])


def said(text: str, **options) -> tuple[pp.Robot, list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        robot = pp.load(text, **options)
    return robot, heard


def test_a_sound_file_says_nothing():
    assert said(urdf())[1] == []
    assert said(urdf(links=2))[1] == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in pp.robots.bundled():
            pp.load(name)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (urdf(ODD), {}, "physically impossible"),
        (urdf(ODD), {"repair": "inertia"}, "repaired: principal moments"),
        (urdf(mimic='<mimic joint="nobody"/>'), {}, "mimic dropped: no joint 'nobody'"),
        (
            urdf().replace('lower="-1" upper="1"', 'lower="1" upper="-1"'),
            {"repair": "limits"},
            "exchanged",
        ),
        (urdf().replace('xyz="0 0 1"', 'xyz="0 0 0"'), {"repair": "axis"}, "was zero, now 1 0 0"),
    ],
)
def test_a_doubt_is_one_warning_at_the_callers_line(text, options, words):
    robot, (warning,) = said(text, **options)
    assert (
        warning.category is pp.ModelWarning
        and words in str(warning.message)
        and warning.filename == __file__
    )
    assert any(words in line for line in robot.report), "and it stands in the report"


def test_many_doubts_are_one_warning():
    robot, (warning,) = said(urdf(ODD, links=10))
    assert "; and 7 more (robot.report)" in str(warning.message)
    assert sum("impossible" in line for line in robot.report) == 10


def test_builders_warn_too():
    b = pp.Builder("odd")
    b.body("a", 1.0, (0, 0, 0), np.diag([1.0, 0.1, 0.1]))
    b.joint("j", "revolute", "world", "a")
    with pytest.warns(pp.ModelWarning, match="physically impossible"):
        b.build()


def test_what_is_only_noted_does_not_warn():
    robot, heard = said(urdf().replace("</robot>", "<gazebo/></robot>"))
    assert robot.report and not heard


def test_the_command_line_says_it_in_a_sentence(tmp_path, capsys):
    (tmp_path / "odd.urdf").write_text(urdf(ODD), encoding="utf-8")
    assert main(["view", str(tmp_path / "odd.urdf"), "--html", str(tmp_path / "odd.html")]) == 0
    heard = capsys.readouterr().err
    assert (
        heard.startswith("psiphi: ") and "physically impossible" in heard and "Warning" not in heard
    )
    assert main(["info", str(tmp_path / "odd.urdf")]) == 0
    shown = capsys.readouterr()
    assert "physically impossible" in shown.out and not shown.err
