"""Imports follow the order of the wings, and the names of files and folders say what is in them."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import psiphi
from tests.children import SRC, python

PACKAGE = SRC / "psiphi"
WINGS = (
    "_util",
    "model",
    "io",
    "algebra",
    "compiler",
    "backends",
    "functions",
    "robot",
    "simulation",
    "apps",
)
AS_USERS_DO = {"apps/demo.py", "apps/cli"}  # `import psiphi`
HARD = {"numpy", "llvmlite"}
OPTIONAL = {"pinocchio", "mujoco", "matplotlib", "viser", "torch", "jax", "sympy", "casadi"}
OPTIONAL |= {"gymnasium"}
HEAVY = OPTIONAL | {"llvmlite", "scipy"}
MOST_FILES = 13  # in one folder
TYPES = "for types alone"


class Import(NamedTuple):
    """One imported module, by its absolute name; `lazy` inside a function, or where only a type
    checker looks."""

    name: str
    line: int
    lazy: bool


@cache
def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def folders() -> list[Path]:
    return sorted({file.parent for file in files()} - {PACKAGE})


def wing_of(file: Path) -> str:
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def label(file: Path) -> str:
    return str(file.relative_to(SRC))


def imports(tree: ast.Module, package: list[str]) -> Iterator[Import]:
    """Every import of a module that lives in `package` (a dotted name, split)."""
    stack: list[tuple[ast.AST, bool | str]] = [(tree, False)]
    while stack:
        node, lazy = stack.pop()
        for name in names(node, package):
            yield Import(
                name, node.lineno, bool(lazy) and not (lazy is TYPES and name.startswith("psiphi"))
            )
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            lazy = True
        elif (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            lazy = TYPES
        stack += [(child, lazy) for child in ast.iter_child_nodes(node)]


def names(node: ast.AST, package: list[str]) -> list[str]:
    """`from psiphi.model import urdf` -> psiphi.model.urdf; `from . import x` is resolved against
    `package`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    outer = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*outer, *([node.module] if node.module else [])])
    return [f"{module}.{alias.name}" for alias in node.names]


def imports_of(file: Path) -> list[Import]:
    return list(imports(parsed(file), list(file.relative_to(SRC).parent.parts)))


def complaint(place: str, entry: Import) -> str:
    """Why this import is wrong in this file; empty when it is right."""
    top, *rest = entry.name.split(".")
    lazy_is_right = (
        place.startswith("apps/cli") or top in OPTIONAL | {"llvmlite"} | sys.stdlib_module_names
    )
    if entry.lazy and not lazy_is_right:
        return f"{entry.name} is imported inside a function: move it to the top of the file"
    if top == "psiphi":
        return _order(place, rest[0] if rest else "")
    if not entry.lazy and top not in HARD | sys.stdlib_module_names:
        return f"{top} is not a hard dependency: import it inside the function that needs it"
    return ""


def _order(place: str, target: str) -> str:
    wing = place.partition("/")[0]
    if target not in WINGS:
        public = any(place.startswith(user) for user in AS_USERS_DO)
        return (
            "" if public else f"psiphi.{target} is public: import from the module that defines it"
        )
    if WINGS.index(target) > WINGS.index(wing):
        return f"{wing} comes before {target}, and imports from it"
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
        tree = parsed(file)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name, []).append(f"{label(file)}:{node.lineno}")
        for node in tree.body:  # Name = Callable[...], tuple[...], A | B
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
                names = [x.id for x in node.targets if isinstance(x, ast.Name)]
                aliases |= {
                    x: f"{label(file)}:{node.lineno}"
                    for x in names
                    if x[:1].isupper() and not x.isupper()
                }
    twice = {
        name: places for name, places in where.items() if len(places) > 1 and name not in GROWN
    }
    assert len(where) > 200 and not twice, f"one name, one meaning: {twice}"
    shadowed = {name: (place, where[name]) for name, place in aliases.items() if name in where}
    assert len(aliases) > 50 and not shadowed, (
        f"names of types that are classes elsewhere: {shadowed}"
    )


VERBS = {"embed"}  # file names in -ing or -ed: `pp.embed` is what users call
NOUNS = {"editing", "embedding", "rewriting", "path_timing"}  # folder names that are established


