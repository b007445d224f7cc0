"""The estimation side of the algebra: the same sweeps as a Kalman filter and Bryson-Frazier smoother.

Comes in: a linear Gaussian chain or tree. Goes out: predicted, filtered and smoothed states with their covariances. Read
`linear.py` first (what a model is), then `smoother.py` (the operator expressions, which are those of forward dynamics).
"""

from psiphi.estimation.linear import LinearTree, Stage, sequence
from psiphi.estimation.smoother import Estimate, Smoother

__all__ = ["Estimate", "LinearTree", "Smoother", "Stage", "sequence"]
