"""`psiphi demo`."""

from __future__ import annotations

import argparse

EXAMPLES = """\
examples:
  psiphi demo                          six seconds; writes psiphi-demo.html
  psiphi demo -o box.html --duration 3

Open the page in any browser: it needs no server and no network.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="psiphi-demo.html",
        help="the page to write (default: %(default)s)",
    )
    parser.add_argument(
        "--duration", type=float, metavar="S", help="seconds to simulate (default: 6)"
    )


def run(args: argparse.Namespace) -> int:
    """Simulate the demo scene and write its page."""
    from pathlib import Path

    from psiphi import scenes
    from psiphi.apps import demo
    from psiphi.apps.cli.commands.simulate import check_writable
    from psiphi.simulation.simulate.progress_bar import ProgressBar

    if args.duration is not None:
        scenes.load(demo.SCENE).check(duration=args.duration)
    check_writable(Path(args.output))
    return demo.main(args.output, args.duration, ProgressBar)
