"""The letters of the algebra, one row each: spaces, structure, symbols, what they mean.

A letter is a string: "H", "phi", ...; families carry their names inside: "B[tool]", "B[tool,elbow|frame]",
"vec:tau@joint", "sym:X@link", "inv:0". A trailing "*" is the adjoint; self-adjoint letters never carry one. "I" is the
identity.

`gives` and `takes` say on which side of duality an operator works: forces (torques) or motions (rates).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from psiphi.errors import StateError
from psiphi.escaping import latex as escaped
from psiphi.operators.spaces import ANY, FRAME, JOINT, LINK, ONE, Space
from psiphi.operators.structure import ANYWHERE, CAUSAL, MEMORYLESS, STRICTLY_CAUSAL, Structure

FORCE, MOTION, EITHER = "force", "motion", ""
SIDES = (FORCE, MOTION)  # as spaces of vectors: vectors over links that say what they are


@dataclass(frozen=True)
class Letter:
    """One letter: what it maps where, and how it prints."""

    name: str
    rows: Space
    cols: Space
    symbol: str
    latex: str
    structure: Structure
    gives: str
    takes: str
    meaning: str
    self_adjoint: bool = False


def _row(name, rows, cols, symbol, latex, structure, gives, takes, meaning, self_adjoint=False) -> tuple[str, Letter]:
    return name, Letter(name, rows, cols, symbol, latex, structure, gives, takes, meaning, self_adjoint)


LETTERS: dict[str, Letter] = dict(
    [
        _row("I", ANY, ANY, "I", "I", MEMORYLESS, EITHER, EITHER, "the identity of any space", True),
        _row("H", JOINT, LINK, "H", "H", MEMORYLESS, FORCE, FORCE, "joint map: torque of a spatial force"),
        _row("phi", LINK, LINK, "φ", r"\phi", CAUSAL, FORCE, FORCE, "rigid transmission of forces, tip to base"),
        _row("psi", LINK, LINK, "ψ", r"\psi", CAUSAL, FORCE, FORCE, "articulated transmission of forces"),
        _row("M", LINK, LINK, "M", "M", MEMORYLESS, FORCE, MOTION, "spatial inertias", True),
        _row("P", LINK, LINK, "P", "P", MEMORYLESS, FORCE, MOTION, "articulated-body inertias", True),
        _row("D", JOINT, JOINT, "D", "D", MEMORYLESS, FORCE, MOTION, "H P H* + rotor inertia", True),
        _row("D_inv", JOINT, JOINT, "D⁻¹", "D^{-1}", MEMORYLESS, MOTION, FORCE, "the inverse of D", True),
        _row("D_half", JOINT, JOINT, "D^½", r"D^{\frac12}", MEMORYLESS, EITHER, EITHER, "Cholesky factor: D^½ (D^½)* = D"),
        _row("D_half_inv", JOINT, JOINT, "D^-½", r"D^{-\frac12}", MEMORYLESS, EITHER, EITHER, "the inverse of D^½"),
        _row("G", LINK, JOINT, "G", "G", MEMORYLESS, FORCE, FORCE, "Kalman gain P H* D⁻¹"),
        _row("K", LINK, JOINT, "K", "K", STRICTLY_CAUSAL, FORCE, FORCE, "shifted gain ℰ_φ G"),
        _row("E_phi", LINK, LINK, "ℰ_φ", r"\mathcal{E}_\phi", STRICTLY_CAUSAL, FORCE, FORCE, "φ from child to parent only"),
        _row("E_psi", LINK, LINK, "ℰ_ψ", r"\mathcal{E}_\psi", STRICTLY_CAUSAL, FORCE, FORCE, "ψ from child to parent only"),
        _row("tau_bar", LINK, LINK, "τ̄", r"\bar\tau", MEMORYLESS, FORCE, FORCE, "projection I - G H"),
        _row("rotor", JOINT, JOINT, "J_m", "J_m", MEMORYLESS, FORCE, MOTION, "rotor inertia (armature)", True),
        _row("S", LINK, LINK, "S", "S", STRICTLY_CAUSAL, FORCE, FORCE, "shift: identity blocks from child to parent"),
        _row("Delta_phi", LINK, LINK, "Δ_φ", r"\Delta_\phi", MEMORYLESS, FORCE, FORCE, "diagonal of φ(parent, k)"),
        _row("Delta_psi", LINK, LINK, "Δ_ψ", r"\Delta_\psi", MEMORYLESS, FORCE, FORCE, "diagonal of ψ(parent, k)"),
        _row("L", LINK, JOINT, "L", "L", MEMORYLESS, FORCE, FORCE, "Δ_φ G"),
        _row("Phi", LINK, LINK, "Φ", r"\Phi", STRICTLY_CAUSAL, FORCE, FORCE, "φ S"),
        _row("Psi", LINK, LINK, "Ψ", r"\Psi", STRICTLY_CAUSAL, FORCE, FORCE, "ψ S"),
        _row("H_dot", JOINT, LINK, "Ḣ", r"\dot H", MEMORYLESS, FORCE, FORCE, "time derivative of H in body axes"),
        _row("spin", LINK, LINK, "V×", r"V\times", MEMORYLESS, MOTION, MOTION, "cross product with the link's velocity"),
        _row("gyro", LINK, LINK, "B_V", "B_V", MEMORYLESS, FORCE, MOTION, "gyroscopic matrix: B_V V = V×* M V"),
        _row("P_plus", LINK, LINK, "P⁺", "P^+", MEMORYLESS, FORCE, MOTION, "τ̄ P: what the parent feels of P", True),
        _row("Omega_d", LINK, LINK, "Ω_δ", r"\Omega_\delta", MEMORYLESS, FORCE, FORCE, "V_d ×*, V_d the velocity in the joint"),
        _row("omega", LINK, LINK, "ω̃", r"\tilde\omega", MEMORYLESS, EITHER, EITHER, "diag(w~, w~), w the link's spin; skew"),
        _row("P_dot", LINK, LINK, "Ṗ", r"\dot P", MEMORYLESS, FORCE, MOTION, "time derivative of P in body axes", True),
        _row("lambda_dot", LINK, LINK, "λ̇", r"\dot\lambda", MEMORYLESS, FORCE, MOTION, "Ṗ seen from the inboard side", True),
        _row("Pi", LINK, LINK, "Π", r"\Pi", MEMORYLESS, FORCE, MOTION, "Π + Π* = Ṗ: the half that skew C is made of"),
        _row("U_ring", LINK, JOINT, "Ů", r"\mathring{U}", MEMORYLESS, FORCE, MOTION, "d(P H*)/dt as the link moves: U̇ + V×* U"),
        _row("D_rate", JOINT, JOINT, "Θ", r"\Theta", MEMORYLESS, EITHER, EITHER, "(D^½)⁻¹ times the derivative of D^½"),
        _row("Om_dot", LINK, LINK, "Ω̇", r"\dot\Omega", MEMORYLESS, MOTION, FORCE, "time derivative of Ω in body axes", True),
        _row("Om", LINK, LINK, "Ω", r"\Omega", MEMORYLESS, MOTION, FORCE, "block diagonal of ψ* H* D⁻¹ H ψ", True),
    ]
)

BIAS = (  # vectors made of q and v, not given
    "vec:a@link",
    "vec:b@link",
    "vec:a_local@link",
    "vec:b_local@link",
    "vec:couple@joint",
    "vec:g@link",
)
MOVING = BIAS[:-1]  # those that depend on the velocity
VELOCITY = {"spin", "gyro", "H_dot", "Omega_d", "omega"}  # operators made of the links' velocities
RATED = {"P_dot", "lambda_dot", "Pi", "U_ring", "D_rate", "Om_dot"}  # and those made of the derivative of P

BIAS_SIDES = dict(zip(BIAS, (MOTION, FORCE, MOTION, FORCE, FORCE, MOTION), strict=True))
RATES = {"v", "qd", "dq", "thetadot", "beta", "a", "qdd", "thetaddot"}  # joint vectors that messages call rates,
TORQUES = {"tau", "T", "eps", "u"}  # and torques; nothing else depends on a name

_VECTOR = re.compile(r"vec:(.+)@(joint|link|frame|force|motion)")
_SYMBOL = re.compile(r"sym:(.+)@(joint|link)")
_SPACES = {"joint": JOINT, "link": LINK, "frame": FRAME(), FORCE: LINK, MOTION: LINK}


@lru_cache(maxsize=4096)
def letter(name: str) -> Letter:
    """The row of a letter, with or without its star: families are filled in, stars turn the row around."""
    if name.endswith("*"):
        return _turned(letter(name[:-1]))
    if name in LETTERS:
        return LETTERS[name]
    if match := _VECTOR.fullmatch(name):
        word, space = match.groups()
        return Letter(name, _SPACES[space], ONE, word, _upright(word), ANYWHERE, _side(name), EITHER, f"a {space} vector")
    if match := _SYMBOL.fullmatch(name):
        word, space = match.groups()
        where = _SPACES[space]
        return Letter(name, where, where, word, _upright(word), MEMORYLESS, EITHER, EITHER, f"any block diagonal on {space}s")
    if name.startswith("B["):
        frames, axes = frame_parts(name)
        inside = ", ".join(frames) + (" in own axes" if axes == "frame" else "")
        latex = rf"B_{{\text{{{escaped(inside)}}}}}"
        return Letter(name, LINK, FRAME(len(frames)), f"B({inside})", latex, ANYWHERE, FORCE, FORCE, "frames to links")
    if name.startswith("Bdot["):
        row = letter(name.replace("Bdot[", "B[", 1))
        return Letter(name, row.rows, row.cols, f"Ḃ{row.symbol[1:]}", rf"\dot {row.latex}", ANYWHERE, FORCE, FORCE, "dB/dt")
    if name.startswith("inv:"):
        number = name.removeprefix("inv:")
        return Letter(
            name, ANY, ANY, f"X{number}⁻¹", f"X_{{{number}}}^{{-1}}", ANYWHERE, EITHER, EITHER, "an inverse no rule knows"
        )
    raise StateError(f"{name!r} is not a letter of the algebra", "use one of " + ", ".join(LETTERS))


def _side(name: str) -> str:
    """Force or motion: what a bias vector is, what a vector over links says, or what the name of a joint vector suggests."""
    word, space = _VECTOR.fullmatch(name).groups()  # type: ignore[union-attr]
    if name in BIAS_SIDES:
        return BIAS_SIDES[name]
    if space in SIDES:
        return space
    return MOTION if space == "joint" and word in RATES else FORCE if space == "joint" and word in TORQUES else EITHER


def _turned(row: Letter) -> Letter:
    symbol = f"({row.symbol})*" if "½" in row.symbol else f"{row.symbol}*"
    latex = rf"\left({row.latex}\right)^*" if "^" in row.latex else f"{row.latex}^*"
    flip = {FORCE: MOTION, MOTION: FORCE, EITHER: EITHER}
    gives, takes = flip[row.takes], flip[row.gives]
    return Letter(row.name + "*", row.cols, row.rows, symbol, latex, row.structure.adjoint, gives, takes, row.meaning)


def adjoint_letter(name: str) -> str:
    """phi -> phi*, phi* -> phi, P -> P."""
    if name.endswith("*"):
        return name[:-1]
    return name if name in LETTERS and LETTERS[name].self_adjoint else name + "*"


def frame_letter(frames: Iterable[str], axes: str = "world") -> str:
    """The letter of B: "B[tool,elbow]"; "B[tool|frame]" in frame axes. Commas, bars and brackets in names are escaped.

    >>> frame_letter(["tool", "elbow"]), frame_letter(["tool"], "frame")
    ('B[tool,elbow]', 'B[tool|frame]')
    """
    names = ",".join(re.sub(r"([\\,|\]])", r"\\\1", frame) for frame in frames)
    return f"B[{names}{'|frame' if axes == 'frame' else ''}]"


def frame_parts(name: str) -> tuple[tuple[str, ...], str]:
    """The frames and axes of a letter B[...]: the inverse of `frame_letter`."""
    inside = name.removesuffix("*")[2:-1]
    axes = "frame" if inside.endswith("|frame") and not inside.endswith(r"\|frame") else "world"
    inside = inside.removesuffix("|frame") if axes == "frame" else inside
    parts = re.findall(r"(?:\\.|[^\\,])+", inside)
    return tuple(re.sub(r"\\(.)", r"\1", part) for part in parts), axes


def needs_velocity(name: str) -> bool:
    """Is the letter, or its adjoint, made of velocities?

    >>> needs_velocity("P_dot"), needs_velocity("Bdot[tool]*"), needs_velocity("vec:v@joint")
    (True, True, False)
    """
    bare = name.removesuffix("*")
    return bare in MOVING or bare in VELOCITY | RATED or bare.startswith("Bdot[")


def vector_parts(name: str) -> tuple[str, str] | None:
    """(name, space) of a vector's letter, or None."""
    match = _VECTOR.fullmatch(name.removesuffix("*"))
    return (match.group(1), match.group(2)) if match else None


def symbol_parts(name: str) -> tuple[str, str] | None:
    """(name, space) of an unknown block diagonal's letter, or None."""
    match = _SYMBOL.fullmatch(name.removesuffix("*"))
    return (match.group(1), match.group(2)) if match else None


def _upright(word: str) -> str:
    return word if word.isalpha() and len(word) == 1 else _GREEK.get(word, rf"\mathrm{{{escaped(word)}}}")


_GREEK = {name: "\\" + name for name in ("tau", "theta", "alpha", "beta", "lambda", "nu", "xi", "eta", "zeta")}
_GREEK["eps"] = r"\epsilon"
