"""Forward dynamics as generated C and as Pinocchio's C++ `aba`, in one process with one compiler.

    python benchmarks/c_beside_pinocchio.py [--robots ur5 panda] [--eigen FOLDER]

Needs `pip install pin cmeel-eigen`, c++ and cc. Pinocchio is compiled from its headers with -O3
-march=native -DNDEBUG, with aligned revolute joints where possible; the C code is that of
`psiphi emit ROBOT forward_dynamics --trig own` with -O3 -march=native -ffp-contract=fast. Both
compute the same random states in alternating rounds; the result is the minimum over the rounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import psiphi as pp
from psiphi.backends.c.c_files import c_files
from psiphi_bench.peers.pinocchio_peer import pinocchio_model

FLAGS = ["-O3", "-march=native"]
MACROS = [
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
]  # required by Pinocchio
PROGRAM = """\
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <chrono>
#include <cstdio>
#include <vector>
#include "fd.h"

int main() {{
    namespace p = pinocchio;
    p::Model model;
    p::JointIndex last = 0;
{model}
    p::Data data(model);
    const int n = {n}, nv = {nv};
    std::vector<Eigen::VectorXd> q(n), v(n), tau(n), a(n);
    static const double numbers[] = {{{numbers}}};
    for (int i = 0; i < n; ++i) {{
        const double *x = numbers + 3 * nv * i;
        q[i] = Eigen::Map<const Eigen::VectorXd>(x, nv);
        v[i] = Eigen::Map<const Eigen::VectorXd>(x + nv, nv);
        tau[i] = Eigen::Map<const Eigen::VectorXd>(x + 2 * nv, nv);
        a[i].resize(nv);
    }}
    using clock = std::chrono::steady_clock;
    double ours = 1e9, theirs = 1e9, error = 0;
    for (int round = 0; round < {rounds}; ++round) {{
        auto t0 = clock::now();
        for (int i = 0; i < n; ++i) fd(q[i].data(), v[i].data(), tau[i].data(), a[i].data());
        auto t1 = clock::now();
        double sum = 0;
        for (int i = 0; i < n; ++i)
            sum += p::aba(model, data, q[i], v[i], tau[i], p::Convention::LOCAL)[0];
        auto t2 = clock::now();
        if (sum == 12345.678) std::puts("");
        ours = std::min(ours, std::chrono::duration<double>(t1 - t0).count());
        theirs = std::min(theirs, std::chrono::duration<double>(t2 - t1).count());
    }}
    for (int i = 0; i < n; ++i) {{
        const auto &right = p::aba(model, data, q[i], v[i], tau[i]);
        error = std::max(error, (right - a[i]).cwiseAbs().maxCoeff() / right.cwiseAbs().maxCoeff());
    }}
    std::printf("%.1f %.1f %.3g\\n", 1e9 * ours / n, 1e9 * theirs / n, error);
}}
"""


def model_source(model: Any) -> str:
    """C++ code that builds a Pinocchio model."""
    lines = []
    for i in range(1, model.njoints):
        M, Y, joint = model.jointPlacements[i], model.inertias[i], model.joints[i]
        kind = joint.shortname()
        axis = (
            f"(Eigen::Vector3d({_row(joint.extract().axis)}))"
            if kind.endswith("Unaligned")
            else "()"
        )
        rotation = f"(Eigen::Matrix3d() << {_row(M.rotation.ravel())}).finished()"
        place = f"p::SE3({rotation}, Eigen::Vector3d({_row(M.translation)}))"
        inertia = f"(Eigen::Matrix3d() << {_row(Y.inertia.ravel())}).finished()"
        lines.append(
            f'    last = model.addJoint({model.parents[i]}, p::{kind}{axis}, {place}, "j{i}");'
        )
        lever = f"Eigen::Vector3d({_row(Y.lever)})"
        lines.append(
            f"    model.appendBodyToJoint(last, p::Inertia({float(Y.mass)!r}, {lever}, {inertia}));"
        )
    return "\n".join(lines)


def _row(numbers: np.ndarray) -> str:
    return ", ".join(repr(float(x)) for x in np.ravel(numbers))


def measure(
    name: str, include: list[Path], n: int = 200, rounds: int = 300
) -> tuple[float, float, float]:
    """Nanoseconds per call of psiphi and of Pinocchio, and the relative difference."""
    robot, rng = pp.load(name), np.random.default_rng(0)
    if robot.nq != robot.nv:
        sys.exit(f"{name} has quaternions; use a robot with nq = nv")
    states = np.concatenate(
        [[*robot.random(rng), *rng.standard_normal(2 * robot.nv)] for _ in range(n)]
    )
    code = robot.function("forward_dynamics").source.code
    values = {
        "model": model_source(pinocchio_model(robot)),
        "n": n,
        "nv": robot.nv,
        "rounds": rounds,
        "numbers": _row(states),
    }
    with tempfile.TemporaryDirectory() as folder:
        for file, text in (
            c_files(code, "fd", name, [], trig="own") | {"main.cpp": PROGRAM.format(**values)}
        ).items():
            Path(folder, file).write_text(text, encoding="utf-8")
        headers = [word for path in include for word in ("-isystem", str(path))]
        ours = ["cc", "-std=c99", *FLAGS, "-ffp-contract=fast", "-c", "fd.c"]
        theirs = [
            "c++",
            "-std=c++17",
            *FLAGS,
            "-DNDEBUG",
            *MACROS,
            *headers,
            "main.cpp",
            "fd.o",
            "-o",
            "main",
        ]
        for command in (ours, theirs, ["./main"]):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)
            if done.returncode:
                sys.exit(done.stderr[-3000:])
    ours_ns, theirs_ns, error = map(float, done.stdout.split())
    return ours_ns, theirs_ns, error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="*", default=["ur5", "panda"])
    parser.add_argument(
        "--eigen", type=Path, help="the folder with Eigen/ (default: that of cmeel-eigen)"
    )
    args = parser.parse_args()
    found = importlib.util.find_spec("pinocchio")
    if found is None or found.origin is None:
        sys.exit("pinocchio is not installed: pip install pin")
    prefix = (
        next(path for path in Path(found.origin).parents if path.name == "cmeel.prefix") / "include"
    )
    for robot in args.robots:
        ours, theirs, error = measure(robot, [prefix, args.eigen or prefix / "eigen3"])
        print(
            f"{robot}: C {ours:.0f} ns, Pinocchio's aba {theirs:.0f} ns: {theirs / ours:.1f}x; "
            f"difference {error:.1g}"
        )
