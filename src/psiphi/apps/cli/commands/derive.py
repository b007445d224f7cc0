"""`psiphi derive`."""

from __future__ import annotations

import argparse

from psiphi.apps.cli.robot_argument import ROBOT, base_argument, load

UNPROVED = 1  # the exit code of a claim that is not proved

EXAMPLES = """\
examples:
  psiphi derive "J @ mass.inv @ J.T" --robot puma560      the operational-space inertia's inverse, in O(N)
  psiphi derive "mass.inv @ tau"                          joint accelerations of torques, without the matrix
  psiphi derive "mass.inv @ (tau - H @ phi @ (M @ phi.T @ a + b))"
  psiphi derive "derivative(mass @ v, 'q')"               how M(q) v changes with q: a matrix
  psiphi derive "(I + H @ phi @ K).inv == I - H @ psi @ K"  a proof, or a counter-example (exit code 1)

Operators: H phi psi M P D G K E_phi E_psi tau_bar rotor I mass; vectors a b tau v qdd x; J and B of a frame, as in J('tool').
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "expression",
        metavar="EXPRESSION",
        help='operators with @ + - .T .inv, such as "J @ mass.inv @ J.T", or two that are to be equal: "A == B"',
    )
    parser.add_argument("--robot", default="puma560", help=f"{ROBOT} (default: %(default)s)")
    base_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print how an operator expression becomes loops on a robot, or the proof that two are equal."""
    robot = load(args.robot, args.base, args.flexible)
    from psiphi.apps.cli.expression_parser import claimed, derive

    if "==" in args.expression:
        proof = claimed(robot, args.expression)
        print(proof)
        return 0 if proof else UNPROVED
    print(derive(robot, args.expression).explain())
    return 0
