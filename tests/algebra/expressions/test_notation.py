"""How expressions and loops are printed."""

import psiphi as pp


def test_one_letter_has_one_meaning_in_one_print():
    """Joint accelerations are called a at the door, and so is the bias acceleration in the papers:
    v̇ in print, and a."""
    arm = pp.robots.puma560()
    s, x = arm.operators, pp.vector
    assert (
        str(s.H @ s.phi @ s.M @ s.phi.T @ (s.H.T @ x("a") + s.a) + x("b"))
        == "H φ M φ* (H* v̇ + a) + b′"
    )
    assert (s.mass @ x("a")).latex().endswith(r"\dot v")
    for name in ("forward_dynamics", "FD4", "kalman"):
        said = arm.function(name).explain()
        answers = {
            line.strip().split(" = ")[0].removesuffix("(k)")
            for line in said.splitlines()
            if " = " in line
        }
        assert "v̇" in answers and "a" not in answers, name
    loops = pp.function(s.mass @ x("e") + s.mass.inv @ x("z")).explain()
    made = [line.strip().split("(k) = ")[0] for line in loops.splitlines() if "(k) = " in line]
    assert len(set(made)) == len(made) and not {"e", "z"} & set(made), (
        "names of a user are not used for anything else"
    )
