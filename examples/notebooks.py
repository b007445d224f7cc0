"""Write the notebooks of the example scripts: `python examples/notebooks.py [NAME ...]`.

A script is split at `# %%` (code) and `# %% [markdown]` (text, as comments). The cells are run, and
the notebooks store their printed output and the value of their last line. This needs only the
standard library and psiphi.
"""

import ast
import base64
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
CUT = re.compile(r"^# %%(.*)\n", re.MULTILINE)


def scripts() -> list[Path]:
    """The example scripts: those that start with a cell."""
    return sorted(
        path for path in HERE.glob("*.py") if path.read_text(encoding="utf-8").startswith("# %%")
    )


def notebook(script: Path, outputs: bool = False) -> str:
    """The notebook of a script as JSON text; `outputs=True` runs its cells."""
    _, *parts = CUT.split(script.read_text(encoding="utf-8"))
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    cells = [_cell(k, kind, text.strip("\n")) for k, (kind, text) in enumerate(pairs)]
    if outputs:
        _run([cell for cell in cells if cell["cell_type"] == "code"], script.name)
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    whole = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def without_outputs(text: str) -> str:
    """The text of a notebook without outputs."""
    whole = json.loads(text)
    for cell in whole["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _run(cells: list[dict], name: str) -> None:
    """Run the cells in order, and store the output of each."""
    here, home = {"__name__": "__main__"}, Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number, cell in enumerate(cells, start=1):
                cell["execution_count"] = number
                cell["outputs"] = _outputs(ast.parse("".join(cell["source"]), name), here, number)
        finally:
            os.chdir(home)


def _outputs(tree: ast.Module, here: dict, number: int) -> list[dict]:
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), here)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), here)
    text = printed.getvalue()
    out = (
        [{"name": "stdout", "output_type": "stream", "text": _lines(text.split("\n"))}]
        if text
        else []
    )
    if value is not None:
        shown = {
            "data": _shown(value),
            "execution_count": number,
            "metadata": {},
            "output_type": "execute_result",
        }
        out.append(shown)
    return out


def _shown(value) -> dict:
    """The representations of a value: text, and HTML or a picture if it has them."""
    data = {"text/plain": _lines(repr(value).split("\n"))}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = _lines(value._repr_html_().split("\n"))
    if hasattr(value, "_repr_png_"):
        data["image/png"] = base64.b64encode(value._repr_png_()).decode()
    return data


def _cell(number: int, kind: str, text: str) -> dict:
    if "markdown" in kind:
        lines = [line.removeprefix("#").removeprefix(" ") for line in text.splitlines()]
        return {
            "cell_type": "markdown",
            "id": f"cell{number}",
            "metadata": {},
            "source": _lines(lines),
        }
    code = {
        "cell_type": "code",
        "execution_count": None,
        "id": f"cell{number}",
        "metadata": {},
        "outputs": [],
    }
    return {**code, "source": _lines(text.splitlines())}


def _lines(lines: list[str]) -> list[str]:
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:]


if __name__ == "__main__":
    for script in scripts():
        if not sys.argv[1:] or script.stem in sys.argv[1:]:
            script.with_suffix(".ipynb").write_text(
                notebook(script, outputs=True), encoding="utf-8"
            )
            print(script.with_suffix(".ipynb").name)
