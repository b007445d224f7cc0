"""A hook of mkdocs that generates the live pages live/NAME.html of the bundled robots and scenes.

`python tools/live_pages.py FOLDER` writes them to a folder.
"""

from __future__ import annotations

import runpy
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from drawings import posture

import psiphi as pp
from psiphi.apps.viewer.live import live_page

STANDS = {  # joint angles of the robots that stand on a ground
    "anymal_c": {
        f"{leg}_{joint}": sign * angle
        for leg, sign in (("LF", 1.0), ("RF", 1.0), ("LH", -1.0), ("RH", -1.0))
        for joint, angle in (("HFE", 0.5), ("KFE", -1.0))
    },
    "g1": {
        f"{side}_{joint}": angle
        for side in ("left", "right")
        for joint, angle in (
            ("hip_pitch_joint", -0.1),
            ("knee_joint", 0.2),
            ("ankle_pitch_joint", -0.1),
            ("elbow_joint", 0.6),
        )
    },
}
TROT = "trot"  # the page of the policy that examples/train_walk.py learnt
ROOT = Path(__file__).parents[1]
STOP = 200.0  # N m/rad, of a joint beyond its limits on a ground


def pages(names: Iterable[str] | None = None) -> dict[str, str]:
    """{name: text} of these live pages (default: all)."""
    every = *pp.robots.bundled(), *pp.scenes.names(), TROT
    return {name: page(name) for name in names or every}


def page(name: str) -> str:
    """The live page of a robot or scene, or of the trot."""
    if name == TROT:
        return trot()
    if name in pp.scenes.names():
        return live_page.live_html(pp.scenes.load(name))
    robot, title = pp.load(name), pp.robots.source(name)["title"]
    if name in STANDS:
        robot, ground = with_stops(robot.with_contacts("collision")), pp.Ground()
        q = robot.on_ground(robot.with_posture("stand", STANDS[name]).postures["stand"], ground)
        return live_page.live_html(robot, q=q, title=title, contacts=ground)
    load = "tool" if "tool" in robot.frames and robot.joints[0].kind != "free" else None
    return live_page.live_html(robot, q=posture(robot), title=title, payload=load)


def trot() -> str:
    """The page of `examples/trot.py`: a policy moves ANYmal by the user's command."""
    script = runpy.run_path(str(ROOT / "examples" / "trot.py"))
    with tempfile.TemporaryDirectory() as folder:
        return script["main"](["--out", f"{folder}/trot.html"]).read_text(encoding="utf-8")


def with_stops(robot: pp.Robot) -> pp.Robot:
    """The robot with springs beyond the limits of its joints, where a ground does not stop them."""
    for joint in robot.joints:
        if joint.row.nq == 1 and np.isfinite([joint.lower, joint.upper]).all():
            low, high = float(joint.lower[0]), float(joint.upper[0])
            table = {"deflection": [low - 1, low, high, high + 1], "torque": [-STOP, 0, 0, STOP]}
            robot = robot.with_spring(joint.name, spring=table)
    return robot


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Called by mkdocs with the files of docs/."""
    from mkdocs.structure.files import File

    for name, text in pages().items():
        files.append(File.generated(config, f"live/{name}.html", content=text))
    return files


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
        print(folder / f"{name}.html")
