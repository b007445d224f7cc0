"""The letters of the algebra: one row each, and the families whose members are made by name.

A letter is an object. What it is spelled like is what it is equal to ("H", "phi*"), so that words sort and compare; all else is
its row: spaces, sides of duality, where its blocks stand, its weight in the term order, what it is made of, how it prints. A
starred letter has its row turned round; `x.T` is the adjoint, `x.bare` the letter without its star. The matrix of a letter is
made in `dense_letters.py` and `dense_letter_rates.py`, its rate in `time_derivative.py`, its step in `psiphi.compiler.recursions.body_step`: a test asks for all of them.

`gives` and `takes` say on which side of duality an operator works: forces (torques) or motions (rates).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.escape import latex as escaped
from psiphi.algebra.expressions.block_structure import (
    ANYWHERE,
    CAUSAL,
    MEMORYLESS,
    STRICTLY_CAUSAL,
    Structure,
)
from psiphi.algebra.expressions.spaces import ANY, FRAME, JOINT, LINK, ONE, Space

FORCE, MOTION, EITHER = "force", "motion", ""
SIDES = (FORCE, MOTION)  # as spaces of vectors: vectors over links that say what they are
DUAL = {FORCE: MOTION, MOTION: FORCE, EITHER: EITHER}

# what a letter is made of: P; the links' velocities; the derivative of P; inertia of single bodies, which may not change sides
ARTICULATED, VELOCITY, RATE, BODIES = "P", "V", "Ṗ", "M"


@dataclass(frozen=True)
class Row:
    """What is known of a letter. `leads` is its cost in a remedy that leads from space to space, `at` the place whose forces it
    gives, `inverse` the letter that is its inverse, `written` how a user writes it where that is not its name."""

    rows: Space
    cols: Space
    symbol: str
    latex: str
    structure: Structure
    gives: str
    takes: str
    meaning: str
    self_adjoint: bool = False
    weight: int = 1  # in the term order: heavier words are rewritten to lighter ones
    made: frozenset[str] = frozenset()
    inverse: str = ""
    regular: bool = False
    leads: int = 0
    written: str = ""
    at: str = ""
    mixed: bool = False  # stands between the axes of a body and of its parent: no sweep keeps it, and it has no inertial rate

    @property
    def turned(self) -> Row:
        """The row of the adjoint."""
        symbol = f"({self.symbol})*" if "½" in self.symbol else f"{self.symbol}*"
        latex = rf"\left({self.latex}\right)^*" if "^" in self.latex else f"{self.latex}^*"
        sides = {"gives": DUAL[self.takes], "takes": DUAL[self.gives]}
        return replace(
            self,
            rows=self.cols,
            cols=self.rows,
            symbol=symbol,
            latex=latex,
            structure=self.structure.adjoint,
            **sides,
        )


class Letter(str):
    """A letter, with or without its star."""

    row: Row
    starred: bool
    bare: Letter
    T: Letter
    rows: Space  # these five as its row has them
    cols: Space
    gives: str
    takes: str
    made: frozenset[str]

    @property
    def symbol(self) -> str:
        return self.row.symbol

    @property
    def latex(self) -> str:
        return self.row.latex

    @property
    def moves(self) -> bool:
        """Is it made of velocities?"""
        return bool(self.made & {VELOCITY, RATE})

    @property
    def adapts(self) -> bool:
        """Does it take what it gives, on either side: I and ω̃?"""
        return (
            not self.gives and not self.takes and self.rows in (ANY, LINK) and type(self) is Letter
        )


class WordLetter(Letter):
    """A letter that stands for what a user calls by a `word`, over a `space`."""

    word: str
    space: str

    @property
    def latex(self) -> str:
        name = self.bare.row.symbol
        return LATEX_NAMES.get(name, _upright(name)) + "^*" * self.starred


class VectorLetter(WordLetter):
    """A vector; `given` when it is evaluated, or made of the state."""

    given: bool


class SymbolLetter(WordLetter):
    """Any block diagonal operator."""


class FrameLetter(Letter):
    """B of some frames, in world or frame axes, or its `rate`; `of` is B itself, without star or dot."""

    frames: tuple[str, ...]
    axes: str
    rate: bool
    of: FrameLetter

    @property
    def inside(self) -> str:
        """The frames, and whose axes, for print."""
        return ", ".join(self.frames) + (" in own axes" if self.axes == "frame" else "")

    @property
    def symbol(self) -> str:
        return f"{self.bare.row.symbol}({self.inside})" + "*" * self.starred

    @property
    def latex(self) -> str:
        return rf"{self.bare.row.latex}_{{\text{{{escaped(self.inside)}}}}}" + "^*" * self.starred


class FormLetter(Letter):
    """A multilinear form with vectors in all slots but two: it takes what fits `inp` and gives what is dual to `out`; a star
    turns these round. `filled` are (slot, term) of the others. Made by `multilinear_forms.py`."""

    form: Any
    inp: str
    out: str
    filled: tuple[tuple[str, Any], ...]

    @property
    def ends(self) -> tuple[str, str]:
        """(slot it takes, slot it gives), star and all."""
        return (self.out, self.inp) if self.starred else (self.inp, self.out)


class InverseLetter(Letter):
    """An inverse that no rule knows, by number."""

    number: int


def _pair(kind: type, name: str, row: Row, **own: Any) -> Any:
    """The letter, and its adjoint behind it."""
    plain = turned = kind(name)
    if not row.self_adjoint:
        turned = kind(name + "*")
        _set(turned, row.turned, starred=True, bare=plain, T=plain, **own)
    _set(plain, row, starred=False, bare=plain, T=turned, **own)
    return plain


def _set(x: Letter, row: Row, **own: Any) -> None:
    vars(x).update(
        row=row,
        rows=row.rows,
        cols=row.cols,
        gives=row.gives,
        takes=row.takes,
        made=row.made,
        **own,
    )


def _row(
    name,
    rows,
    cols,
    symbol,
    latex,
    structure,
    gives,
    takes,
    meaning,
    self_adjoint=False,
    made=(),
    **more,
) -> Letter:
    row = Row(
        rows,
        cols,
        symbol,
        latex,
        structure,
        gives,
        takes,
        meaning,
        self_adjoint,
        made=frozenset(made),
        **more,
    )
    return _pair(Letter, name, row)


P_, V_, R_, M_ = (ARTICULATED,), (VELOCITY,), (RATE,), (BODIES,)

# Weights: definitions (τ̄, ℰ_ψ, Φ, Ψ, L, Δ_ψ) are unfolded; inverses meet φ as ψ; φ M φ* stays what it is (composite bodies),
# but ψ M φ* becomes P.
# fmt: off
ROWS = (
    _row("I", ANY, ANY, "I", "I", MEMORYLESS, EITHER, EITHER, "the identity of any space", True, inverse="I", regular=True),
    _row("H", JOINT, LINK, "H", "H", MEMORYLESS, FORCE, FORCE, "joint map: torque of a spatial force", leads=1),
    _row("phi", LINK, LINK, "φ", r"\phi", CAUSAL, FORCE, FORCE, "rigid transmission of forces, tip to base",
         weight=20, regular=True),
    _row("psi", LINK, LINK, "ψ", r"\psi", CAUSAL, FORCE, FORCE, "articulated transmission of forces",
         made=P_, weight=12, regular=True),
    _row("M", LINK, LINK, "M", "M", MEMORYLESS, FORCE, MOTION, "spatial inertias", True, made=M_, weight=4, leads=3),
    _row("P", LINK, LINK, "P", "P", MEMORYLESS, FORCE, MOTION, "articulated-body inertias", True, made=P_ + M_, weight=8),
    _row("D", JOINT, JOINT, "D", "D", MEMORYLESS, FORCE, MOTION, "H P H* + rotor inertia", True,
         made=P_, weight=3, inverse="D_inv", regular=True),
    _row("D_inv", JOINT, JOINT, "D⁻¹", "D^{-1}", MEMORYLESS, MOTION, FORCE, "the inverse of D", True,
         made=P_, inverse="D", regular=True, written="D.inv"),
    _row("D_half", JOINT, JOINT, "D^½", r"D^{\frac12}", MEMORYLESS, EITHER, EITHER, "Cholesky factor: D^½ (D^½)* = D",
         made=P_, weight=2, inverse="D_half_inv", regular=True),
    _row("D_half_inv", JOINT, JOINT, "D^-½", r"D^{-\frac12}", MEMORYLESS, EITHER, EITHER, "the inverse of D^½",
         made=P_, inverse="D_half", written="D_half.inv"),
    _row("G", LINK, JOINT, "G", "G", MEMORYLESS, FORCE, FORCE, "Kalman gain P H* D⁻¹", made=P_, weight=5, leads=3),
    _row("K", LINK, JOINT, "K", "K", STRICTLY_CAUSAL, FORCE, FORCE, "shifted gain ℰ_φ G", made=P_, leads=3),
    _row("E_phi", LINK, LINK, "ℰ_φ", r"\mathcal{E}_\phi", STRICTLY_CAUSAL, FORCE, FORCE, "φ from child to parent only",
         weight=11),
    _row("E_psi", LINK, LINK, "ℰ_ψ", r"\mathcal{E}_\psi", STRICTLY_CAUSAL, FORCE, FORCE, "ψ from child to parent only",
         made=P_, weight=40),
    _row("E_0", FRAME(1), LINK, "ℰ₀", r"\mathcal{E}_0", ANYWHERE, FORCE, FORCE, "φ from roots to the world's origin",
         made=M_, at="world"),
    _row("E_c", FRAME(1), LINK, "ℰ_c", r"\mathcal{E}_c", ANYWHERE, FORCE, FORCE, "ℰ₀, moments about the centre of mass",
         made=M_, at="centre of mass"),
    _row("tau_bar", LINK, LINK, "τ̄", r"\bar\tau", MEMORYLESS, FORCE, FORCE, "projection I - G H", made=P_, weight=30),
    _row("rotor", JOINT, JOINT, "J_m", "J_m", MEMORYLESS, FORCE, MOTION, "rotor inertia (armature)", True),
    _row("S", LINK, LINK, "S", "S", STRICTLY_CAUSAL, FORCE, FORCE, "shift: identity blocks from child to parent",
         weight=4, mixed=True),
    _row("Delta_phi", LINK, LINK, "Δ_φ", r"\Delta_\phi", MEMORYLESS, FORCE, FORCE, "diagonal of φ(parent, k)",
         weight=8, mixed=True),
    _row("Delta_psi", LINK, LINK, "Δ_ψ", r"\Delta_\psi", MEMORYLESS, FORCE, FORCE, "diagonal of ψ(parent, k)",
         made=P_, weight=60, mixed=True),
    _row("L", LINK, JOINT, "L", "L", MEMORYLESS, FORCE, FORCE, "Δ_φ G", made=P_, weight=30, mixed=True),
    _row("Phi", LINK, LINK, "Φ", r"\Phi", STRICTLY_CAUSAL, FORCE, FORCE, "φ S", weight=60, mixed=True),
    _row("Psi", LINK, LINK, "Ψ", r"\Psi", STRICTLY_CAUSAL, FORCE, FORCE, "ψ S", made=P_, weight=60, mixed=True),
    _row("H_dot", JOINT, LINK, "Ḣ", r"\dot H", MEMORYLESS, FORCE, FORCE, "time derivative of H in body axes", made=V_),
    _row("spin", LINK, LINK, "V×", r"V\times", MEMORYLESS, MOTION, MOTION, "cross product with the link's velocity", made=V_),
    _row("gyro", LINK, LINK, "B_V", "B_V", MEMORYLESS, FORCE, MOTION, "gyroscopic matrix: B_V V = V×* M V", made=V_),
    _row("P_plus", LINK, LINK, "P⁺", "P^+", MEMORYLESS, FORCE, MOTION, "τ̄ P: what the parent feels of P", True,
         made=P_ + M_, weight=40),
    _row("Omega_d", LINK, LINK, "Ω_δ", r"\Omega_\delta", MEMORYLESS, FORCE, FORCE, "V_d ×*, V_d the velocity in the joint",
         made=V_, weight=2),
    _row("omega", LINK, LINK, "ω̃", r"\tilde\omega", MEMORYLESS, EITHER, EITHER, "diag(w~, w~), w the link's spin; skew",
         made=V_),
    _row("P_dot", LINK, LINK, "Ṗ", r"\dot P", MEMORYLESS, FORCE, MOTION, "time derivative of P in body axes", True,
         made=R_, weight=8),
    _row("lambda_dot", LINK, LINK, "λ̇", r"\dot\lambda", MEMORYLESS, FORCE, MOTION, "Ṗ seen from the inboard side", True,
         made=R_, weight=40),
    _row("Pi", LINK, LINK, "Π", r"\Pi", MEMORYLESS, FORCE, MOTION, "Π + Π* = Ṗ: the half that skew C is made of", made=R_),
    _row("U_ring", LINK, JOINT, "Ů", r"\mathring{U}", MEMORYLESS, FORCE, MOTION, "d(P H*)/dt as the link moves: U̇ + V×* U",
         made=R_),
    _row("D_rate", JOINT, JOINT, "Θ", r"\Theta", MEMORYLESS, EITHER, EITHER, "(D^½)⁻¹ times the derivative of D^½",
         made=R_, weight=2),
    _row("Om_dot", LINK, LINK, "Ω̇", r"\dot\Omega", MEMORYLESS, MOTION, FORCE, "time derivative of Ω in body axes",
         True, made=R_),
    _row("U", ONE, ONE, "U", "U", ANYWHERE, EITHER, EITHER, "potential energy - Σ m g·c, zero at the world's origin",
         True, made=M_),
    _row("Om", LINK, LINK, "Ω", r"\Omega", MEMORYLESS, MOTION, FORCE, "block diagonal of ψ* H* D⁻¹ H ψ", True,
         made=P_, weight=80, leads=3),
)
# fmt: on
LETTERS: dict[str, Letter] = {str(x): x for x in ROWS}


def _state(
    word: str, space: str, side: str, meaning: str, made: tuple[str, ...] = V_
) -> VectorLetter:
    row = Row(SPACES[space], ONE, word, word, ANYWHERE, side, EITHER, meaning, made=frozenset(made))
    return _pair(VectorLetter, f"vec:{word}@{space}", row, word=word, space=space, given=False)


def _upright(word: str) -> str:
    return word if len(word) == 1 else _GREEK.get(word, rf"\mathrm{{{escaped(word)}}}")


_GREEK = {
    name: "\\" + name
    for name in ("tau", "theta", "alpha", "beta", "lambda", "nu", "xi", "eta", "zeta")
}
_GREEK["eps"] = r"\epsilon"
SPACES = {"joint": JOINT, "link": LINK, "frame": FRAME(), FORCE: LINK, MOTION: LINK}

BIAS = (  # vectors made of q and v, not given
    A := _state("a", "link", MOTION, "velocity products of accelerations, and gravity"),
    B := _state("b", "link", FORCE, "velocity products of forces"),
    A_LOCAL := _state("a_local", "link", MOTION, "the same in body axes, without gravity"),
    B_LOCAL := _state("b_local", "link", FORCE, "the same in body axes, with gravity"),
    COUPLE := _state("couple", "joint", FORCE, "what joints feel of P⁺ as they move", P_ + V_),
    GRAVITY := _state("g", "link", MOTION, "gravity in link axes", ()),
)
ALPHABET = {
    name: x
    for plain in (*ROWS, *BIAS)
    for name, x in ((str(plain), plain), (str(plain.T), plain.T))
}
RATES = {
    "v",
    "qd",
    "dq",
    "thetadot",
    "beta",
    "a",
    "qdd",
    "thetaddot",
}  # joint vectors that messages call rates,
TORQUES = {"tau", "T", "eps", "u"}  # and torques; nothing else depends on a name


def letter(name: str) -> Letter:
    """A letter by its name, with or without its star; members of families are letters already.

    >>> letter("phi*").T, letter("phi*").rows, letter("P").T
    ('phi', LINK, 'P')
    """
    if isinstance(name, Letter):
        return name
    if name in ALPHABET:
        return ALPHABET[name]
    raise StateError(f"{name!r} is not a letter of the algebra", "use one of " + ", ".join(LETTERS))


SYMBOLS = {x.symbol for x in ALPHABET.values()}
ACCELERATIONS = (
    "v̇"  # how the joint accelerations a are printed: in the papers a is the bias acceleration
)
LATEX_NAMES = {ACCELERATIONS: r"\dot v"}


def printed(word: str) -> str:
    """A name that a user or a result has, as it is printed: never the symbol of a letter of the algebra.

    >>> printed("a"), printed("b"), printed("x")
    ('v̇', 'b′', 'x')
    """
    return ACCELERATIONS if word == "a" else f"{word}′" if word in SYMBOLS else word


@lru_cache(maxsize=4096)
def vector_letter(word: str, space: str) -> VectorLetter:
    """A vector that is given: over joints, links, frames, or over links as "force" or "motion"."""
    side = space if space in SIDES else EITHER
    if space == "joint":
        side = MOTION if word in RATES else FORCE if word in TORQUES else EITHER
    row = Row(SPACES[space], ONE, printed(word), word, ANYWHERE, side, EITHER, f"a {space} vector")
    return _pair(VectorLetter, f"vec:{word}@{space}", row, word=word, space=space, given=True)


@lru_cache(maxsize=4096)
def symbol_letter(word: str, space: str) -> SymbolLetter:
    """Any block diagonal operator over joints or links."""
    where = SPACES[space]
    row = Row(
        where,
        where,
        printed(word),
        word,
        MEMORYLESS,
        EITHER,
        EITHER,
        f"any block diagonal on {space}s",
    )
    return _pair(SymbolLetter, f"sym:{word}@{space}", row, word=word, space=space)


def frame_letter(frames: Iterable[str], axes: str = "world") -> FrameLetter:
    """The letter of B, in world axes or in the frames' own. It is spelled with its frames, their commas and bars escaped.

    >>> frame_letter(["tool", "elbow"]), frame_letter(["tool"], "frame").axes
    ('B[tool,elbow]', 'frame')
    """
    return _frame_letter(tuple(frames), axes, False)


def rate_letter(B: FrameLetter) -> FrameLetter:
    """Ḃ of B, with B's star."""
    rate = _frame_letter(B.frames, B.axes, True)
    return rate.T if B.starred else rate  # type: ignore[return-value]


