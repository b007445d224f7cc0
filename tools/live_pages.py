"""A hook of mkdocs that generates the live pages live/NAME.html of the bundled robots and scenes.

`python tools/live_pages.py FOLDER` writes them to a folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from drawings import posture

import psiphi as pp
from psiphi.apps.viewer.live import live_page


def pages(names: Iterable[str] | None = None) -> dict[str, str]:
    """{name: text} of these live pages (default: all)."""
    return {name: page(name) for name in names or (*pp.robots.bundled(), *pp.scenes.names())}


def page(name: str) -> str:
    """The live page of a robot or scene."""
    if name in pp.scenes.names():
        return live_page.live_html(pp.scenes.load(name))
    robot = pp.load(name)
    load = "tool" if "tool" in robot.frames and robot.joints[0].kind != "free" else None
    return live_page.live_html(
        robot, q=posture(robot), title=pp.robots.source(name)["title"], payload=load
    )


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
