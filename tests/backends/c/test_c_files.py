"""C for controllers: strict compilers take it, sanitizers find nothing, its test program knows the
right numbers."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.apps.cli import main as cli
from psiphi.backends.c.c_files import c_files
from psiphi.backends.c.c_source import max_live
from psiphi.robot.matrix_by_columns import evaluate, exported_code
from psiphi.simulation.compiled_rollout.step_blocks import trace
from tests import zoo

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
CHECKED = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.fixture(scope="module")
def cc():
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) on this machine")

    def compile_to(target, *sources, options=()):
        words = [compiler, *STRICT, *options, "-o", target, *sources, "-lm"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return target

    return compile_to


FILES = [
    ("ur5", "forward_dynamics", []),
    ("anymal_c", "forward_dynamics", ["--trig", "own"]),
    ("iiwa14", "jacobian", ["--frame", "tool", "--type", "float", "--trig", "own"]),
    ("panda", "inverse_dynamics", ["--jacobian", "q, v", "--name", "panda_id"]),
    ("stanford_arm", "forward_dynamics", ["--vjp", "tau"]),
    ("cartpole", "potential_energy", []),
    ("pelican", "inverse_dynamics", ["--free", "mass"]),
]


@pytest.mark.parametrize(("robot", "function", "options"), FILES)
def test_the_files_compile_strictly_and_their_test_program_agrees(
    cc, tmp_path, capsys, robot, function, options
):
    assert cli.main(["emit", robot, function, "--files", str(tmp_path), *options]) == 0
    name = "panda_id" if "panda_id" in options else function
    sources = [tmp_path / f"{name}.c", tmp_path / f"{name}_test.c"]
    program = cc(tmp_path / "test", *sources, options=CHECKED)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "largest error" in done.stdout, done.stdout + done.stderr
    text = sources[0].read_text(encoding="utf-8")
    assert not ("--trig" in options and re.search(r"\b(sin|cos)f?\(", text)), (
        "none of the C library's"
    )
    if name == "forward_dynamics" and robot == "ur5":  # a test program that cannot fail is none
        head, body = text.split("\n{\n", 1)
        sources[0].write_text(head + "\n{\n" + body.replace(" + ", " - ", 1), encoding="utf-8")
        assert (
            subprocess.run(
                [cc(tmp_path / "wrong", *sources)], capture_output=True, timeout=60
            ).returncode
            == 1
        )


def test_free_numbers_are_a_table_to_be_changed(cc, tmp_path, capsys):
    """The robot's own at first; with another load written in by hand, the function is that
    robot's."""
    words = ["emit", "pelican", "gravity", "--free", "mass", "--files", str(tmp_path), "--constant"]
    assert cli.main(words) == 0
    source, test = tmp_path / "gravity.c", tmp_path / "gravity_test.c"
    assert (
        subprocess.run(
            [cc(tmp_path / "test", source, test)], capture_output=True, timeout=60
        ).returncode
        == 0
    )
    text = source.read_text(encoding="utf-8")
    light = pp.load("pelican").free("mass")
    own, heavy = light.parameters(), light.parameters() + np.array([0.5, 2.0])
    old, new = (", ".join(map(repr, map(float, x))) for x in (own, heavy))
    assert f"static const double gravity_parameters[2] = {{\n    {old}}};" in text
    assert "void gravity(const double *q, double *tau);" in (tmp_path / "gravity.h").read_text(
        encoding="utf-8"
    )
    source.write_text(text.replace(old, new), encoding="utf-8")
    library = ctypes.CDLL(str(cc(tmp_path / "f.so", source, options=["-shared", "-fPIC"])))
    q, tau = np.array([0.3, -0.8]), np.empty(2)
    library.gravity(q.ctypes.data_as(ctypes.c_void_p), tau.ctypes.data_as(ctypes.c_void_p))
    assert np.allclose(tau, light.at(heavy).gravity(q), rtol=1e-14)


