"""The text of the two targets, to the letter, for forward dynamics of the two-link arm of
`test_tiny.py`.

What is written here is what a reader of the emitters should expect; a change of theirs shows as a
difference of the files in `golden/`. Lanes, registers and fused multiply-adds are fixed, so that
the text does not depend on this machine. To write them again:

    python tools/golden.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from psiphi.backends.cpu.gufunc_kernel import gufunc_module
from psiphi.backends.cpu.straight_kernel import straight_kernel
from psiphi.backends.target import TARGETS
from psiphi.compiler import passes
from psiphi.compiler.equations import Equation
from tests.test_tiny import ACCELERATION, MODEL

GOLDEN = Path(__file__).parent / "golden"


def texts() -> dict[str, str]:
    """By the name of the file."""
    code = passes.code(Equation({"a": ACCELERATION}, MODEL, input_order=("tau",)))
    return {
        "two_link_arm.c": TARGETS["c"].emit(
            code, "d", "forward_dynamics", "a = M^-1 (tau - C v - g) of two_link_arm"
        ),
        "two_link_arm.ll": gufunc_module(
            straight_kernel(code, fma=True), "loop", "double", lanes=(1, 4), registers=12
        ),
    }


@pytest.mark.parametrize("name", ["two_link_arm.c", "two_link_arm.ll"])
def test_the_text_is_as_it_was(name):
    mine, golden = (
        texts()[name].splitlines(),
        (GOLDEN / name).read_text(encoding="utf-8").splitlines(),
    )
    where = next(
        (i for i, (x, y) in enumerate(zip(mine, golden, strict=False), 1) if x != y),
        min(len(mine), len(golden)) + 1,
    )
    assert mine == golden, (
        f"{name} differs from line {where} on; if that is meant: python tools/golden.py"
    )
