"""`psiphi study run | status | report`."""

from __future__ import annotations

import argparse

ACTIONS = ("run", "status", "report")

EXAMPLES = """\
examples:
  psiphi study run falls.toml                                all motions, on all cores, into falls.study
  psiphi study run falls.toml --scheduler tcp://head:8786    the same on a Dask cluster
  psiphi study status falls.toml                             how many are done
  psiphi study report falls.toml -o falls.html               distributions, quantiles, the worst motions, failures by cause

A study is a small TOML file: robot or scene, motions, seed, duration, dt, [start], [controller], [vary], [keep], [fail];
docs/studies.md lists its keys. A run that was killed goes on where it was; no motion is lost, and none computed twice.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        metavar="run|status|report",
        help="run it (or go on), ask how far it is, or write its page",
    )
    parser.add_argument("file", metavar="FILE", help="the study, a TOML file")
    parser.add_argument(
        "--out", metavar="DIR", help="the folder it is kept in (default: NAME.study)"
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="run: of a Dask cluster (default: the cores of this machine)",
    )
    parser.add_argument(
        "--cards",
        action="store_true",
        help="run: on graphics cards, of this machine or of the workers",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="report: the page (default: NAME.html)"
    )
    parser.add_argument(
        "--worst", type=int, metavar="N", help="report: how many motions have a page (default: 5)"
    )


def run(args: argparse.Namespace) -> int:
    """One of the three."""
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
            f"a study is not {args.action!r}",
            f"{nearest(args.action, ACTIONS)} psiphi study run {args.file}",
        )
    for name, action in (
        ("scheduler", "run"),
        ("cards", "run"),
        ("output", "report"),
        ("worst", "report"),
    ):
        if getattr(args, name) not in (None, False) and args.action != action:
            raise Error(f"--{name} is for psiphi study {action}", f"leave it out of {args.action}")
    asked = read_study(args.file, {})
    kept = StudyStore(Path(args.out) if args.out else default_folder(args.file), asked)
    if args.action == "run":
        run_study(asked, kept, args.scheduler, True, args.cards)
        print(Study(asked, kept).summary())
        print(f"kept in {kept.folder}")
        return 0
    kept.open()
    if args.action == "status":
        part = 100.0 * kept.motions / asked.motions
        print(
            f"{asked.title}: {kept.motions} of {asked.motions} motions are done ({part:.1f} %), in {kept.folder}"
        )
        return 0
    path = args.output or f"{Path(args.file).stem}.html"
    print(f"wrote {Study(asked, kept).report(path, worst=5 if args.worst is None else args.worst)}")
    return 0