@pytest.mark.parametrize("name", ["mass_matrix", "mass_matrix_factors", "coriolis"])
def test_matrices_of_a_large_robot_are_loops_over_columns(cc, tmp_path, name):
    robot = pp.Robot.of(zoo.chain("c", ["revolute", "prismatic"] * 35, seed=1))
    function, rng = robot.function(name), np.random.default_rng(0)
    given = [robot.random(rng), *(rng.standard_normal(70) for _ in function.inputs[1:])]
    right = evaluate(robot, function, given)
    for file, text in c_files(exported_code(robot, function), "f", name, [(given, right)]).items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    assert (tmp_path / "f.c").stat().st_size < 160_000
    done = subprocess.run(
        [cc(tmp_path / "t", tmp_path / "f.c", tmp_path / "f_test.c")],
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0
    for error, size in re.findall(r"largest error (\S+) of (\S+)", done.stdout.decode()):
        assert float(error) <= 1e-14 * float(size)
    if name == "mass_matrix":
        assert np.allclose(
            right[0], robot.mass_matrix(given[0]), rtol=0, atol=1e-13 * right[0].max()
        )
    if name == "coriolis":
        assert np.allclose(
            right[0] @ given[1], robot.bias(*given) - robot.gravity(given[0]), rtol=0, atol=1e-10
        )


@pytest.mark.parametrize(("char", "within", "reach"), [("d", 3e-16, 9.9e4), ("f", 1.2e-7, 7.9e3)])
def test_own_sines_and_cosines(cc, tmp_path, char, within, reach):
    """As near as a rounding or two, up to where they refuse."""
    code = trace("turns", {"x": 1}, lambda x: {"y": [x[0].sin(), x[0].cos()]})
    kind = np.dtype(char)
    for file, text in c_files(code, "turns", "sines", [], char, "own").items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    library = ctypes.CDLL(
        str(cc(tmp_path / "turns.so", tmp_path / "turns.c", options=["-O2", "-shared", "-fPIC"]))
    )
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            rng.uniform(-4, 4, 20_000),
            rng.uniform(-reach, reach, 20_000),
            np.arange(-8, 9) * np.pi / 4,
            [0.0],
        ]
    )
    x = np.concatenate([x, [2 * reach, -2 * reach, np.inf, -np.inf, np.nan]]).astype(kind)
    y = np.empty((len(x), 2), dtype=kind)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (x, y)]
    library.turns_batch(ctypes.c_size_t(len(x)), *pointers)
    assert np.isnan(y[-5:]).all()
    right = np.stack([np.sin(x[:-5].astype(float)), np.cos(x[:-5].astype(float))], axis=-1)
    assert np.abs(y[:-5] - right).max() < within


def test_numbers_that_are_alive():
    """a b + c d needs two at a time after its products; what goes out stays."""
    sums = trace("sums", {"x": 4}, lambda x: {"y": [x[0] * x[1] + x[2] * x[3]]})
    assert max_live(sums) == 3  # two products, and the sum while they are read
    assert max_live(trace("copies", {"x": 2}, lambda x: {"y": [x[0], x[1]]})) == 0


def test_casadi_takes_the_file_as_it_is(cc, tmp_path, capsys):
    casadi = pytest.importorskip("casadi", reason="casadi is not installed (pip install casadi)")
    robot, rng = pp.load("panda"), np.random.default_rng(0)
    given = robot.random(rng), rng.standard_normal(9), rng.standard_normal(9)
    assert (
        cli.main(
            [
                "emit",
                "panda",
                "forward_dynamics",
                "--target",
                "casadi",
                "-o",
                str(tmp_path / "fd.c"),
            ]
        )
        == 0
    )
    f = casadi.external(
        "forward_dynamics",
        str(cc(tmp_path / "fd.so", tmp_path / "fd.c", options=["-shared", "-fPIC"])),
    )
    assert (f.name_in(), f.name_out()) == (["q", "v", "tau"], ["a"])
    assert np.abs(np.array(f(*given)).ravel() - robot.forward_dynamics(*given)).max() < 1e-12
    symbols = [casadi.MX.sym(name, 9) for name in f.name_in()]
    slopes = casadi.Function("slopes", symbols, [casadi.jacobian(f(*symbols), x) for x in symbols])(
        *given
    )
    for mine, right in zip(
        slopes, robot.function("forward_dynamics").jacobian()(*given), strict=True
    ):
        assert np.abs(np.array(mine) - right).max() < 1e-12 * np.abs(right).max()
    assert (
        np.abs(
            np.array(f(given[0], 0, 0)).ravel()
            - robot.forward_dynamics(given[0], np.zeros(9), np.zeros(9))
        ).max()
        < 1e-12
    )


ACADOS = """\
#include <stdio.h>
int fd(const double **, double **, int *, double *, void *);
int fd_work(int *, int *, int *, int *);
const int *fd_sparsity_in(int);
const int *fd_sparsity_out(int);
int fd_n_in(void), fd_n_out(void);
int jac_fd(const double **, double **, int *, double *, void *);
int jac_fd_n_in(void), jac_fd_n_out(void);
const int *jac_fd_sparsity_out(int);
int main(void) {
    static double x[3][2] = {{0.3, -0.8}, {0.1, 0.2}, {1.0, -2.0}}, a[2], J[3][4];
    const double *arg[4] = {x[0], x[1], x[2], a};
    double *res[1] = {a}, *jac[3] = {J[0], J[1], J[2]};
    int sizes[4];
    if (fd_work(&sizes[0], &sizes[1], &sizes[2], &sizes[3]) || fd(arg, res, 0, 0, 0) || jac_fd(arg, jac, 0, 0, 0)) return 1;
    printf("%d %d %d %d", fd_n_in(), fd_n_out(), jac_fd_n_in(), jac_fd_n_out());
    for (int k = 0; k < 4; ++k) printf(" %d", sizes[k]);
    for (int k = 0; k < 3; ++k) printf(" %d", fd_sparsity_in(1)[k]);
    for (int k = 0; k < 3; ++k) printf(" %d", fd_sparsity_out(0)[k]);
    for (int k = 0; k < 3; ++k) printf(" %d", jac_fd_sparsity_out(2)[k]);
    printf("\\n%.17g %.17g\\n%.17g %.17g %.17g %.17g\\n", a[0], a[1], J[0][0], J[0][1], J[0][2], J[0][3]);
    return 0;
}
"""  # noqa: E501


