"""Non-commutative polynomials {word: coefficient}: the language rules are written in (see `operators/polynomial.py`)."""

from psiphi.operators.polynomial import Poly, Word, accumulate, add, adjoint, between, multiply, scale

__all__ = ["Poly", "Word", "accumulate", "add", "adjoint", "between", "multiply", "scale"]
