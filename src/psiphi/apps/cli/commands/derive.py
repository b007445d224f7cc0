"""`psiphi derive`."""

from __future__ import annotations

import argparse

from psiphi.apps.cli.robot_argument import ROBOT, base_argument, load

UNPROVED = 1  # exit code of an equation that is not proved

EXAMPLES = """\
examples:
  psiphi derive "J @ mass.inv @ J.T" --robot puma560  inverse operational-space inertia, in O(N)
  psiphi derive "mass.inv @ tau"                      joint accelerations, without the matrix
  psiphi derive "mass.inv @ (tau - H @ phi @ (M @ phi.T @ a + b))"
  psiphi derive "derivative(mass @ v, 'q')"           derivative of M(q) v by q: a matrix
  psiphi derive "(I + H @ phi @ K).inv == I - H @ psi @ K"
                                                      a proof, or a counter-example (exit code 1)

Operators: H phi psi M P D G K E_phi E_psi tau_bar rotor I mass; vectors: a b tau v qdd x;
J and B of a frame: J('tool'), B('tool').
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "expression",
        metavar="EXPRESSION",
        help='operators with @ + - .T .inv, such as "J @ mass.inv @ J.T", or an equation "A == B"',
    )
    parser.add_argument("--robot", default="puma560", help=f"{ROBOT} (default: %(default)s)")
    base_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print the derivation of an expression for a robot, or the proof of an equation."""
    robot = load(args.robot, args.base, args.flexible)
    from psiphi.apps.cli.expression_parser import derive, prove_equation

    if "==" in args.expression:
        proof = prove_equation(robot, args.expression)
        print(proof)
        return 0 if proof else UNPROVED
    print(derive(robot, args.expression).explain())
    return 0
