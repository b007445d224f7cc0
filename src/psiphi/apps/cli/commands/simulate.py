"""`psiphi simulate`."""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from psiphi._util.errors import Error
from psiphi.apps.cli.robot_argument import base_argument, load_case

LAWS = ("none", "hold", "pd", "computed")
MOTORS = ("actuated", "passive")
GAINS = {"kp": 100.0, "kd": 20.0}  # of pd and computed
ENDINGS = (".npz", ".csv", ".html")
DIVERGED = 3  # the exit code of a motion that diverged: it is written, and it is no motion

EXAMPLES = """\
examples:
  psiphi simulate ur5                                       falls for five seconds; writes ur5.npz and ur5.html
  psiphi simulate ur5 --controller hold --q0 0,-1,1,0,0,0   stands still
  psiphi simulate panda --random --seed 3 --damping         from a random state, with the joints' damping
  psiphi simulate arm.urdf --base free --duration 2 -o fall.csv -o fall.html
  psiphi simulate ur5 --random --batch 1000 --dt 2e-3       a thousand motions at once
  psiphi simulate two_arms                                  a bundled scene: two arms carry a box
  psiphi simulate my_scene.toml --method lie                a scene of your own

A scene is a small TOML file: [robots.NAME], [object], [[grasps]], [[loops]], [controller]; docs/viewer.md lists its keys, and
two_arms and four_bar come with psiphi. Files: .npz and .csv hold every number, .html is a page with the animation.
A floating base has no motor: controllers do not push on it, unless --passive '' or --actuated says so.
Methods: euler, implicit, midpoint, rk4, lie, or SciPy's DOP853, RK45, Radau, LSODA with steps of their own.
Exit code 3: the motion diverged; what was written ends there.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        metavar="SCENE|ROBOT",
        help="a scene (.toml or a bundled name), a bundled robot or a URDF file",
    )
    base_argument(parser)
    parser.add_argument(
        "--duration",
        type=float,
        metavar="S",
        help="seconds to simulate (default: 5, or the scene's)",
    )
    parser.add_argument(
        "--dt",
        type=float,
        metavar="S",
        help="time step in seconds (default: 0.001, or the scene's)",
    )
    parser.add_argument(
        "--method", help="euler, implicit, midpoint, rk4, lie, or a SciPy integrator (default: rk4)"
    )
    parser.add_argument(
        "--controller", choices=LAWS, help="what drives the joints (default: none, or the scene's)"
    )
    for name, about in (("kp", "stiffness"), ("kd", "damping")):
        parser.add_argument(
            f"--{name}", type=float, help=f"{about} of pd and computed (default: {GAINS[name]:g})"
        )
    motors = parser.add_mutually_exclusive_group()
    motors.add_argument(
        "--actuated",
        metavar="JOINTS",
        help="joints with motors, as a,b,... (default: all but floating bases)",
    )
    motors.add_argument(
        "--passive",
        metavar="JOINTS",
        help="joints without motors; '' for none: floating bases are driven too",
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--q0", metavar="NUMBERS", help="the configuration at the start, as 0,0.5,... (nq numbers)"
    )
    start.add_argument(
        "--random", action="store_true", help="a random configuration and velocity at the start"
    )
    parser.add_argument("--v0", metavar="NUMBERS", help="the velocity at the start (nv numbers)")
    parser.add_argument("--seed", type=int, help="of --random (default: 0)")
    parser.add_argument(
        "--batch", type=int, metavar="N", help="so many motions at once, with --random"
    )
    parser.add_argument("--damping", action="store_true", help="the joints' damping acts")
    parser.add_argument("--friction", action="store_true", help="the joints' friction acts")
    parser.add_argument("--springs", action="store_true", help="the joints' springs act")
    parser.add_argument(
        "--limits",
        choices=("ignore", "record", "stop", "block"),
        help="what joint limits do (default: ignore)",
    )
    parser.add_argument("--every", type=int, metavar="N", help="keep every Nth step (default: 1)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action="append",
        help="a result file; may be repeated (default: NAME.npz and NAME.html)",
    )
    parser.add_argument("--no-files", action="store_true", help="print the summary only")


def run(args: argparse.Namespace) -> int:
    """Simulate, sum up, write the files."""

    files = outputs(args)
    case = load_case(args.target, args.base, args.flexible)
    options = {
        name: getattr(args, name) for name in ("duration", "dt", "method", "limits", "every")
    }
    options = {
        "duration": 5.0,
        **case.options,
        **{name: value for name, value in options.items() if value is not None},
    }
    options |= {name: True for name in ("damping", "friction", "springs") if getattr(args, name)}
    options |= motors(args, case)
    options |= start(args, case, {name: options[name] for name in MOTORS if name in options})
    case.check(**options)
    files = files or defaults(args, case)
    for path in files:
        writable(path)
    from psiphi.simulation.simulate.progress_bar import ProgressBar

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with ProgressBar(options["duration"]) as bar:
            motion, failure = kept(case, options, bar)
    for warning in said:
        print(f"psiphi: {warning.message}", file=sys.stderr)
    print(motion.summary())
    for path in files:
        write(motion, path, case.title)
        print(f"wrote {path}")
    if failure is not None:
        raise failure
    return DIVERGED if any(event.name == "diverged" for event in motion.events) else 0


def kept(case, options: dict, bar) -> tuple[Any, BaseException | None]:
    """The motion; one that broke off, or was broken off, as far as it went, with what stopped it."""
    from psiphi.simulation.simulation_errors import Interrupted, SimulationError

    try:
        return case.run(**options, progress=bar), None
    except Interrupted as stopped:
        return stopped.trajectory, stopped
    except SimulationError as broken:
        if not broken.trajectory:
            raise
        return broken.trajectory, Error(
            broken.cause, "what is written above is the motion until then"
        )


def motors(args: argparse.Namespace, case) -> dict[str, list[str] | None]:
    """actuated or passive as the words say: these take the place of the scene's."""
    given = {
        name: words.split(",") if words else []
        for name in MOTORS
        if (words := getattr(args, name)) is not None
    }
    if given and hasattr(case.system, "assemble"):
        raise Error(
            f"--{next(iter(given))} is for robots",
            f"write {next(iter(given))} = [...] into the scene",
        )
    return {name: given.get(name) for name in MOTORS} if given else {}


