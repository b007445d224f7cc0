"""`psiphi optimise`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psiphi._util.errors import Error
from psiphi.apps.cli.commands.simulate import (
    check_writable,
    output_paths,
    parse_numbers,
    random_start,
    write_motion,
)
from psiphi.apps.cli.robot_argument import is_scene

if TYPE_CHECKING:  # imported when a command runs: `psiphi --help` needs no NumPy
    from psiphi.apps.optimal_control.optimal_motion import OptimalMotion
    from psiphi.apps.scenes.scene_file import SceneSetup

PLOTS = (".svg", ".png", ".pdf")
ENDINGS = (".npz", ".csv", ".html", *PLOTS, ".c")
NOT_CONVERGED = 3  # exit code; the files are written

EXAMPLES = """\
examples:
  psiphi optimise swing_up.toml                    writes swing_up.npz and swing_up.html
  psiphi optimise swing_up.toml -o up.csv -o up.svg   a table, and a plot of q, v and torques
  psiphi optimise swing_up.toml --gains up.npz     also t, q, v, u and the gains K of the feedback
  psiphi optimise tool_path.toml -o ctrl/arm.c     [controller] kind = "mpc" as C: arm.h, arm.c and
                                                   arm_test.c in the folder ctrl
  psiphi optimise swing_up.toml --q0 0,3 --iterations 500
  psiphi optimise swing_up.toml --random --batch 100 --seed 1 --no-files
                                                   a hundred random starts at once

The scene has a table [optimal_control] with dt, steps, limits and costs; docs/viewer.md lists its
keys. The motion starts where the scene starts. psiphi simulate runs the same file: with
[controller] kind = "mpc" it solves the problem at every node.
Exit code 3: some problem has not converged; the files have the last iterate.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scene", metavar="SCENE", help="a scene with [optimal_control] (.toml)")
    parser.add_argument(
        "--iterations", type=int, metavar="N", help="at most N iterations (default: the scene's)"
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        metavar="X",
        help="relative gain of a step that counts as none (default: the scene's)",
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--q0", metavar="NUMBERS", help="initial configuration: 0,0.5,... (nq numbers)"
    )
    start.add_argument(
        "--random", action="store_true", help="random initial configuration and velocity"
    )
    parser.add_argument("--v0", metavar="NUMBERS", help="initial velocity (nv numbers)")
    parser.add_argument("--seed", type=int, help="seed of --random (default: 0)")
    parser.add_argument("--batch", type=int, metavar="N", help="number of problems, with --random")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action="append",
        help="a result file; may be repeated (default: NAME.npz and NAME.html)",
    )
    parser.add_argument(
        "--gains",
        metavar="FILE",
        help="write t, q, v, u and the gains K of u + K [log(q^-1 q'); v' - v] (.npz)",
    )
    parser.add_argument("--no-files", action="store_true", help="print the summary only")


def run(args: argparse.Namespace) -> int:
    """Solve the problem of a scene, print the summary and write the files."""
    files = output_files(args)
    if not is_scene(args.scene):
        raise Error(
            f"{args.scene!r} is no scene", "give a .toml file with [robots.NAME], [optimal_control]"
        )
    from psiphi import scenes

    scene = scenes.load(args.scene)
    options = start_and_options(args, scene)
    gains = gains_file(args)
    for path in [*files, *gains]:
        check_writable(path)
    sources = [path for path in files if path.suffix.lower() == ".c"]
    written = [controller_files(scene, options, path) for path in sources]
    found = solve(scene, options)
    print(found.summary())
    for path in [path for files in written for path in write_sources(files)]:
        print(f"wrote {path}")
    for path in [path for path in files if path not in sources]:
        if path.suffix.lower() in PLOTS:
            found.plot().savefig(path)
        else:
            write_motion(found.trajectory, path, scene.title)
        print(f"wrote {path}")
    for path in gains:
        write_gains(found, path)
        print(f"wrote {path}")
    if (words := not_converged(found)) is None:
        return 0
    print("psiphi: " + words[0], file=sys.stderr)
    print("hint: " + words[1], file=sys.stderr)
    return NOT_CONVERGED


def solve(scene: SceneSetup, options: dict[str, Any]) -> OptimalMotion:
    """The optimum, with a bar on a terminal."""
    from psiphi.apps.cli.solver_bar import SolverBar

    iterations = options.get("iterations")
    if iterations is None and scene.optimal_control is not None:
        iterations = scene.optimal_control.iterations
    with SolverBar(iterations or 1) as bar:
        return scene.optimise(**options, progress=bar.show)


def controller_files(scene: SceneSetup, options: dict[str, Any], path: Path) -> dict[Path, str]:
    """The C of the scene's controller, by path."""
    from psiphi.apps.optimal_control.receding_horizon import MPC

    if not isinstance(scene.tau, MPC):
        raise Error(
            f"{str(path)!r} is C of a controller, and the scene has no MPC",
            'add [controller] with kind = "mpc"',
        )
    start = [options.get(name, getattr(scene, name)) for name in ("q0", "v0")]
    texts = scene.tau.c_files(path.stem, *start)
    return {path.parent / name: text for name, text in texts.items()}


def write_sources(files: dict[Path, str]) -> list[Path]:
    """Write texts; their paths."""
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return list(files)


def start_and_options(args: argparse.Namespace, scene: SceneSetup) -> dict[str, Any]:
    """q0, v0, iterations and tolerance, as far as the arguments give them."""
    given = {name: getattr(args, name) for name in ("iterations", "tolerance")}
    options: dict[str, Any] = {name: x for name, x in given.items() if x is not None}
    options |= random_start(args, scene)
    for name, size in (("q0", scene.system.nq), ("v0", scene.system.nv)):
        if (text := getattr(args, name)) is not None:
            options[name] = parse_numbers(f"--{name}", text, size)
    return options


def output_files(args: argparse.Namespace) -> list[Path]:
    """The output files: those of -o, or NAME.npz and NAME.html. Only the names are checked."""
    paths = output_paths(args, ENDINGS)
    name = Path(args.scene).stem
    return paths if paths or args.no_files else [Path(f"{name}.npz"), Path(f"{name}.html")]


def gains_file(args: argparse.Namespace) -> list[Path]:
    """The file of --gains, if it is given."""
    if args.gains is None:
        return []
    if not args.gains.lower().endswith(".npz"):
        raise Error(f"--gains is {args.gains!r}, expected a name that ends in .npz", "add .npz")
    return [Path(args.gains)]


def write_gains(found: OptimalMotion, path: Path) -> None:
    """The feedback of the motion."""
    import numpy as np

    with path.open("wb") as file:
        np.savez(file, t=found.t, q=found.q, v=found.v, u=found.u, K=found.K)


def not_converged(found: OptimalMotion) -> tuple[str, str] | None:
    """A sentence and a hint about problems that have not converged; None if all have."""
    import numpy as np

    lost = ~np.atleast_1d(found.converged)
    if not lost.any():
        return None
    count, total = int(lost.sum()), lost.size
    which = "the problem has" if total == 1 else f"{count} of {total} problems have"
    iterations = int(np.max(np.atleast_1d(found.iterations)[lost]))
    residual = float(np.max(np.atleast_1d(found.residual)[lost]))
    words = f"{which} not converged after {iterations} iterations: the residual is {residual:.2g}"
    beyond = float(np.max(np.atleast_1d(found.violation)[lost]))
    if beyond > 0.0:
        words += f", and limits are passed by {beyond:.2g} (rad, m, rad/s or m/s)"
        return words, "check that the goal can be reached within the limits, or allow more steps"
    return words, "raise --iterations, change the weights, or start closer to the goal"
