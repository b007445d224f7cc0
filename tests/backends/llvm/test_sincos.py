"""Sine and cosine of the kernels: within 2 ulp up to 1e4, right beyond, the same in every lane."""

import math
from functools import lru_cache

import numpy as np
import pytest

from psiphi.backends.llvm.sincos import LIMIT
from tests.backends.kernels import WIDTHS, little, same_bits, ufunc
from tests.backends.llvm.exact_trig import half_pi, sine_and_cosine, ulps

LONG = np.finfo(np.longdouble).nmant >= 63
KIND = {"d": np.float64, "f": np.float32}


@lru_cache(maxsize=16)
def trig(char: str, lanes: int) -> np.ufunc:
    """x -> (sin x, cos x)."""
    return ufunc(little([(1,)], lambda x: [[x[0].sin(), x[0].cos()]], "trig"), lanes, char)


def sincos(x, char: str = "d", lanes: int = 8) -> tuple[np.ndarray, np.ndarray]:
    both = trig(char, lanes)(np.asarray(x, char)[:, None])
    return both[:, 0], both[:, 1]


def worst(x, char: str) -> float:
    """The largest error of both functions at the points, in ulp."""
    x = np.asarray(x, char)
    exact = [sine_and_cosine(float(value)) for value in x]
    return max(ulps(found, [pair[i] for pair in exact]) for i, found in enumerate(sincos(x, char)))


def near_multiples_of_a_quarter_turn(char: str, numbers) -> np.ndarray:
    """The nearest float to k pi/2, and its two neighbours."""
    kind = KIND[char]
    nearest = np.array([kind(float(half_pi(60) * int(k))) for k in numbers])
    return np.concatenate(
        [nearest, np.nextafter(nearest, kind(np.inf)), np.nextafter(nearest, kind(-np.inf))]
    )


def test_the_yardstick():
    """Fifty digits against known values and against the C library."""
    assert str(half_pi(50))[:52] == "1.57079632679489661923132169163975144209858469968755"
    s, c = sine_and_cosine(1.0)
    assert str(s).startswith("0.8414709848078965066525023216302989996225")
    assert str(c).startswith("0.5403023058681397174009366074429766037323")
    assert float(sine_and_cosine(1e22)[0]) == -0.8522008497671888  # the classic test of a reduction
    for x in (0.3, -2.0, 700.25, 1e15):
        assert [float(y) for y in sine_and_cosine(x)] == pytest.approx(
            [math.sin(x), math.cos(x)], rel=3e-16
        )


@pytest.mark.parametrize("char", "df")
def test_two_ulp_near_multiples_of_a_quarter_turn(char, rng):
    """Where the reduction loses most: all small multiples, and some up to the limit."""
    last = int(LIMIT / (math.pi / 2))
    some = [*range(1, 40), *rng.integers(40, last, 60), last]
    x = near_multiples_of_a_quarter_turn(char, some)
    x = x[np.abs(x) <= LIMIT]
    assert worst(np.concatenate([x, -x]), char) <= 2.0


@pytest.mark.parametrize("char", "df")
def test_two_ulp_where_the_quadrant_changes(char, rng):
    odd = 2 * rng.integers(0, int(LIMIT / math.pi) - 1, 60) + 1
    x = (odd * math.pi / 4).astype(char)
    assert (
        worst(
            np.concatenate([x, np.nextafter(x, KIND[char](0)), np.nextafter(x, KIND[char](1e5))]),
            char,
        )
        <= 2.0
    )


@pytest.mark.parametrize("char", "df")
def test_two_ulp_at_small_and_smallest_angles(char):
    info = np.finfo(char)
    x = [
        *np.geomspace(float(info.tiny), 1.0, 120),
        float(info.smallest_subnormal),
        float(info.tiny) / 2,
        float(info.eps),
    ]
    assert worst(np.array([*x, *(-y for y in x)], char), char) <= 2.0


