"""Bad values of every parameter of psiphi.estimation: a psiphi.Error, or a result if valid."""

import numpy as np
import pytest

import psiphi as pp
from psiphi import estimation
from psiphi.apps.estimation.linear_gaussian_tree import LinearTree, Stage, sequence
from psiphi.apps.estimation.smoother import Smoother


class Rude:
    def __array__(self, *_, **__):
        raise RuntimeError("no")

    def __iter__(self):
        raise KeyError("no")


JUNK = {
    "None": None,
    "True": True,
    "bytes": b"abc",
    "complex": 1j,
    "text": "abc",
    "surrogate": "\ud800",
    "nan": np.nan,
    "inf": np.inf,
    "huge": 10**400,
    "empty": [],
    "empty array": np.zeros(0),
    "no rows": np.zeros((0, 3)),
    "cube": np.zeros((3, 3, 3)),
    "ragged": [[1.0], [1.0, 2.0]],
    "nans": np.full((2, 2), np.nan),
    "complexes": np.eye(2) * 1j,
    "words": np.array(["a", "b"]),
    "objects": np.array([object()]),
    "dict": {"a": 1},
    "set": {1, 2},
    "rude": Rude(),
    "generator": (x for x in [None, 1]),
    "masked": np.ma.masked_all((2, 2)),
    "long doubles": np.eye(2, dtype=np.longdouble),
    "dates": np.array(["2020-01-01"], dtype="M8[D]"),
}
GOOD = dict(parent=-1, transition=None, covariance=np.eye(2), outputs=np.ones((1, 2)), noise=[0.1])
INNER = Stage(0, np.eye(2), np.eye(2), np.ones((1, 2)), [0.1])
TREE = LinearTree([Stage(**GOOD), INNER])
SMOOTHER = Smoother(TREE)
ARM = pp.robots.puma560()
Q, Y = ARM.neutral(), [np.zeros(1), np.zeros(1)]
BRIDGE = estimation.of(ARM, Q)
STEP, COV, OUT = [np.eye(2)], [np.eye(2)] * 2, [np.ones((1, 2))] * 2

CALLS = {
    "stages": lambda x: LinearTree(x),
    "a stage": lambda x: LinearTree([x]),
    "parent": lambda x: LinearTree(
        [Stage(**GOOD), Stage(x, np.eye(2), np.eye(2), np.ones((1, 2)))]
    ),
    "transition": lambda x: LinearTree([Stage(**GOOD), Stage(0, x, np.eye(2), np.ones((1, 2)))]),
    "covariance": lambda x: LinearTree([Stage(**{**GOOD, "covariance": x})]),
    "outputs": lambda x: LinearTree([Stage(**{**GOOD, "outputs": x})]),
    "noise": lambda x: LinearTree([Stage(**{**GOOD, "noise": x})]),
    "sequence: transitions": lambda x: sequence(x, COV, OUT),
    "sequence: a transition": lambda x: sequence([x], COV, OUT),
    "sequence: covariances": lambda x: sequence(STEP, x, OUT),
    "sequence: a covariance": lambda x: sequence(STEP, [np.eye(2), x], OUT),
    "sequence: outputs": lambda x: sequence(STEP, COV, x),
    "sequence: an output": lambda x: sequence(STEP, COV, [np.ones((1, 2)), x]),
    "sequence: noise": lambda x: sequence(STEP, COV, OUT, x),
    "sequence: a noise": lambda x: sequence(STEP, COV, OUT, [x, [0.1]]),
    "model": lambda x: Smoother(x),
    "compiled": lambda x: Smoother(TREE, compiled=x),
    "mask": lambda x: TREE.seen(x),
    "a mask": lambda x: TREE.seen([x, [True]]),
    "data": lambda x: SMOOTHER(x),
    "a datum": lambda x: SMOOTHER([x, np.zeros(1)]),
    "inputs": lambda x: SMOOTHER(Y, x),
    "an input": lambda x: SMOOTHER(Y, [np.zeros(2), x]),
    "coinputs": lambda x: SMOOTHER(Y, None, x),
    "a coinput": lambda x: SMOOTHER(Y, None, [np.zeros(2), x]),
    "robot": lambda x: estimation.of(x, Q),
    "q": lambda x: estimation.of(ARM, x),
    "v": lambda x: estimation.of(ARM, Q, x),
    "f_ext": lambda x: estimation.of(ARM, Q, f_ext=x),
    "a wrench": lambda x: estimation.of(ARM, Q, f_ext={"tool": x}),
    "axes": lambda x: estimation.of(ARM, Q, f_ext={"tool": np.zeros(6)}, axes=x),
    "tau": lambda x: BRIDGE(x),
    "tau as data": lambda x: BRIDGE.outputs(x),
}
MEANT = {  # bad elsewhere, valid here
    ("stages", "empty"),
    ("stages", "empty array"),
    ("noise", "None"),
    ("compiled", "True"),
    ("sequence: noise", "None"),
    ("sequence: a noise", "None"),
    ("stages", "no rows"),
    *((name, "None") for name in ("inputs", "coinputs", "v", "f_ext")),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("junk", JUNK)
def test_junk_is_refused_in_words(call, junk):
    if (call, junk) in MEANT:
        CALLS[call](JUNK[junk])
        return
    with pytest.raises(pp.Error) as caught:
        CALLS[call](JUNK[junk])
    assert "Remedy" in str(caught.value)
    str(caught.value).encode()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: LinearTree([Stage(**GOOD), Stage(True, np.eye(2), np.eye(2), np.ones((1, 2)))]),
            "stage 1.*parent is True",
        ),
        (
            lambda: LinearTree([Stage(**{**GOOD, "covariance": np.diag([1e12, -1.0])})]),
            "stage 0.*negative",
        ),
        (
            lambda: LinearTree(
                [Stage(**{**GOOD, "covariance": 1e-12 * np.array([[1.0, 0.5], [0.1, 1.0]])})]
            ),
            "symmetric",
        ),
        (
            lambda: LinearTree([Stage(**{**GOOD, "covariance": np.zeros((0, 0))})]),
            "covariance of shape",
        ),
        (lambda: LinearTree([Stage(**{**GOOD, "noise": [-0.1]})]), "noise of output 0 is -0.1"),
        (lambda: estimation.of(ARM, ARM.random(seed=0, size=3), np.zeros((2, 6))), "batch axes"),
        (
            lambda: estimation.of(pp.load("free_flyer"), np.ones(pp.load("free_flyer").nq)),
            "quaternion",
        ),
        (lambda: estimation.of(ARM, Q, f_ext={"tol": np.zeros(6)}), "tol"),
        (lambda: estimation.of(ARM, Q, f_ext={"tool": np.zeros((2, 6))}), "six numbers"),
    ],
)
def test_words(call, words):
    with pytest.raises(pp.Error, match=words):
        call()
