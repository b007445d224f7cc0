"""A hook of mkdocs that writes the version which the pages describe under each of them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def on_config(config: Any, **_: Any) -> Any:
    """Called by mkdocs with the configuration."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = tomllib.loads(project)["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    later = " with unreleased changes" if "## [Unreleased]" in changes else ""
    config.copyright = (
        f"These pages describe psiphi {version}{later}. For those of another version, check out "
        "its tag (vX.Y.Z) and run <code>make docs</code>."
    )
    return config
