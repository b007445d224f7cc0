"""Plots as SVG text."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from psiphi.apps.viewer.svg_plots import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Plot,
    linear_scale,
    log_scale,
    tick_labels,
)

t = np.linspace(0.0, 2.0, 50)


def points(svg: str, curve: int = 0) -> np.ndarray:
    path = [e for e in ElementTree.fromstring(svg) if e.get("class") == "curve"][curve].get("d")
    return np.array(
        [pair.split(",") for pair in re.findall(r"[ML]([-\d.]+,[-\d.]+)", path)], dtype=float
    )


def test_a_curve_fills_its_frame():
    xy = points(Plot("x", "m", ("x",), np.sin(t)[None]).svg(t))
    assert np.isclose(xy[0, 0], LEFT) and np.isclose(xy[-1, 0], WIDTH - RIGHT, atol=0.1)
    assert (xy[:, 1] >= TOP).all() and (xy[:, 1] <= HEIGHT - BOTTOM).all()
    assert np.argmin(xy[:, 1]) == np.argmax(np.sin(t)), "up is up"


def test_gaps_where_numbers_are_missing():
    y = np.sin(t)
    y[10:20] = np.nan
    svg = Plot("x", "m", ("x",), y[None]).svg(t)
    assert len(points(svg)) == 40
    assert re.search(r'd="M[^M]*M[^M]*"', svg), "two strokes"


def test_powers_of_ten():
    svg = Plot("residual", "m", ("x",), 10.0 ** (-12 + 3 * t)[None], log=True).svg(t)
    assert "1e-12" in svg and "1e-6" in svg
    zero = Plot("residual", "m", ("x",), np.zeros((1, 50)), log=True).svg(t)
    assert not points(zero).size


@pytest.mark.parametrize(
    "y", [np.zeros((1, 5)), np.full((1, 5), 3e-9), np.full((1, 5), -7.0), np.full((1, 5), np.nan)]
)
def test_constant_and_empty_curves_have_a_scale(y):
    low, high, ticks = linear_scale(y)
    assert low < high and len(ticks) >= 2 and np.isfinite(ticks).all()
    low, high, ticks = log_scale(y)
    assert low < high and len(ticks) >= 2


def test_names_are_escaped():
    assert "<b>" not in Plot("<b>", "m", ("x",), np.sin(t)[None]).svg(t)


def test_ticks_can_be_told_apart():
    for y in (
        [6.8221, 6.8223],
        [6.822142, 6.822143],
        [1e9, 1e9 + 1],
        [0.0, 1e-12],
        [-3.0, 3.0],
        [100_000.0, 100_003.0],
    ):
        words = tick_labels(linear_scale(np.array(y))[2])
        assert len(set(words)) == len(words) and max(map(len, words)) <= 9, words
