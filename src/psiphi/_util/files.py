"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from psiphi._util.errors import Error
from psiphi._util.text import shown_path


@contextmanager
def replacing(target: Path, kind: type[Error] = Error) -> Iterator[Path]:
    """A path beside `target` to write to: it takes the target's place when the block ends, and nothing is left if it fails.

    What the system says against it becomes an Error; errors that have words already pass.
    """
    if not target.name:
        raise kind(
            f"{shown_path(target)} is a folder, expected a file to write", "name a file in it"
        )
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        if part.exists():  # a writer may have chosen another place, a pipe for instance
            os.replace(part, target)
    except (OSError, ValueError) as error:  # ValueError: a NUL, or half a character
        if isinstance(error, Error):
            raise
        why = getattr(error, "strerror", None) or str(error)
        raise kind(
            f"cannot write {shown_path(target)}: {why}", "check the folder and its permissions"
        ) from error
    finally:
        with suppress(OSError, ValueError):
            part.unlink(missing_ok=True)
