"""`psiphi derive`: parse an operator expression and derive its loops.

The text is arithmetic on the robot's operators: names, calls of J, B, vector and derivative,
@ + - * / and .T .inv. Nothing else is evaluated.
"""

from __future__ import annotations

import ast
from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.text import nearest
from psiphi.algebra.derivatives.configuration_derivative import derivative
from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.rewriting.derivation import Derivation
from psiphi.algebra.rewriting.proof import prove
from psiphi.functions.expression_function import ExpressionFunction, function
from psiphi.robot.robot import Robot

HINT = (
    'write an expression such as "J @ mass.inv @ J.T", '
    'or an equation such as "psi == phi - psi @ K @ H @ phi"'
)


def derive(robot: Robot, text: str) -> ExpressionFunction:
    """The compiled function of an expression such as "J @ mass.inv @ J.T".

    J and B without a frame are those of "tool", or of the last frame.

    >>> import psiphi as pp
    >>> derive(pp.robots.puma560(), "J @ mass.inv @ J.T").sweeps
    3
    """
    return function(_parse(robot, text))


def prove_equation(robot: Robot, text: str) -> Derivation:
    """A proof of "mass == H @ phi @ M @ phi.T @ H.T + rotor", or a counter-example.

    >>> import psiphi as pp
    >>> bool(prove_equation(pp.robots.puma560(), "(I + H @ phi @ K).inv == I - H @ psi @ K"))
    True
    """
    left, _, right = text.partition("==")
    return prove(_parse(robot, left), _parse(robot, right))


def _parse(robot: Robot, text: str) -> Expression:
    try:
        value = _ExpressionReader(robot, text).read(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as error:
        raise StateError(f"{text!r} is not an expression: {error.msg}", HINT) from error
    except RecursionError as error:
        raise StateError(
            f"an expression of {len(text)} characters is nested too deeply", "shorten it"
        ) from error
    if not isinstance(value, Expression):
        raise StateError(f"{text!r} is a number", "use an operator: H, phi, M, J, ...")
    if value.model is None:
        raise StateError(f"{text!r} has no operator of the robot", "use H, phi, M, mass, J, ...")
    return value


class _ExpressionReader:
    """Evaluates the syntax tree of an expression on the operators of one robot."""

    def __init__(self, robot: Robot, text: str):
        self.robot, self.text, self.s = robot, text, robot.operators

    def read(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("T", "inv")
            and not isinstance(node.value, ast.Constant)
        ):
            return getattr(self.read(node.value), node.attr)
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "s"
        ):
            return self._name(node.attr)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.read(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(
            node.op, ast.MatMult | ast.Add | ast.Sub | ast.Mult | ast.Div
        ):
            try:
                return self._binary(node)
            except (TypeError, ZeroDivisionError) as error:
                raise StateError(
                    f"{self._source_of(node)!r} has no value", "divide by nonzero numbers only"
                ) from error
        if isinstance(node, ast.Call):
            return self._call(node)
        raise StateError(
            f"{self._source_of(node)!r} is not part of the algebra",
            "use names, @ + - * /, .T and .inv",
        )

    def _source_of(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.text.strip(), node) or self.text  # type: ignore[arg-type]

    def _binary(self, node: ast.BinOp) -> Any:
        left, right = self.read(node.left), self.read(node.right)
        if isinstance(node.op, ast.MatMult):
            return left @ right
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        return left * right if isinstance(node.op, ast.Mult) else left / right

    def _name(self, name: str) -> Any:
        if name == "J":
            return self.s.J(self._default_frame())
        if name == "B":
            return self.s.B(self._default_frame())
        if name in ("tau", "v", "qdd", "x"):
            return vector(name)
        known = [*self.s.names, "mass", "mass_half", "J", "B"]
        if name in known:
            return getattr(self.s, name)
        raise StateError(
            f"there is no operator {name!r}", nearest(name, [*known, "tau", "v", "qdd", "x"])
        )

    def _call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name == "derivative" and node.args:
            return self._derivative(node)
        names = [
            arg.value
            for arg in node.args
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
        ]
        if name not in ("J", "B", "vector") or len(names) != len(node.args) or node.keywords:
            remedy = "use J('frame'), B('frame'), vector('name') or derivative(x, 'q')"
            raise StateError(f"{name}(...) is not part of the algebra", remedy)
        return vector(*names) if name == "vector" else getattr(self.s, name)(*names)

    def _derivative(self, node: ast.Call) -> Any:
        """derivative(e, 'q'), derivative(e, 'v', along='x')."""
        arguments = {f"{i}": arg for i, arg in enumerate(node.args[1:])} | {
            f"{keyword.arg}": keyword.value for keyword in node.keywords
        }
        values = {
            name: arg.value for name, arg in arguments.items() if isinstance(arg, ast.Constant)
        }
        if set(values) != set(arguments) or not set(values) <= {"0", "1", "by", "along"}:
            raise StateError(
                f"{self._source_of(node)!r} is not a valid derivative",
                "write derivative(mass @ v, 'q'), or with along='x'",
            )
        by, along = values.get("0", values.get("by")), values.get("1", values.get("along"))
        return derivative(self.read(node.args[0]), by, along)  # type: ignore[arg-type]

    def _default_frame(self) -> str:
        """ "tool" if the robot has such a frame, else its last frame."""
        return "tool" if "tool" in self.robot.frames else list(self.robot.frames)[-1]
