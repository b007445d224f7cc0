"""`psiphi simulate`."""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psiphi._util.errors import Error
from psiphi.apps.cli.ground_arguments import ground_arguments, with_ground
from psiphi.apps.cli.robot_argument import base_argument, load_scene

if TYPE_CHECKING:  # imported when a command runs: `psiphi --help` needs no NumPy
    from psiphi._util.array_types import Numbers
    from psiphi.apps.scenes.scene_controllers import TorqueLaw
    from psiphi.apps.scenes.scene_file import SceneSetup
    from psiphi.simulation.simulate.progress_bar import ProgressBar
    from psiphi.simulation.trajectory.trajectory import Trajectory

LAWS = ("none", "hold", "pd", "computed", "stand")
MOTORS = ("actuated", "passive")
GAINS = {"kp": 100.0, "kd": 20.0}  # of pd and computed
ENDINGS = (".npz", ".csv", ".html")
DIVERGED = 3  # exit code of a motion that diverged; its files are written up to that time

EXAMPLES = """\
examples:
  psiphi simulate ur5                                 falls for 5 s; writes ur5.npz and ur5.html
  psiphi simulate ur5 --controller hold --q0 0,-1,1,0,0,0   stands still
  psiphi simulate panda --random --seed 3 --damping   from a random state, with joint damping
  psiphi simulate arm.urdf --base free --duration 2 -o fall.csv -o fall.html
  psiphi simulate ur5 --random --batch 1000 --dt 2e-3 a thousand motions at once
  psiphi simulate anymal_c --ground --controller stand    a quadruped on its feet
  psiphi simulate dog.urdf --base free --ground --ground-friction 0.5 --contacts '*_foot=0.02'
  psiphi simulate two_arms                            a bundled scene: two arms carry a box
  psiphi simulate my_scene.toml --method lie          a scene from a file

A scene is a small TOML file: [robots.NAME], [object], [[grasps]], [[loops]], [controller];
docs/viewer.md lists its keys, and two_arms and four_bar come with psiphi. Files: .npz and .csv
contain all samples, .html is a page with the animation.
--ground is a plane at z = 0 with friction; a robot without --q0 is placed on it. Its feet are
those of --contacts, else the robot's own or the collision shapes of its file.
A floating base has no motor: controllers apply no force to it, unless --passive '' or --actuated
says otherwise.
Methods: euler, implicit, midpoint, rk4, lie, or SciPy's DOP853, RK45, Radau, LSODA, which choose
their own steps.
Exit code 3: the motion diverged; the files end at that time.
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
        "--controller",
        choices=LAWS,
        help="controller of the joints (default: none, or the scene's)",
    )
    for name, about in (("kp", "stiffness"), ("kd", "damping")):
        parser.add_argument(
            f"--{name}",
            type=float,
            help=f"{about} of pd and computed (default: {GAINS[name]:g}), or of stand, in N m",
        )
    motors = parser.add_mutually_exclusive_group()
    motors.add_argument(
        "--actuated",
        metavar="JOINTS",
        help="joints with motors: a,b,... (default: all but floating bases)",
    )
    motors.add_argument(
        "--passive",
        metavar="JOINTS",
        help="joints without motors; '' for none, so that floating bases have motors too",
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
    parser.add_argument(
        "--batch", type=int, metavar="N", help="number of simultaneous motions, with --random"
    )
    parser.add_argument("--damping", action="store_true", help="apply joint damping")
    parser.add_argument("--friction", action="store_true", help="apply joint friction")
    parser.add_argument("--springs", action="store_true", help="apply joint springs")
    ground_arguments(parser)
    parser.add_argument(
        "--limits",
        choices=("ignore", "record", "stop", "block"),
        help="action at joint limits (default: ignore)",
    )
    parser.add_argument("--every", type=int, metavar="N", help="store every Nth step (default: 1)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action="append",
        help="a result file; may be repeated (default: NAME.npz and NAME.html)",
    )
    parser.add_argument("--no-files", action="store_true", help="print the summary only")


def run(args: argparse.Namespace) -> int:
    """Simulate, print the summary and write the files."""
    files = output_paths(args)
    scene = with_ground(args, load_scene(args.target, args.base, args.flexible))
    options = {
        name: getattr(args, name) for name in ("duration", "dt", "method", "limits", "every")
    }
    options = {
        "duration": 5.0,
        **scene.options,
        **{name: value for name, value in options.items() if value is not None},
    }
    options |= {name: True for name in ("damping", "friction", "springs") if getattr(args, name)}
    options |= motor_options(args, scene)
    options |= start_options(
        args, scene, {name: options[name] for name in MOTORS if name in options}
    )
    scene.check(**options)
    files = files or default_paths(args, scene)
    for path in files:
        check_writable(path)
    from psiphi.simulation.simulate.progress_bar import ProgressBar

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ProgressBar(options["duration"]) as bar:
            motion, failure = simulate_scene(scene, options, bar)
    for warning in caught:
        print(f"psiphi: {warning.message}", file=sys.stderr)
    print(motion.summary())
    for path in files:
        write_motion(motion, path, scene.title)
        print(f"wrote {path}")
    if failure is not None:
        raise failure
    return DIVERGED if any(event.name == "diverged" for event in motion.events) else 0


def simulate_scene(
    scene: SceneSetup, options: dict[str, Any], bar: ProgressBar
) -> tuple[Trajectory, BaseException | None]:
    """The motion and None, or its part before an error or an interrupt, with the exception."""
    from psiphi.simulation.simulation_errors import Interrupted, SimulationError

    try:
        return scene.run(**options, progress=bar), None
    except Interrupted as stopped:
        return stopped.trajectory, stopped
    except SimulationError as broken:
        if not broken.trajectory:
            raise
        return broken.trajectory, Error(broken.cause, "the files hold the motion up to this time")


def motor_options(args: argparse.Namespace, scene: SceneSetup) -> dict[str, list[str] | None]:
    """--actuated or --passive as options of the simulation; they replace those of the scene."""
    joints = {
        name: text.split(",") if text else []
        for name in MOTORS
        if (text := getattr(args, name)) is not None
    }
    if joints and hasattr(scene.system, "assemble"):
        raise Error(
            f"--{next(iter(joints))} is for robots",
            f"write {next(iter(joints))} = [...] into the scene file",
        )
    return {name: joints.get(name) for name in MOTORS} if joints else {}


def start_options(
    args: argparse.Namespace, scene: SceneSetup, motors: dict[str, Any]
) -> dict[str, Any]:
    """q0, v0 and tau from the command-line arguments."""
    from psiphi.apps.scenes.scene_controllers import law

    system, out = scene.system, random_start(args, scene)
    if args.q0 is not None:
        out["q0"] = parse_numbers("--q0", args.q0, system.nq)
    if args.v0 is not None:
        out["v0"] = parse_numbers("--v0", args.v0, system.nv)
    kp, kd = gains(args)
    if scene.on_ground and args.q0 is None and "q0" in out:
        out["q0"] = system.on_ground(out["q0"], scene.options["contacts"])
    start = out.get("q0", scene.q0)
    if args.controller == "stand":
        out["tau"] = stand(args, scene, start, motors)
    elif args.controller is not None:
        out["tau"] = law(args.controller, system, start, kp, kd, **motors)
    return out


def random_start(args: argparse.Namespace, scene: SceneSetup) -> dict[str, Any]:
    """q0 and v0 of --random, --batch and --seed; nothing without --random."""
    import numpy as np

    system, out = scene.system, {}
    if args.batch is not None and (args.batch < 1 or not args.random):
        raise Error(
            f"--batch {args.batch} needs --random and at least 1",
            "add --random: without it all motions are equal",
        )
    size = () if args.batch is None else (args.batch,)
    if args.seed is not None and not args.random:
        raise Error(f"--seed {args.seed} needs --random", "add --random, or omit --seed")
    if args.seed is not None and args.seed < 0:
        raise Error(f"--seed is {args.seed}, expected a nonnegative integer", "pass 0, 1, 2, ...")
    if args.random:
        rng = np.random.default_rng(args.seed or 0)
        out = {"q0": system.random(rng, size), "v0": rng.uniform(-1.0, 1.0, (*size, system.nv))}
        if hasattr(system, "assemble"):
            raise Error(
                "--random does not close the loops of a scene",
                "write the start into the scene file",
            )
    return out


def stand(
    args: argparse.Namespace, scene: SceneSetup, start: Numbers, motors: dict[str, Any]
) -> TorqueLaw:
    """The controller of a robot on its feet."""
    import numpy as np

    from psiphi.apps.scenes.scene_controllers import standing_law

    if hasattr(scene.system, "assemble"):
        raise Error("--controller stand is for robots", "use hold, pd or computed")
    return standing_law(scene.system, np.asarray(start, float), args.kp, args.kd, **motors)


def gains(args: argparse.Namespace) -> list[float]:
    """kp and kd, or their defaults. Raises an Error if the controller has no gains."""
    values = {name: value for name in GAINS if (value := getattr(args, name)) is not None}
    for name, value in values.items():
        if not 0.0 <= value < float("inf"):
            raise Error(
                f"--{name} is {value:g}, expected a finite number of at least 0",
                "omit it to use the default",
            )
        if args.controller not in ("pd", "computed", "stand"):
            raise Error(
                f"--{name} needs a controller with gains",
                "add --controller pd, computed or stand",
            )
    return list((GAINS | values).values())


def parse_numbers(option: str, text: str, size: int) -> list[float]:
    """The numbers of a text such as '0, 0.5 1'.

    >>> parse_numbers("--q0", "0,0.5 1", 3)
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


