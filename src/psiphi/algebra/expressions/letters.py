"""The letters of the algebra: one table row each, and families of letters that are made by name.

A letter is a string ("H", "phi*"): two letters are equal if their names are equal, and words of
letters sort. Its properties are in its row: spaces, sides of duality, block structure, weight in
the term order, dependencies, printed forms. `x.T` is the adjoint, `x.bare` the letter without its
star; the row of a starred letter is the adjoint row.

`takes` and `gives` are the sides of duality of an operator's input and output: forces (torques)
or motions (rates).

Each letter also has a matrix (`dense_letters.py`, `dense_letter_rates.py`), a time derivative
(`time_derivative.py`) and a step at one body (`psiphi.compiler.recursions.body_step`). A test
checks that they exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

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

if TYPE_CHECKING:
    from psiphi.algebra.expressions.multilinear_forms import MultilinearForm
    from psiphi.algebra.expressions.terms import Term

FORCE, MOTION, EITHER = "force", "motion", ""
SIDES = (FORCE, MOTION)  # also names of spaces: link vectors of a declared side
DUAL = {FORCE: MOTION, MOTION: FORCE, EITHER: EITHER}

# what a letter may depend on: P, link velocities, the derivative of P, inertias of single bodies
ARTICULATED, VELOCITY, RATE, BODIES = "P", "V", "Ṗ", "M"


@dataclass(frozen=True)
class Row:
    """The properties of a letter.

    weight           in the term order: heavier words are rewritten to lighter ones
    depends_on       P, link velocities, ...: see ARTICULATED, VELOCITY, RATE, BODIES
    inverse          name of the letter that is its inverse
    regular          True if the operator is invertible on every robot
    remedy_cost      cost of suggesting it between two operators that do not fit; 0: never suggested
    code             Python code of the letter, if that is not its name
    reference_point  the point whose forces it gives
    mixed_axes       True if its blocks map between a body's axes and its parent's: no sweep stores
                     it, and it has no inertial derivative
    """

    rows: Space
    cols: Space
    symbol: str
    latex: str
    structure: Structure
    gives: str
    takes: str
    meaning: str
    self_adjoint: bool = False
    weight: int = 1
    depends_on: frozenset[str] = frozenset()
    inverse: str = ""
    regular: bool = False
    remedy_cost: int = 0
    code: str = ""
    reference_point: str = ""
    mixed_axes: bool = False

    @property
    def adjoint(self) -> Row:
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
    """A letter, with or without a star."""

    row: Row
    starred: bool
    bare: Self
    T: Self
    rows: Space  # this and the next four are copied from `row`
    cols: Space
    gives: str
    takes: str
    depends_on: frozenset[str]

    @property
    def symbol(self) -> str:
        return self.row.symbol

    @property
    def latex(self) -> str:
        return self.row.latex

    @property
    def needs_velocity(self) -> bool:
        """True if its value depends on velocities."""
        return bool(self.depends_on & {VELOCITY, RATE})

    @property
    def either_side(self) -> bool:
        """True if it maps forces to forces and motions to motions: I and ω̃."""
        return (
            not self.gives and not self.takes and self.rows in (ANY, LINK) and type(self) is Letter
        )


class WordLetter(Letter):
    """A letter that the user names: `word`, in a `space`."""

    word: str
    space: str

    @property
    def latex(self) -> str:
        name = self.bare.row.symbol
        return LATEX_NAMES.get(name, _latex_name(name)) + "^*" * self.starred


class VectorLetter(WordLetter):
    """A vector: an input of the evaluation, or computed from the state (`is_input` False)."""

    is_input: bool


class SymbolLetter(WordLetter):
    """An arbitrary block-diagonal operator."""


class FrameLetter(Letter):
    """B of some frames, in world or frame axes, or its time derivative (`rate` True).

    `plain` is B without star and without dot.
    """

    frames: tuple[str, ...]
    axes: str
    rate: bool
    plain: FrameLetter

    @property
    def label(self) -> str:
        """The frames and their axes, as printed."""
        return ", ".join(self.frames) + (" in own axes" if self.axes == "frame" else "")

    @property
    def symbol(self) -> str:
        return f"{self.bare.row.symbol}({self.label})" + "*" * self.starred

    @property
    def latex(self) -> str:
        return rf"{self.bare.row.latex}_{{\text{{{escaped(self.label)}}}}}" + "^*" * self.starred


class FormLetter(Letter):
    """A multilinear form with vectors in all slots but two; see `multilinear_forms.py`.

    It takes vectors of slot `inp` and gives vectors dual to slot `out`; for a starred letter the
    two are exchanged. `filled` has (slot, term) for the other slots.
    """

    form: MultilinearForm
    inp: str
    out: str
    filled: tuple[tuple[str, Term], ...]

    @property
    def open_slots(self) -> tuple[str, str]:
        """(input slot, output slot), with the star taken into account."""
        return (self.out, self.inp) if self.starred else (self.inp, self.out)


class InverseLetter(Letter):
    """An inverse that no rule resolves, by number."""

    number: int


L = TypeVar("L", bound=Letter)


def letter_pair(kind: type[L], name: str, row: Row, **fields: object) -> L:
    """A letter of a kind, with further fields; its adjoint, `.T`, is made with it."""
    plain = adjoint = kind(name)
    if not row.self_adjoint:
        adjoint = kind(name + "*")
        _set_fields(adjoint, row.adjoint, starred=True, bare=plain, T=plain, **fields)
    _set_fields(plain, row, starred=False, bare=plain, T=adjoint, **fields)
    return plain


def _set_fields(x: Letter, row: Row, **fields: object) -> None:
    vars(x).update(
        row=row,
        rows=row.rows,
        cols=row.cols,
        gives=row.gives,
        takes=row.takes,
        depends_on=row.depends_on,
        **fields,
    )


def _row(name: str, *fields: Any, depends_on: Iterable[str] = (), **more: Any) -> Letter:
    """A letter from the fields of its `Row`, in order."""
    return letter_pair(Letter, name, Row(*fields, depends_on=frozenset(depends_on), **more))


P_, V_, R_, M_ = (ARTICULATED,), (VELOCITY,), (RATE,), (BODIES,)

# Weights: definitions (τ̄, ℰ_ψ, Φ, Ψ, L, Δ_ψ) are expanded; φ next to an inverse becomes ψ;
# φ M φ* (composite bodies) is in normal form, but ψ M φ* becomes P.
# fmt: off
ROWS = (
    _row("I", ANY, ANY, "I", "I", MEMORYLESS, EITHER, EITHER, "the identity of any space", True,
         inverse="I", regular=True),
    _row("H", JOINT, LINK, "H", "H", MEMORYLESS, FORCE, FORCE,
         "joint map: torque of a spatial force", remedy_cost=1),
    _row("phi", LINK, LINK, "φ", r"\phi", CAUSAL, FORCE, FORCE,
         "rigid transmission of forces, tip to base", weight=20, regular=True),
    _row("psi", LINK, LINK, "ψ", r"\psi", CAUSAL, FORCE, FORCE,
         "articulated transmission of forces", depends_on=P_, weight=12, regular=True),
    _row("M", LINK, LINK, "M", "M", MEMORYLESS, FORCE, MOTION, "spatial inertias", True,
         depends_on=M_, weight=4, remedy_cost=3),
    _row("P", LINK, LINK, "P", "P", MEMORYLESS, FORCE, MOTION, "articulated-body inertias", True,
         depends_on=P_ + M_, weight=8),
    _row("D", JOINT, JOINT, "D", "D", MEMORYLESS, FORCE, MOTION, "H P H* + rotor inertia", True,
         depends_on=P_, weight=3, inverse="D_inv", regular=True),
    _row("D_inv", JOINT, JOINT, "D⁻¹", "D^{-1}", MEMORYLESS, MOTION, FORCE, "the inverse of D",
         True, depends_on=P_, inverse="D", regular=True, code="D.inv"),
    _row("D_half", JOINT, JOINT, "D^½", r"D^{\frac12}", MEMORYLESS, EITHER, EITHER,
         "Cholesky factor: D^½ (D^½)* = D", depends_on=P_, weight=2, inverse="D_half_inv",
         regular=True),
    _row("D_half_inv", JOINT, JOINT, "D^-½", r"D^{-\frac12}", MEMORYLESS, EITHER, EITHER,
         "the inverse of D^½", depends_on=P_, inverse="D_half", code="D_half.inv"),
    _row("G", LINK, JOINT, "G", "G", MEMORYLESS, FORCE, FORCE, "Kalman gain P H* D⁻¹",
         depends_on=P_, weight=5, remedy_cost=3),
    _row("K", LINK, JOINT, "K", "K", STRICTLY_CAUSAL, FORCE, FORCE, "shifted gain ℰ_φ G",
         depends_on=P_, remedy_cost=3),
    _row("E_phi", LINK, LINK, "ℰ_φ", r"\mathcal{E}_\phi", STRICTLY_CAUSAL, FORCE, FORCE,
         "φ from child to parent only", weight=11),
    _row("E_psi", LINK, LINK, "ℰ_ψ", r"\mathcal{E}_\psi", STRICTLY_CAUSAL, FORCE, FORCE,
         "ψ from child to parent only", depends_on=P_, weight=40),
    _row("E_0", FRAME(1), LINK, "ℰ₀", r"\mathcal{E}_0", ANYWHERE, FORCE, FORCE,
         "φ from roots to the world's origin", depends_on=M_, reference_point="world"),
    _row("E_c", FRAME(1), LINK, "ℰ_c", r"\mathcal{E}_c", ANYWHERE, FORCE, FORCE,
         "ℰ₀, moments about the centre of mass", depends_on=M_, reference_point="centre of mass"),
    _row("tau_bar", LINK, LINK, "τ̄", r"\bar\tau", MEMORYLESS, FORCE, FORCE, "projection I - G H",
         depends_on=P_, weight=30),
    _row("rotor", JOINT, JOINT, "J_m", "J_m", MEMORYLESS, FORCE, MOTION, "rotor inertia (armature)",
         True),
    _row("S", LINK, LINK, "S", "S", STRICTLY_CAUSAL, FORCE, FORCE,
         "shift: identity blocks from child to parent", weight=4, mixed_axes=True),
    _row("Delta_phi", LINK, LINK, "Δ_φ", r"\Delta_\phi", MEMORYLESS, FORCE, FORCE,
         "diagonal of φ(parent, k)", weight=8, mixed_axes=True),
    _row("Delta_psi", LINK, LINK, "Δ_ψ", r"\Delta_\psi", MEMORYLESS, FORCE, FORCE,
         "diagonal of ψ(parent, k)", depends_on=P_, weight=60, mixed_axes=True),
    _row("L", LINK, JOINT, "L", "L", MEMORYLESS, FORCE, FORCE, "Δ_φ G", depends_on=P_, weight=30,
         mixed_axes=True),
    _row("Phi", LINK, LINK, "Φ", r"\Phi", STRICTLY_CAUSAL, FORCE, FORCE, "φ S", weight=60,
         mixed_axes=True),
    _row("Psi", LINK, LINK, "Ψ", r"\Psi", STRICTLY_CAUSAL, FORCE, FORCE, "ψ S", depends_on=P_,
         weight=60, mixed_axes=True),
    _row("H_dot", JOINT, LINK, "Ḣ", r"\dot H", MEMORYLESS, FORCE, FORCE,
         "time derivative of H in body axes", depends_on=V_),
    _row("spin", LINK, LINK, "V×", r"V\times", MEMORYLESS, MOTION, MOTION,
         "cross product with the link's velocity", depends_on=V_),
    _row("gyro", LINK, LINK, "B_V", "B_V", MEMORYLESS, FORCE, MOTION,
         "gyroscopic matrix: B_V V = V×* M V", depends_on=V_),
    _row("P_plus", LINK, LINK, "P⁺", "P^+", MEMORYLESS, FORCE, MOTION,
         "τ̄ P: the part of P that acts on the parent", True, depends_on=P_ + M_, weight=40),
    _row("Omega_d", LINK, LINK, "Ω_δ", r"\Omega_\delta", MEMORYLESS, FORCE, FORCE,
         "V_d ×*, V_d the velocity in the joint", depends_on=V_, weight=2),
    _row("omega", LINK, LINK, "ω̃", r"\tilde\omega", MEMORYLESS, EITHER, EITHER,
         "diag(w~, w~), w the link's angular velocity; skew", depends_on=V_),
    _row("P_dot", LINK, LINK, "Ṗ", r"\dot P", MEMORYLESS, FORCE, MOTION,
         "time derivative of P in body axes", True, depends_on=R_, weight=8),
    _row("lambda_dot", LINK, LINK, "λ̇", r"\dot\lambda", MEMORYLESS, FORCE, MOTION,
         "derivative of P on the inboard side of the joint", True, depends_on=R_, weight=40),
    _row("Pi", LINK, LINK, "Π", r"\Pi", MEMORYLESS, FORCE, MOTION,
         "the sum of S1 (48): Π + Π* = Ṗ", depends_on=R_),
    _row("U_ring", LINK, JOINT, "Ů", r"\mathring{U}", MEMORYLESS, FORCE, MOTION,
         "d(P H*)/dt as the link moves: U̇ + V×* U", depends_on=R_),
    _row("D_rate", JOINT, JOINT, "Θ", r"\Theta", MEMORYLESS, EITHER, EITHER,
         "(D^½)⁻¹ times the derivative of D^½", depends_on=R_, weight=2),
    _row("Om_dot", LINK, LINK, "Ω̇", r"\dot\Omega", MEMORYLESS, MOTION, FORCE,
         "time derivative of Ω in body axes", True, depends_on=R_),
    _row("U", ONE, ONE, "U", "U", ANYWHERE, EITHER, EITHER,
         "potential energy - Σ m g·c, zero at the world's origin", True, depends_on=M_),
    _row("Om", LINK, LINK, "Ω", r"\Omega", MEMORYLESS, MOTION, FORCE,
         "block diagonal of ψ* H* D⁻¹ H ψ", True, depends_on=P_, weight=80, remedy_cost=3),
)
# fmt: on
LETTERS: dict[str, Letter] = {str(x): x for x in ROWS}


def _state_vector(
    word: str, space: str, side: str, meaning: str, depends_on: tuple[str, ...] = V_
) -> VectorLetter:
    row = Row(
        SPACES[space],
        ONE,
        word,
        word,
        ANYWHERE,
        side,
        EITHER,
        meaning,
        depends_on=frozenset(depends_on),
    )
    return letter_pair(
        VectorLetter, f"vec:{word}@{space}", row, word=word, space=space, is_input=False
    )


def _latex_name(word: str) -> str:
    return word if len(word) == 1 else _GREEK.get(word, rf"\mathrm{{{escaped(word)}}}")


_GREEK = {
    name: "\\" + name
    for name in ("tau", "theta", "alpha", "beta", "lambda", "nu", "xi", "eta", "zeta")
}
_GREEK["eps"] = r"\epsilon"
SPACES = {"joint": JOINT, "link": LINK, "frame": FRAME(), FORCE: LINK, MOTION: LINK}

STATE_VECTORS = (  # computed from q and v; the user does not pass them
    A := _state_vector("a", "link", MOTION, "bias accelerations, with gravity"),
    B := _state_vector("b", "link", FORCE, "bias forces"),
    A_LOCAL := _state_vector(
        "a_local", "link", MOTION, "bias accelerations in body axes, without gravity"
    ),
    B_LOCAL := _state_vector("b_local", "link", FORCE, "bias forces in body axes, with gravity"),
    COUPLE := _state_vector("couple", "joint", FORCE, "torques of P⁺ as the joints move", P_ + V_),
    GRAVITY := _state_vector("g", "link", MOTION, "gravity in link axes", ()),
)
ALPHABET = {
    name: x
    for plain in (*ROWS, *STATE_VECTORS)
    for name, x in ((str(plain), plain), (str(plain.T), plain.T))
}
# names of joint vectors that messages call rates and torques; nothing else depends on a name
RATE_NAMES = {"v", "qd", "dq", "thetadot", "beta", "a", "qdd", "thetaddot"}
TORQUE_NAMES = {"tau", "T", "eps", "u"}


def letter(name: str) -> Letter:
    """The letter of a name, with or without a star; a letter is returned as it is.

    >>> letter("phi*").T, letter("phi*").rows, letter("P").T
    ('phi', LINK, 'P')
    """
    if isinstance(name, Letter):
        return name
    if name in ALPHABET:
        return ALPHABET[name]
    raise StateError(f"{name!r} is not a letter of the algebra", "use one of " + ", ".join(LETTERS))


SYMBOLS = {x.symbol for x in ALPHABET.values()}
ACCELERATIONS = "v̇"  # prints the joint accelerations a: in the papers a is the bias acceleration
LATEX_NAMES = {ACCELERATIONS: r"\dot v"}


def display_name(word: str) -> str:
    """The printed form of a name of a vector or a result: never the symbol of a letter.

    >>> display_name("a"), display_name("b"), display_name("x")
    ('v̇', 'b′', 'x')
    """
    return ACCELERATIONS if word == "a" else f"{word}′" if word in SYMBOLS else word


@lru_cache(maxsize=4096)
def vector_letter(word: str, space: str) -> VectorLetter:
    """An input vector over joints, links or frames, or over links as "force" or "motion"."""
    side = space if space in SIDES else EITHER
    if space == "joint":
        side = MOTION if word in RATE_NAMES else FORCE if word in TORQUE_NAMES else EITHER
    row = Row(
        SPACES[space], ONE, display_name(word), word, ANYWHERE, side, EITHER, f"a {space} vector"
    )
    return letter_pair(
        VectorLetter, f"vec:{word}@{space}", row, word=word, space=space, is_input=True
    )


@lru_cache(maxsize=4096)
def symbol_letter(word: str, space: str) -> SymbolLetter:
    """An arbitrary block-diagonal operator over joints or links."""
    where = SPACES[space]
    row = Row(
        where,
        where,
        display_name(word),
        word,
        MEMORYLESS,
        EITHER,
        EITHER,
        f"arbitrary block-diagonal operator on {space}s",
    )
    return letter_pair(SymbolLetter, f"sym:{word}@{space}", row, word=word, space=space)


def frame_letter(frames: Iterable[str], axes: str = "world") -> FrameLetter:
    """The letter of B in world axes or, with axes="frame", in those of the frames.

    Its name contains the frames, with commas and bars escaped.

    >>> frame_letter(["tool", "elbow"]), frame_letter(["tool"], "frame").axes
    ('B[tool,elbow]', 'frame')
    """
    return _frame_letter(tuple(frames), axes, False)


def rate_letter(B: FrameLetter) -> FrameLetter:
    """Ḃ of B; starred if B is."""
    rate = _frame_letter(B.frames, B.axes, True)
    return rate.T if B.starred else rate


@lru_cache(maxsize=4096)
def _frame_letter(frames: tuple[str, ...], axes: str, rate: bool) -> FrameLetter:
    escaped_frames = ",".join(re.sub(r"([\\,|\]])", r"\\\1", frame) for frame in frames) + (
        "|frame" if axes == "frame" else ""
    )
    name, symbol, latex, meaning, depends_on = (
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
        depends_on=frozenset(depends_on),
    )
    B = letter_pair(
        FrameLetter, f"{name}[{escaped_frames}]", row, frames=frames, axes=axes, rate=rate
    )
    B.plain = B.T.plain = _frame_letter(frames, axes, False) if rate else B
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
        "an inverse that no rule resolves",
    )
    return letter_pair(InverseLetter, f"inv:{number}", row, number=number)
