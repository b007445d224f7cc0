"""`psiphi study run | status | report`."""

from __future__ import annotations

import argparse

ACTIONS = ("run", "status", "report")

EXAMPLES = """\
examples:
  psiphi study run falls.toml                   all motions, on all cores, into falls.study
  psiphi study run falls.toml --scheduler tcp://head:8786
                                                the same on a Dask cluster
  psiphi study status falls.toml                number of finished motions
  psiphi study report falls.toml -o falls.html  distributions, quantiles, failures by cause, and
                                                the worst motions

A study is a small TOML file: robot or scene, motions, seed, duration, dt, [start], [controller],
[vary], [keep], [fail]; docs/studies.md lists its keys. A run that was killed resumes where it
stopped; no finished motion is lost or computed again.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        metavar="run|status|report",
        help="run or resume it, print its progress, or write its page",
    )
    parser.add_argument("file", metavar="FILE", help="the study, a TOML file")
    parser.add_argument("--out", metavar="DIR", help="folder of the results (default: NAME.study)")
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="run: address of a Dask cluster (default: the cores of this machine)",
    )
    parser.add_argument(
        "--cards",
        action="store_true",
        help="run: on the GPUs of this machine or of the workers",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="report: the page to write (default: NAME.html)"
    )
    parser.add_argument(
        "--worst",
        type=int,
        metavar="N",
        help="report: number of motions with their own page (default: 5)",
    )


def run(args: argparse.Namespace) -> int:
    """Run a study, print its progress, or write its report."""
    from pathlib import Path

    from psiphi._util.errors import Error
    from psiphi.apps.cli.terminal_text import nearest
    from psiphi.apps.studies.study import default_folder
    from psiphi.apps.studies.study import run as run_study
    from psiphi.apps.studies.study_config import read_study
    from psiphi.apps.studies.study_result import Study
    from psiphi.apps.studies.zarr_store import StudyStore

    if args.action not in ACTIONS:
        raise Error(
            f"there is no action {args.action!r}",
            f"{nearest(args.action, ACTIONS)} psiphi study run {args.file}",
        )
    for name, action in (
        ("scheduler", "run"),
        ("cards", "run"),
        ("output", "report"),
        ("worst", "report"),
    ):
        if getattr(args, name) not in (None, False) and args.action != action:
            raise Error(f"--{name} is for psiphi study {action}", f"omit it for {args.action}")
    config = read_study(args.file, {})
    store = StudyStore(Path(args.out) if args.out else default_folder(args.file), config)
    if args.action == "run":
        run_study(config, store, args.scheduler, True, args.cards)
        print(Study(config, store).summary())
        print(f"results in {store.folder}")
        return 0
    store.open()
    if args.action == "status":
        percent = 100.0 * store.motions / config.motions
        print(
            f"{config.title}: {store.motions} of {config.motions} motions are done "
            f"({percent:.1f} %), in {store.folder}"
        )
        return 0
    path = args.output or f"{Path(args.file).stem}.html"
    worst = 5 if args.worst is None else args.worst
    print(f"wrote {Study(config, store).report(path, worst=worst)}")
    return 0