def output_paths(args: argparse.Namespace, endings: tuple[str, ...] = ENDINGS) -> list[Path]:
    """The output files of the arguments. Only the names are checked, not the disk."""
    paths = [Path(name) for name in args.output or ()]
    if paths and args.no_files:
        raise Error("--no-files and -o contradict each other", "omit one of them")
    for path in paths:
        if path.suffix.lower() not in endings:
            raise Error(
                f"{str(path)!r} ends in {path.suffix!r}, expected {', '.join(endings)}",
                "use one of these endings",
            )
    return paths


def check_writable(path: Path) -> None:
    """Raise an Error if a file cannot be written. Call it before the computation."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise Error(
            f"there is no folder {str(path.parent)!r}", "create it first, or use another path"
        )
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise Error(
            f"{str(path)!r} cannot be written", "check its permissions, or use another path"
        )


def default_paths(args: argparse.Namespace, scene: SceneSetup) -> list[Path]:
    """NAME.npz and NAME.html, or nothing with --no-files."""
    name = Path(args.target).stem or re.sub(r"\W+", "_", scene.title)
    return [] if args.no_files else [Path(f"{name}.npz"), Path(f"{name}.html")]


def write_motion(motion: Trajectory, path: Path, title: str) -> None:
    """Write one result file in the format of its ending."""
    from psiphi import viewer

    if path.suffix.lower() == ".html":
        viewer.html(motion, path, title=title)
    else:
        motion.save(path)