def test_names_are_nouns():
    """An engineer looks for `ik_solver.py`, not for `hunting.py`."""
    bare = {file.stem for file in files() if re.search(r"(ing|ed)$", file.stem)} - VERBS
    bare |= {folder.name for folder in folders() if re.search(r"(ing|ed)$", folder.name)} - NOUNS
    assert not bare, f"{sorted(bare)}: name what is in the file"


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_a_folder_says_what_it_is(folder):
    """What comes in, what goes out, which file to read first, and what each of its files is for."""
    said = ast.get_docstring(parsed(folder / "__init__.py")) or ""
    for words in (r"In:", r"Out:", r"Read\s`[^`]+`\sfirst"):
        assert re.search(words, said), f"{folder.name}/__init__.py does not say {words!r}"
    inside = [path.name for path in folder.glob("*.py") if path.stem not in SHARED]
    inside += [f"{path.name}/" for path in folder.iterdir() if (path / "__init__.py").exists()]
    unsaid = [name for name in inside if name not in said]
    assert not unsaid, f"{folder.name}/__init__.py does not say what {unsaid} are for"
    assert len([name for name in inside if name.endswith(".py")]) <= MOST_FILES


def test_the_package_is_its_wings():
    found = {path.name for path in PACKAGE.iterdir() if path.suffix != ".pyc"} - {"__pycache__"}
    assert found == {*WINGS, "__init__.py", "__main__.py", "py.typed"}
    assert max(len(folder.relative_to(PACKAGE).parts) for folder in folders()) <= 3


def test_tests_have_the_folders_of_the_package():
    """Beside folders of their own, for tests of all packages."""
    tests = SRC.parent / "tests"
    mirrored = [folder for wing in WINGS for folder in (tests / wing).rglob("*") if folder.is_dir()]
    below = {str(x.relative_to(tests)) for x in mirrored if x.name not in ("__pycache__", "golden")}
    own = {"robot/diagonalised"}  # tests of `robot/diagonal_dynamics.py`
    unknown = {name for name in below - own if not (PACKAGE / name).is_dir()}
    assert len(below) > 30 and not unknown, f"no folders of src/psiphi: {sorted(unknown)}"