def start(args: argparse.Namespace, case, motors: dict) -> dict:
    """q0, v0 and tau as the words say."""
    import numpy as np

    from psiphi.apps.scenes.scene_controllers import law

    system, out = case.system, {}
    if args.batch is not None and (args.batch < 1 or not args.random):
        raise Error(
            f"--batch {args.batch} needs --random and at least 1",
            "add --random: a batch of equal motions shows nothing",
        )
    size = () if args.batch is None else (args.batch,)
    if args.seed is not None and not args.random:
        raise Error(f"--seed {args.seed} needs --random", "add --random, or leave it out")
    if args.seed is not None and args.seed < 0:
        raise Error(
            f"--seed is {args.seed}, expected a whole number of at least 0", "give 0, 1, 2, ..."
        )
    if args.random:
        rng = np.random.default_rng(args.seed or 0)
        out = {"q0": system.random(rng, size), "v0": rng.uniform(-1.0, 1.0, (*size, system.nv))}
        if hasattr(system, "assemble"):
            raise Error(
                "--random does not close the loops of a scene", "write the start into the scene"
            )
    if args.q0 is not None:
        out["q0"] = numbers("--q0", args.q0, system.nq)
    if args.v0 is not None:
        out["v0"] = numbers("--v0", args.v0, system.nv)
    kp, kd = gains(args)
    if args.controller is not None:
        out["tau"] = law(args.controller, system, out.get("q0", case.q0), kp, kd, **motors)
    return out


def gains(args: argparse.Namespace) -> list[float]:
    """kp and kd as given, or as they are by default; refused where nothing would use them."""
    given = {name: value for name in GAINS if (value := getattr(args, name)) is not None}
    for name, value in given.items():
        if not 0.0 <= value < float("inf"):
            raise Error(
                f"--{name} is {value:g}, expected a finite number of at least 0",
                "leave it out for the default",
            )
        if args.controller not in ("pd", "computed"):
            raise Error(
                f"--{name} is of a controller, and none is named that has it",
                "add --controller pd, or computed",
            )
    return list((GAINS | given).values())


def numbers(option: str, text: str, size: int) -> list[float]:
    """'0, 0.5 1' as numbers.

    >>> numbers("--q0", "0,0.5 1", 3)
    [0.0, 0.5, 1.0]
    """
    try:
        values = [float(word) for word in re.split(r"[,;\s]+", text.strip("[]() ")) if word]
    except ValueError:
        raise Error(
            f"{option} is {text!r}, expected numbers",
            f"write {option}=0,0.5,... with {size} of them",
        ) from None
    if len(values) != size:
        raise Error(
            f"{option} has {len(values)} numbers, expected {size}",
            "psiphi info ROBOT lists the coordinates",
        )
    return values


def outputs(args: argparse.Namespace) -> list[Path]:
    """The files that were asked for, by their words: the disk is looked at later."""
    paths = [Path(name) for name in args.output or ()]
    if paths and args.no_files:
        raise Error("--no-files and -o contradict each other", "leave one of them out")
    for path in paths:
        if path.suffix.lower() not in ENDINGS:
            raise Error(
                f"{str(path)!r} ends in {path.suffix!r}, expected {', '.join(ENDINGS)}",
                "choose one of these endings",
            )
    return paths


def writable(path: Path) -> None:
    """Refuse a file that could not be written: once the words are understood, before anything is computed."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise Error(f"there is no folder {str(path.parent)!r}", "make it first, or write elsewhere")
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise Error(f"{str(path)!r} cannot be written", "check its permissions, or write elsewhere")


def defaults(args: argparse.Namespace, case) -> list[Path]:
    name = Path(args.target).stem or re.sub(r"\W+", "_", case.title)
    return [] if args.no_files else [Path(f"{name}.npz"), Path(f"{name}.html")]


def write(motion, path: Path, title: str) -> None:
    """One result file, by its ending."""
    from psiphi import viewer

    if path.suffix.lower() == ".html":
        viewer.html(motion, path, title=title)
    else:
        motion.save(path)
