"""Imports point upstream only: a room uses the rooms before it, and optional packages only inside functions."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from children import SRC, python

ROOMS = [
    "escaping",
    "errors",
    "wording",
    "writing",
    "arguments",
    "optional",
    "figures",
    "spatial",
    "model",
    "flexible",
    "editing",
    "operators",
    "rewriting",
    "framing",
    "tape",
    "sweeps",
    "steps",
    "lowering",
    "emitters",
    "runtime",
    "foreign",
    "compiler",
    "catalogue",
    "functions",
    "symbols",
    "closed",
    "embedding",
    "exchange",
    "estimation",
    "identifying",
    "robots",
    "counting",
    "loading",
    "interop",
    "control",
    "motion",
    "rollouts",
    "reaching",
    "following",
    "simulation",
    "viewer",
    "scenes",
    "studies",
    "demo",
    "bench",
    "cli",
]
AT_THE_DOOR = {"demo", "bench", "cli"}  # use the library as its users do: `import psiphi`
HARD = {"numpy", "llvmlite"}
OPTIONAL = {"pinocchio", "mujoco", "matplotlib", "viser", "torch", "jax", "sympy", "casadi"}
HEAVY = OPTIONAL | {"llvmlite", "scipy"}
TYPES = "for types alone"
EXEMPT = {"__init__", "__main__"}  # the package's own front: may import every room


class Import(NamedTuple):
    """One imported module, by its absolute name; `lazy` inside a function, or where only a type checker looks."""

    name: str
    line: int
    lazy: bool


def files() -> list[Path]:
    return sorted((SRC / "psiphi").rglob("*.py"))


def room_of(file: Path) -> str:
    return file.relative_to(SRC / "psiphi").with_suffix("").parts[0]


def label(file: Path) -> str:
    return str(file.relative_to(SRC))


def imports(source: str, package: list[str]) -> Iterator[Import]:
    """Every import of a module that lives in `package` (a dotted name, split)."""
    stack: list[tuple[ast.AST, bool | str]] = [(ast.parse(source), False)]
    while stack:
        node, lazy = stack.pop()
        for name in names(node, package):
            yield Import(name, node.lineno, bool(lazy) and not (lazy is TYPES and name.startswith("psiphi")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            lazy = True
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            lazy = TYPES
        stack += [(child, lazy) for child in ast.iter_child_nodes(node)]


def names(node: ast.AST, package: list[str]) -> list[str]:
    """`from psiphi.model import urdf` -> psiphi.model.urdf; `from . import x` is resolved against `package`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    outer = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*outer, *([node.module] if node.module else [])])
    return [f"{module}.{alias.name}" for alias in node.names]


def imports_of(file: Path) -> list[Import]:
    return list(imports(file.read_text(encoding="utf-8"), list(file.relative_to(SRC).parent.parts)))


def complaint(room: str, entry: Import) -> str:
    """Why this import is wrong in this room; empty when it is right."""
    top, *rest = entry.name.split(".")
    if entry.lazy and room != "cli" and top not in OPTIONAL | {"llvmlite"} | sys.stdlib_module_names:
        return f"{entry.name} is imported inside a function: move it to the top of the file"
    if top == "psiphi":
        return _upstream(room, rest[0] if rest else "")
    if not entry.lazy and top not in HARD | sys.stdlib_module_names:
        return f"{top} is not a hard dependency: import it inside the function that needs it"
    return ""


def _upstream(room: str, target: str) -> str:
    if target not in ROOMS:
        return "" if room in AT_THE_DOOR else f"psiphi.{target} is the public door: import from the room that defines it"
    if ROOMS.index(target) > ROOMS.index(room):
        return f"{target} lies downstream of {room}"
    return ""


SHARED = {"__init__", "__main__"}
ALIKE = {"demo", "simulate", "study"}  # a command, and what it calls