@pytest.mark.skipif(not LONG, reason="long double is no longer than double here")
def test_two_ulp_everywhere(rng):
    """Dense: three hundred thousand angles against long double."""
    x = np.concatenate([rng.uniform(-s, s, 60_000) for s in (1.0, 10.0, 100.0, 1000.0, LIMIT)])
    for found, exact in zip(
        sincos(x), (np.sin(x.astype(np.longdouble)), np.cos(x.astype(np.longdouble))), strict=True
    ):
        error = np.abs(found.astype(np.longdouble) - exact) / np.spacing(
            np.abs(exact.astype(float))
        )
        assert error.max() <= 2.0


def test_two_ulp_everywhere_in_float32(rng):
    x = np.concatenate(
        [rng.uniform(-s, s, 60_000) for s in (1.0, 10.0, 100.0, 1000.0, LIMIT)]
    ).astype(np.float32)
    for found, exact in zip(
        sincos(x, "f", 16), (np.sin(x.astype(float)), np.cos(x.astype(float))), strict=True
    ):
        error = np.abs(found.astype(float) - exact) / np.spacing(
            np.abs(exact.astype(np.float32))
        ).astype(float)
        assert error.max() <= 2.0


@pytest.mark.parametrize("char", "df")
def test_right_beyond_the_limit(char, rng):
    top = 300 if char == "d" else 38
    x = 10.0 ** rng.uniform(4, top, 60) * rng.choice([-1, 1], 60)
    edges = np.nextafter(KIND[char](LIMIT), KIND[char]([0.0, 1e9]))
    assert (
        worst(np.concatenate([x, [LIMIT, -LIMIT, float(np.finfo(char).max)], edges]), char) <= 2.0
    )


@pytest.mark.parametrize(("char", "lanes"), WIDTHS)
def test_every_width_gives_the_same_bits(char, lanes, rng):
    """Huge, tiny, special and ordinary angles mixed: no lane sees its neighbours, no size of batch
    matters."""
    x = np.concatenate(
        [
            rng.uniform(-20, 20, 200),
            10.0 ** rng.uniform(3, 30, 50),
            [0.0, -0.0, 1e-40, LIMIT, 1e4 + 1],
        ]
    )
    x = np.concatenate([x, [np.nan, np.inf, -np.inf]]).astype(char)
    rng.shuffle(x)
    with np.errstate(all="ignore"):
        truth = sincos(x, char, 1)
        for ours, theirs in zip(sincos(x, char, lanes), truth, strict=True):
            numbers = np.isfinite(x)
            assert same_bits(ours[numbers], theirs[numbers]) and np.isnan(ours[~numbers]).all()
        alone = np.concatenate([trig(char, lanes)(x[i : i + 1]) for i in range(len(x))])
        assert np.array_equal(alone, np.stack(truth, -1).ravel(), equal_nan=True)


@pytest.mark.parametrize("char", "df")
def test_zero_is_exact(char):
    sine, cosine = sincos([0.0, -0.0, np.finfo(char).smallest_subnormal], char)
    assert (
        sine.tolist() == [0.0, 0.0, float(np.finfo(char).smallest_subnormal)]
        and cosine.tolist() == [1.0] * 3
    )


@pytest.mark.parametrize("char", "df")
def test_flags_are_those_of_the_c_library(char):
    """Huge and NaN angles are legal, an infinite one is invalid: as np.sin says."""
    top = 1e300 if char == "d" else 1e38
    for lanes in (1, 4):
        with np.errstate(all="raise", under="ignore"):
            sincos([1.0, 1e5, 1e18, top, -top, 0.5], char, lanes)
            assert np.isnan(sincos([np.nan, 1.0, 2.0, 1e9, 4.0], char, lanes)[0][0])
            with pytest.raises(FloatingPointError, match="invalid"):
                sincos([1.0, np.inf], char, lanes)


@pytest.mark.parametrize("char", "df")
def test_symmetries_are_exact(char, rng):
    """sin(-x) = -sin x and cos(-x) = cos x, to the bit: the tape relies on it."""
    x = np.concatenate(
        [rng.uniform(0, LIMIT, 5000), rng.uniform(0, 2, 5000), 10.0 ** rng.uniform(4, 30, 100)]
    )
    (s, c), (s_minus, c_minus) = sincos(x, char), sincos(-x, char)
    assert np.array_equal(s, -s_minus) and np.array_equal(c, c_minus)