def test_acados_takes_the_file_as_it_is(cc, tmp_path, capsys):
    """The types of its `external_function_casadi`: it counts with int, and asks for the sizes of
    everything."""
    words = [
        "emit",
        "pelican",
        "forward_dynamics",
        "--target",
        "acados",
        "--name",
        "fd",
        "-o",
        str(tmp_path / "fd.c"),
    ]
    assert cli.main(words) == 0
    (tmp_path / "main.c").write_text(ACADOS, encoding="utf-8")
    done = subprocess.run(
        [cc(tmp_path / "t", tmp_path / "fd.c", tmp_path / "main.c")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    counts, a, J = (np.array(line.split(), dtype=float) for line in done.stdout.splitlines())
    assert counts.tolist() == [3, 1, 4, 3, 3, 1, 0, 0, 2, 1, 1, 2, 1, 1, 2, 2, 1]
    function, given = (
        pp.load("pelican").function("forward_dynamics"),
        ([0.3, -0.8], [0.1, 0.2], [1.0, -2.0]),
    )
    assert np.allclose(a, function(*given), rtol=1e-14) and np.allclose(
        J.reshape(2, 2).T, function.jacobian("q")(*given), rtol=1e-13
    )


def test_casadi_has_matrices_by_columns_and_says_where_there_is_no_jacobian(cc, tmp_path, capsys):
    casadi = pytest.importorskip("casadi", reason="casadi is not installed (pip install casadi)")
    robot = pp.load("iiwa14")
    q = robot.random(seed=1)
    words = [
        "emit",
        "iiwa14",
        "jacobian",
        "--frame",
        "tool",
        "--target",
        "casadi",
        "--name",
        "J",
        "-o",
        str(tmp_path / "J.c"),
    ]
    assert cli.main(words) == 0
    J = casadi.external(
        "J", str(cc(tmp_path / "J.so", tmp_path / "J.c", options=["-shared", "-fPIC"]))
    )
    assert (
        J.size_out(0) == (6, 7) and np.abs(np.array(J(q)) - robot.jacobian(q, "tool")).max() < 1e-14
    )
    x = casadi.MX.sym("x", 7)
    slope = np.array(
        casadi.Function("slope", [x], [casadi.jacobian(casadi.vec(J(x)), x)])(q)
    ).reshape(7, 6, 7)
    assert (
        np.abs(slope.swapaxes(0, 1) - robot.function("jacobian", ("tool",)).jacobian()(q)).max()
        < 1e-14
    )
    assert cli.main(["emit", "g1", "gravity", "--target", "casadi"]) == 0
    out = capsys.readouterr()
    assert "'root_joint' has quaternions" in out.err and "jac_gravity" not in out.out


def test_casadi_has_no_jacobian_where_rates_are_not_those_of_q(tmp_path, capsys):
    """A planar joint's q and v are three numbers each, and v is in body axes: the tangent's
    Jacobian is not CasADi's."""
    (tmp_path / "cart.urdf").write_text(
        """<robot name="cart"><link name="ground"/><link name="cart"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="glide" type="planar"><parent link="ground"/><child link="cart"/><axis xyz="0 1 0"/></joint></robot>""",  # noqa: E501
        encoding="utf-8",
    )
    assert (
        cli.main(["emit", str(tmp_path / "cart.urdf"), "potential_energy", "--target", "casadi"])
        == 0
    )
    out = capsys.readouterr()
    assert "'glide' has quaternions" in out.err and "jac_potential_energy" not in out.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trig", "own"], "--files"),
        (["--files", "x", "--target", "wasm"], "--files writes C"),
        (["--files", "x", "-o", "y"], "--files writes C"),
        (["--jacobian", "w"], "not an argument"),
        (["--target", "casadi", "--type", "float"], "double"),
        (["--files", "/dev/null/x"], "cannot write"),
        (["--files", "x", "--constant"], "add --files FOLDER and --free"),
        (["--free", "mass", "--constant"], "add --files FOLDER and --free"),
    ],
)
def test_what_does_not_go_together_is_refused(capsys, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["emit", "pelican", "gravity", *words]) != 0
    assert said in capsys.readouterr().err


def test_junk_is_refused():
    code = pp.load("pelican").function("gravity").code
    for name in ("2x", "double", "", None, 3):
        with pytest.raises(StateError, match="not a valid name in C"):
            c_files(code, name, "", [])
    with pytest.raises(StateError, match="libm"):
        c_files(code, "g", "", [], trig="table")
