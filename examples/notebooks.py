"""The notebooks beside the scripts, made from them: `python examples/notebooks.py` writes them anew.

A script is cut at `# %%` (code) and `# %% [markdown]` (text, as comments). Nothing but the standard library is needed.
"""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
CUT = re.compile(r"^# %%(.*)\n", re.MULTILINE)


def scripts() -> list[Path]:
    """The examples: every script here that starts with a cell."""
    return sorted(path for path in HERE.glob("*.py") if path.read_text(encoding="utf-8").startswith("# %%"))


def notebook(script: Path) -> str:
    """The text of the notebook of a script."""
    _, *parts = CUT.split(script.read_text(encoding="utf-8"))
    cells = [_cell(k, kind, text.strip("\n")) for k, (kind, text) in enumerate(zip(parts[::2], parts[1::2], strict=True))]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return (
        json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False)
        + "\n"
    )


def _cell(number: int, kind: str, text: str) -> dict:
    if "markdown" in kind:
        lines = [line.removeprefix("#").removeprefix(" ") for line in text.splitlines()]
        return {"cell_type": "markdown", "id": f"cell{number}", "metadata": {}, "source": _lines(lines)}
    code = {"cell_type": "code", "execution_count": None, "id": f"cell{number}", "metadata": {}, "outputs": []}
    return {**code, "source": _lines(text.splitlines())}


def _lines(lines: list[str]) -> list[str]:
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:]


if __name__ == "__main__":
    for script in scripts():
        script.with_suffix(".ipynb").write_text(notebook(script), encoding="utf-8")
        print(script.with_suffix(".ipynb").name)