@lru_cache(maxsize=4096)
def _frame_letter(frames: tuple[str, ...], axes: str, rate: bool) -> FrameLetter:
    spelled = ",".join(re.sub(r"([\\,|\]])", r"\\\1", frame) for frame in frames) + (
        "|frame" if axes == "frame" else ""
    )
    name, symbol, latex, meaning, made = (
        ("Bdot", "Ḃ", r"\dot B", "dB/dt", V_) if rate else ("B", "B", "B", "from frames", ())
    )
    row = Row(
        LINK,
        FRAME(len(frames)),
        symbol,
        latex,
        ANYWHERE,
        FORCE,
        FORCE,
        meaning,
        made=frozenset(made),
    )
    B = _pair(FrameLetter, f"{name}[{spelled}]", row, frames=frames, axes=axes, rate=rate)
    B.of = B.T.of = _frame_letter(frames, axes, False) if rate else B
    return B


@lru_cache(maxsize=4096)
def inverse_letter(number: int) -> InverseLetter:
    """The inverse of the n-th term under an inverse sign."""
    row = Row(
        ANY,
        ANY,
        f"X{number}⁻¹",
        f"X_{{{number}}}^{{-1}}",
        ANYWHERE,
        EITHER,
        EITHER,
        "an inverse no rule knows",
    )
    return _pair(InverseLetter, f"inv:{number}", row, number=number)
