"""`psiphi bench`."""

from __future__ import annotations

import argparse
from pathlib import Path

from psiphi.bench import arguments
from psiphi.cli.simulate import writable

__all__ = ["EXAMPLES", "arguments", "run"]

EXAMPLES = """\
examples:
  psiphi bench --quick                   under a minute
  psiphi bench --json results.json       all rows, kept as JSON, too

The peers (Pinocchio, MuJoCo) come with: pip install 'psiphi[bench]'
"""


def run(args: argparse.Namespace) -> int:
    """Time psiphi beside its peers."""
    from psiphi.bench import run as bench

    bench.chosen(args.only)
    for path in (args.json, args.table):
        if path is not None:
            writable(Path(path))
    return bench.run(args)
