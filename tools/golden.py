"""Writes the golden files of the code emitters, for tests/backends/test_golden.py.

Run `python tools/golden.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.backends.test_golden import GOLDEN, texts

if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, text in texts().items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}, {len(text.splitlines())} lines")
