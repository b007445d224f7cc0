"""The drawing of docs/architecture.md: the packages of psiphi in the order in which data flows.

`tools/docs.py` writes it into docs/pictures/. The order is that of tests/test_wings.py.
"""

from __future__ import annotations

from typing import NamedTuple

from psiphi._util.escape import html

WIDTH, ROW, LEFT, BOX, GAP = 900, 58, 20, 150, 14


class Package(NamedTuple):
    """One row: the package, its input, its output, its colour."""

    name: str
    input: str
    output: str
    color: str


PACKAGES = (
    Package("model", "links, joints, loops", "Model: an immutable tree of bodies", "#4e79a7"),
    Package("io", "URDF, MJCF, models of MuJoCo and Pinocchio", "Model", "#4e79a7"),
    Package("algebra", "J @ mass.inv @ J.T", "Expression in normal form; a proof", "#59a14f"),
    Package("compiler", "equations of one robot", "sweeps, then tapes and loops", "#e15759"),
    Package(
        "backends", "tapes and loops", "code that runs (CPU, CUDA), or text (C, WASM)", "#e15759"
    ),
    Package(
        "functions",
        "code and arrays (NumPy, torch, JAX, Dask)",
        "results and derivatives",
        "#f28e2b",
    ),
    Package(
        "robot",
        "a Model, or the name of a file",
        "Robot, System: every quantity by name",
        "#f28e2b",
    ),
    Package(
        "simulation",
        "a Robot, a state, a controller",
        "Trajectory, rollouts with gradients",
        "#b07aa1",
    ),
    Package(
        "apps", "robots, targets, words", "IK, paths, studies, pages, the command line", "#b07aa1"
    ),
)


def drawing() -> str:
    """The picture as SVG: a row for each package, an arrow from one to the next."""
    height = ROW * len(PACKAGES) + 2 * GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
    parts = [
        f'{head} font-family="system-ui, sans-serif" font-size="14">',
        "<title>The packages of psiphi in the order in which data flows</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for i, package in enumerate(PACKAGES):
        parts += _row(package, GAP + i * ROW, last=i + 1 == len(PACKAGES))
    return "\n".join([*parts, "</svg>", ""])


def _row(package: Package, y: int, last: bool) -> list[str]:
    middle, inside = y + (ROW - GAP) // 2, ROW - GAP
    center, left, right = LEFT + BOX // 2, LEFT + BOX + 24, LEFT + BOX + 350
    text = f'y="{middle + 5}" fill="#1f2430"'
    lines = [
        f'<rect x="{LEFT}" y="{y}" width="{BOX}" height="{inside}" rx="7" fill="{package.color}"/>',
        f'<text x="{center}" y="{middle + 5}" text-anchor="middle" fill="#ffffff" '
        f'font-weight="600">{package.name}/</text>',
        f'<text x="{left}" {text}>{html(package.input)}</text>',
        f'<text x="{right - 26}" y="{middle + 5}" fill="#8a8f98">→</text>',
        f'<text x="{right}" {text}>{html(package.output)}</text>',
    ]
    if not last:
        tip = y + ROW
        lines.append(
            f'<path d="M{center} {y + inside}V{tip}" stroke="#8a8f98" stroke-width="1.5"/>'
            f'<path d="M{center - 4} {tip - 6}L{center} {tip}L{center + 4} {tip - 6}" fill="none" '
            f'stroke="#8a8f98" stroke-width="1.5"/>'
        )
    return lines