def test_no_file_name_has_two_meanings():
    names = [file.stem for file in files()]
    twice = {name for name in names if names.count(name) > 1} - SHARED - ALIKE
    assert not twice, f"{sorted(twice)} are names of several files: say what each is"


GROWN = {"Builder"}  # the public one is the model's, and builds robots


def test_no_class_name_has_two_meanings():
    where: dict[str, list[str]] = {}
    aliases: dict[str, str] = {}
    for file in files():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name, []).append(f"{label(file)}:{node.lineno}")
        for node in tree.body:  # Name = Callable[...], tuple[...], A | B
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
                names = [x.id for x in node.targets if isinstance(x, ast.Name)]
                aliases |= {x: f"{label(file)}:{node.lineno}" for x in names if x[:1].isupper() and not x.isupper()}
    twice = {name: places for name, places in where.items() if len(places) > 1 and name not in GROWN}
    assert len(where) > 200 and not twice, f"one name, one meaning: {twice}"
    shadowed = {name: (place, where[name]) for name, place in aliases.items() if name in where}
    assert len(aliases) > 50 and not shadowed, f"names of types that are classes elsewhere: {shadowed}"


@pytest.mark.parametrize("room", [room for room in ROOMS if (SRC / "psiphi" / room).is_dir()])
def test_a_room_says_what_it_is(room):
    """What comes in, what goes out, which file to read first, and what each of its files is for."""
    said = ast.get_docstring(ast.parse((SRC / "psiphi" / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    for words in (r"Comes in:|In:", r"Goes out:|Out:", r"[Rr]ead\s(`[^`]+`|it)\sfirst"):
        assert re.search(words, said), f"{room}/__init__.py does not say {words!r}"
    unsaid = [file.name for file in (SRC / "psiphi" / room).glob("*.py") if file.stem not in EXEMPT and file.name not in said]
    assert not unsaid, f"{room}/__init__.py does not say what {unsaid} are for"


def test_every_room_has_its_place():
    strangers = {room_of(file) for file in files()} - set(ROOMS) - EXEMPT
    assert not strangers, f"give {sorted(strangers)} a place in ROOMS"


@pytest.mark.parametrize("file", files(), ids=label)
def test_imports_point_upstream(file):
    room = room_of(file)
    if room in EXEMPT:
        return
    wrong = [f"{label(file)}:{entry.line}: {why}" for entry in imports_of(file) if (why := complaint(room, entry))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("room", "line", "right"),
    [
        ("model", "from psiphi.spatial.screws import Screw", True),
        ("model", "from psiphi.sweeps import lower", False),
        ("model", "from ..spatial import screws", True),
        ("model", "from ..sweeps import lower", False),
        ("model", "from . import joints", True),
        ("model", "import psiphi", False),
        ("model", "from psiphi import load", False),
        ("model", "from psiphi import errors", True),
        ("model", "import mujoco", False),
        ("model", "def f():\n    import mujoco", True),
        ("model", "def f():\n    from psiphi import errors", False),
        ("model", "if True:\n    import scipy.linalg", False),
        ("model", "if TYPE_CHECKING:\n    import matplotlib.figure", True),
        ("model", "if TYPE_CHECKING:\n    import psiphi.viewer", False),
        ("demo", "import psiphi as pp", True),
        ("cli", "def f():\n    from psiphi import bench", True),
    ],
)
def test_the_judge_itself(room, line, right):
    found = list(imports(line, ["psiphi", room]))
    assert found
    assert right is not any(complaint(room, entry) for entry in found)


def loaded_after(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after running `code`."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    done = python("-c", script)
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_psiphi_is_light():
    assert not loaded_after("import psiphi") & HEAVY


def test_public_names_need_no_optional_package():
    touch = "import psiphi\nfor name in getattr(psiphi, '__all__', ()): getattr(psiphi, name)"
    assert not loaded_after(touch) & (HEAVY - {"llvmlite"})


def test_command_line_starts_without_numpy():
    assert "numpy" not in loaded_after("import psiphi.cli\npsiphi.cli.parser().format_help()")
