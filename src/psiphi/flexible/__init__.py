"""Bodies that bend: from a beam's measures, or from what a finite-element program knows, to places, shapes and stiffness.

Comes in: lengths and materials (`beam.py`), or nodes, masses, shapes and stiffness as arrays or files (`modal_files.py`).
Goes out: a `FlexibleBody`, which a builder hangs on a link (`pp.Builder.flexible`, `robot.with_flexible`). Read
`flexible_body.py` first (what it is, and its own shapes by frequency), then `beam.py` (Euler and Bernoulli), `craig_bampton.py`
(their shapes from matrices) and `lumping.py` (few points of mass in place of many); `modal_checks.py` says what is wrong.
"""

from psiphi.flexible.beam import Beam
from psiphi.flexible.flexible_body import FlexibleBody

__all__ = ["Beam", "FlexibleBody"]
