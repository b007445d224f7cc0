"""The estimation side of the algebra: the same sweeps as a Kalman filter and Bryson-Frazier smoother.

Comes in: a linear Gaussian chain or tree, or a robot at a state. Goes out: predicted, filtered and smoothed states with their
covariances. Read `linear.py` first (what a model is), then `smoothing.py` (the operator expressions, which are those of forward
dynamics), `covariances.py` (what is known before there are data, and which models are refused), `remaining.py` (what is left
unknown after them), `smoother.py` (the door) and `analogue.py` (the bridge); `swept.py` is what the sweeps see of a tree,
`looped.py` makes code of it. `sub_chains.py`: sub-chains as they are seen from their ends.
"""

from psiphi.estimation.analogue import Analogue, of
from psiphi.estimation.linear import LinearTree, Stage, sequence
from psiphi.estimation.smoother import Estimate, Smoother
from psiphi.estimation.sub_chains import TwoPort, two_ports

__all__ = ["Analogue", "Estimate", "LinearTree", "Smoother", "Stage", "TwoPort", "of", "sequence", "two_ports"]