@pytest.mark.parametrize("file", files(), ids=label)
def test_imports_follow_the_order(file):
    place = file.relative_to(PACKAGE).as_posix()
    if "/" not in place:
        return  # the package's own front may know every wing
    wrong = [
        f"{label(file)}:{entry.line}: {why}"
        for entry in imports_of(file)
        if (why := complaint(place, entry))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_is_imported_by_its_name_in_a_string():
    """`import_optional("psiphi....")` would hide an import from the order; methods of later wings
    are rows of `_LATE_METHODS`."""
    hidden = [
        label(file)
        for file in files()
        if re.search(r"import_optional\(\s*[\"']psiphi\.", file.read_text(encoding="utf-8"))
    ]
    assert not hidden


OTHERS_PRIVATE = {  # of other packages, which have no public name for it, and of named tuples
    *("_replace", "_asdict", "_fields", "_getframe", "_actions", "_SubParsersAction", "_Pointer"),
    *("_current_level", "_C", "_functorch", "_UFUNC_API", "_ARRAY_API"),
}


def private_uses(tree: ast.Module) -> list[str]:
    """The private names of psiphi that a module uses and does not define."""
    nodes = list(ast.walk(tree))
    own = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    own |= {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    used = [
        n.attr
        for n in nodes
        if isinstance(n, ast.Attribute)
        and not (isinstance(n.value, ast.Name) and n.value.id in ("self", "cls"))
    ]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("psiphi"):
            used += [alias.name for alias in node.names if alias.name != "_util"]
    private = [name for name in used if name.startswith("_") and not name.startswith("__")]
    return sorted(set(private) - own - OTHERS_PRIVATE)


def test_private_names_stay_in_their_file():
    example = "from psiphi.model.model import _digest\nrobot._call()\nself._own"
    assert private_uses(ast.parse(example)) == ["_call", "_digest"]
    found = {label(file): private_uses(parsed(file)) for file in files()}
    found = {place: names for place, names in found.items() if names}
    assert not found, f"give these a public name: {found}"


def test_few_parameters_are_typed_any():
    """At most one in forty; the rest have a type that says what to pass."""
    functions = [
        node
        for file in files()
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    parameters = [
        a
        for f in functions
        for a in (
            *f.args.posonlyargs,
            *f.args.args,
            *f.args.kwonlyargs,
            f.args.vararg,
            f.args.kwarg,
        )
        if a is not None
    ]
    loose = [a for a in parameters if a.annotation and ast.unparse(a.annotation) == "Any"]
    assert len(parameters) > 10_000 and len(loose) < len(parameters) / 40, len(loose)


def test_a_robot_has_four_bases():
    """The rest of its methods are functions of other modules that `robot.py` lists."""
    bases = [cls for cls in psiphi.Robot.__mro__[1:] if cls.__module__.startswith("psiphi")]
    assert len(bases) <= 4, bases


def test_methods_of_later_packages_are_declared():
    """Each row of the table names a class that declares the method, with the signature of the
    function."""
    for owner, methods in psiphi._LATE_METHODS.items():
        node, *more = [
            node
            for file in files()
            for node in parsed(file).body
            if isinstance(node, ast.ClassDef) and node.name == owner
        ]
        assert not more
        declared = {
            x.name: x
            for block in node.body
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for x in block.body
            if isinstance(x, ast.FunctionDef)
        }
        assert set(declared) == set(methods), (
            f"{owner} declares {sorted(declared)}, the table has {sorted(methods)}"
        )
        for name, place in methods.items():
            module, _, function = place.partition(":")
            path = PACKAGE / module.replace(".", "/")
            path = (
                path.with_suffix(".py")
                if path.with_suffix(".py").exists()
                else path / "__init__.py"
            )
            (found,) = (x for x in parsed(path).body if getattr(x, "name", "") == function)
            theirs, ours = found.args, declared[name].args
            assert ast.unparse(theirs).partition(",")[2] == ast.unparse(ours).partition(",")[2], (
                f"{owner}.{name}"
            )


@pytest.mark.parametrize(
    ("place", "line", "right"),
    [
        ("algebra/x.py", "from psiphi.model.spatial.screws import Screw", True),
        ("algebra/x.py", "from psiphi.compiler import passes", False),
        ("algebra/x.py", "from ..model import joint_types", True),
        ("algebra/x.py", "from ..compiler import lower", False),
        ("algebra/x.py", "from . import joints", True),
        ("algebra/x.py", "import psiphi", False),
        ("algebra/x.py", "from psiphi import load", False),
        ("algebra/x.py", "from psiphi._util import errors", True),
        ("algebra/x.py", "import mujoco", False),
        ("algebra/x.py", "def f():\n    import mujoco", True),
        ("algebra/x.py", "def f():\n    from psiphi._util import errors", False),
        ("algebra/x.py", "if True:\n    import scipy.linalg", False),
        ("algebra/x.py", "if TYPE_CHECKING:\n    import matplotlib.figure", True),
        ("algebra/x.py", "if TYPE_CHECKING:\n    import psiphi.apps.viewer", False),
        ("apps/demo.py", "import psiphi as pp", True),
        ("apps/cli/commands/info.py", "def f():\n    from psiphi.robot import robot", True),
    ],
)
def test_the_judge_itself(place, line, right):
    found = list(imports(ast.parse(line), ["psiphi", *place.split("/")[:-1]]))
    assert found
    assert right is not any(complaint(place, entry) for entry in found)


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
    assert "numpy" not in loaded_after(
        "import psiphi.apps.cli.main as cli\ncli.parser().format_help()"
    )


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("psiphi", "Reached", "IKResult"),
        ("psiphi.scenes", "Case", "SceneSetup"),
        ("psiphi.estimation", "Analogue", "RobotFilterModel"),
    ],
)
def test_old_public_names_warn(module, old, new):
    owner = psiphi if module == "psiphi" else getattr(psiphi, module.partition(".")[2])
    with pytest.warns(DeprecationWarning, match=rf"{module}.{old} is now {module}.{new}"):
        assert getattr(owner, old) is getattr(owner, new)
    assert old not in owner.__all__ and new in owner.__all__


def test_old_names_of_members_warn():
    tree = psiphi.estimation.LinearTree(
        [psiphi.estimation.Stage(-1, np.eye(1), np.eye(1), np.eye(1))]
    )
    with pytest.warns(DeprecationWarning, match=r"LinearTree.shaken is now LinearTree.perturbed"):
        assert tree.shaken.stages
    with pytest.warns(DeprecationWarning, match=r"LinearTree.own is now LinearTree.covariances"):
        assert np.array_equal(tree.own, tree.covariances)
    robot = psiphi.load("puma560")
    with pytest.warns(DeprecationWarning, match=r"Model.check_quaternions is now Robot.check_non"):
        assert robot.check_quaternions("f", np.zeros(6)).shape == (6,)
