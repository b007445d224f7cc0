"""Atomic writes: a file is replaced as a whole, or left unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from psiphi._util.errors import Error
from psiphi._util.text import shown_path


@contextmanager
def atomic_write(target: Path, kind: type[Error] = Error) -> Iterator[Path]:
    """A temporary path beside `target`; it replaces `target` when the block ends without an error.

    If the block fails, the temporary file is removed. An OSError becomes an error of type `kind`.
    """
    if not target.name:
        raise kind(
            f"{shown_path(target)} is a folder, expected a file to write", "name a file in it"
        )
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        if part.exists():  # the writer may have written elsewhere, to a pipe for instance
            os.replace(part, target)
    except (OSError, ValueError) as error:  # ValueError: a NUL or a lone surrogate in the path
        if isinstance(error, Error):
            raise
        why = getattr(error, "strerror", None) or str(error)
        raise kind(
            f"cannot write {shown_path(target)}: {why}", "check the folder and its permissions"
        ) from error
    finally:
        with suppress(OSError, ValueError):
            part.unlink(missing_ok=True)
