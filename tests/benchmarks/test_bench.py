"""The benchmark itself: rows are data, a table that can be read, JSON that can be read back, peers
only when needed."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import Error
from psiphi.apps.cli.main import dispatch
from psiphi.robot.catalogue.catalogue import CATALOGUE
from psiphi_bench import example_robots, report, rows
from psiphi_bench.agreement import FUNCTIONS, errors, interpreted, two_frames
from psiphi_bench.peers import lazy_import
from psiphi_bench.peers.mujoco_peer import Mj
from psiphi_bench.peers.pinocchio_peer import Pin
from psiphi_bench.row import BenchmarkRow, Measurement, Size
from psiphi_bench.rows_of import fresh_process
from psiphi_bench.run import measure_rows, select_rows
from tests.children import python

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "benchmarks"


def row(measure, target: float | None = 2.0, **options) -> BenchmarkRow:
    return BenchmarkRow("test", "a test", target, "x", measure, **options)


def twice(size):
    yield Measurement("first", 1.0, "1 us", "3 us")
    yield Measurement("second", 3.0, note="a note")


def breaks(size):
    yield Measurement("first", 1.0)
    raise RuntimeError("the machine is on fire")


def test_rows_are_a_table():
    names = [row.name for row in rows.ROWS]
    assert len(set(names)) == len(names)
    assert all(row.text and callable(row.measure) for row in rows.ROWS)
    assert select_rows(None) == list(rows.ROWS)
    assert [row.name for row in select_rows(["warm", "fd"])] == ["fd", "warm"]
    with pytest.raises(Error, match=r"'speed'.*there are fd, id"):
        select_rows(["speed"])


@pytest.mark.parametrize(
    ("at_least", "figure", "passed"),
    [(True, 3, True), (True, 1, False), (False, 1, True), (False, 3, False)],
)
def test_targets(at_least, figure, passed):
    one = row(twice, at_least=at_least)
    assert one.passed(figure) is passed
    assert one.passed(float("nan")) is False
    assert one.target_text == (">= 2x" if at_least else "<= 2x")
    assert (
        row(twice, target=None).passed(figure) is None and row(twice, target=None).target_text == ""
    )


def test_lines_can_be_read():
    first, second = measure_rows([row(twice)], Size())
    assert report.line(first).split() == [
        "a",
        "test",
        "first",
        "1",
        "us",
        "3",
        "us",
        "1x",
        "<=",
        "2x",
        "pass",
    ]
    assert report.line(second).endswith("MISS\n    a note")
    assert (
        report.summary([first, second], 12.3)
        == "1 of 2 targets met, in 12 s\n  missed: a test, second"
    )


def test_a_row_that_fails_is_a_line_that_says_why():
    first, failed = measure_rows([row(breaks)], Size())
    assert first.passed and not failed.passed
    assert failed.measured.note == "RuntimeError: the machine is on fire"
    facts = json.loads(
        report.as_json(report.facts([first, failed], True, 1.0)), parse_constant=pytest.fail
    )
    assert facts["rows"][1]["figure"] is None
    assert "on fire" in "".join(report.markdown(facts))


def test_a_missing_peer_stops_the_run_and_names_the_extra():
    def needs(size):
        yield Measurement("first", lazy_import.LazyModule("no_such_peer").aba)

    with pytest.raises(Error, match=r"needs no_such_peer.*pip install '\.\[bench\]'"):
        list(measure_rows([row(needs)], Size()))


def test_the_run_writes_what_it_prints(tmp_path, capsys):
    bare = tmp_path / "bare.md"
    bare.write_text("no marks\n", encoding="utf-8")
    with pytest.raises(Error, match=r"bare.md: <!-- results --> followed by"):
        dispatch(["bench", "--quick", "--only", "flops-fd", "--table", str(bare)])
    assert not capsys.readouterr().out, "refused before anything is measured"
    table, data = tmp_path / "table.md", tmp_path / "results.json"
    table.write_text(f"before\n{report.START}\nold\n{report.END}\nafter\n", encoding="utf-8")
    assert (
        dispatch(
            [
                "bench",
                "--quick",
                "--only",
                "flops-fd",
                "--only",
                "flops-id",
                "--json",
                str(data),
                "--table",
                str(table),
            ]
        )
        == 0
    )
    printed, facts = capsys.readouterr().out, json.loads(data.read_text(encoding="utf-8"))
    assert "2 of 2 targets met" in printed and "379N - 587" in printed
    assert [one["name"] for one in facts["rows"]] == ["flops-fd", "flops-id"] and facts["quick"]
    assert all(one["passed"] for one in facts["rows"])
    text = table.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert "| 379N - 587 | 426N - 576 |" in text
    with pytest.raises(Error, match="is missing"):
        report.with_table("nothing here", facts)


def test_the_kept_results_are_whole():
    """benchmarks/: the table in the README is that of the JSON, and every row of the benchmark is
    there."""
    facts, readme = (
        json.loads((KEPT / "results.json").read_text(encoding="utf-8")),
        (KEPT / "README.md").read_text(encoding="utf-8"),
    )
    assert report.with_table(readme, facts) == readme
    assert {one["name"] for one in facts["rows"]} == {row.name for row in rows.ROWS}
    assert not facts["quick"]


def test_bench_does_not_import_the_peers():
    code = "import sys, psiphi_bench; print({'pinocchio', 'mujoco'} & set(sys.modules))"
    done = python("-c", code)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_every_function_of_the_issue_is_compared():
    wanted = (
        "forward_dynamics inverse_dynamics mass_matrix mass_matrix_inverse "
        "mass_matrix_factors bias gravity frame_pose"
    )
    wanted += " frame_velocity jacobian energy center_of_mass"
    assert {row.name for row in FUNCTIONS} == set(wanted.split()) <= set(CATALOGUE)


def test_a_wrong_answer_is_noticed():
    """The comparison is no rubber stamp: a body a millionth heavier shows."""
    robot = pp.robots.puma560()
    light, heavy = (pp.from_dh([{"mass": mass, "com": (0.5, 0, 0)}]) for mass in (1.0, 1.0 + 1e-6))
    assert max(error.value for error in errors(robot, Pin(robot), 5, interpreted)) < 1e-12
    wrong = {error.label: error.value for error in errors(light, Pin(heavy), 5, interpreted)}
    assert wrong["mass_matrix"] == pytest.approx(1e-6, rel=1e-3)
    assert wrong["forward_dynamics"] == pytest.approx(1e-6, rel=1e-3)


def test_frames_to_compare():
    assert two_frames(pp.load(example_robots.urdf("quadrotor_base"))), (
        "a robot without joints has frames on the world"
    )
    assert len(two_frames(pp.robots.chain(1))) == 1
    assert len(two_frames(pp.robots.chain(4))) == 2


def test_an_empty_cache_for_a_while(monkeypatch):
    for before in ("/somewhere", None):
        monkeypatch.delenv("PSIPHI_CACHE") if before is None else monkeypatch.setenv(
            "PSIPHI_CACHE", before
        )
        with fresh_process.empty_cache() as folder:
            assert os.environ["PSIPHI_CACHE"] == folder and not list(Path(folder).iterdir())
        assert os.environ.get("PSIPHI_CACHE") == before and not Path(folder).exists()


def test_a_first_call_and_a_second():
    with fresh_process.empty_cache():
        first, second = (fresh_process.first_call("pp.robots.puma560()") for _ in range(2))
    assert second["call"] < first["call"]
    assert first["total"] >= first["load"] + first["call"] and 1e7 < first["memory"] < 1e9
    with pytest.raises(RuntimeError, match="NameError"):
        fresh_process.first_call("no_such_name")


@pytest.mark.parametrize("peer", [Pin, Mj])
def test_wrenches_in_frame_axes(peer, rng):
    """The peers turn them as psiphi documents: a wrench along the frame's axes is its world self,
    turned back."""
    robot = pp.robots.chain(4)
    other, q, wrench = peer(robot), rng.standard_normal((3, 4)), rng.standard_normal((3, 6))
    R = robot.frame_pose(q, "tool")[:, :3, :3]
    in_world = np.concatenate(
        [np.einsum("kij,kj->ki", R, half) for half in (wrench[:, :3], wrench[:, 3:])], axis=1
    )
    zero = np.zeros((3, 4))
    ours = other.inverse_dynamics(q, zero, zero, f_ext={"tool": in_world})
    np.testing.assert_allclose(
        other.inverse_dynamics(q, zero, zero, f_ext={"tool": wrench}, axes="frame"),
        ours,
        atol=1e-12,
    )
