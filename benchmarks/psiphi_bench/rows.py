"""The table of the benchmark. A new row needs a generator of `Measurement`."""

from __future__ import annotations

from psiphi_bench.row import BenchmarkRow
from psiphi_bench.rows_of import (
    closed_chains,
    contacts,
    correctness,
    diagonal_form,
    fresh_process,
    gradients,
    long_chains,
    motions,
    operation_counts,
    parameter_inputs,
    run_time,
)

ARMS, FLOATING = ("UR5", "Panda"), ("G1", "Talos")

ROWS = (  # rows that take minutes are last
    BenchmarkRow(
        "fd",
        "forward dynamics, batch 4096",
        25,
        "x",
        run_time.batch("forward_dynamics", ARMS, "fixed"),
        at_least=True,
    ),
    BenchmarkRow(
        "id",
        "inverse dynamics, batch 4096",
        20,
        "x",
        run_time.batch("inverse_dynamics", ARMS, "fixed"),
        at_least=True,
    ),
    BenchmarkRow(
        "fd-free",
        "forward dynamics, free base",
        12,
        "x",
        run_time.batch("forward_dynamics", FLOATING, "free"),
        at_least=True,
    ),
    BenchmarkRow(
        "one-call", "one Python call, ratio to pinocchio.aba", 0.5, "x", run_time.one_call
    ),
    BenchmarkRow("one-calls", "one Python call, ratio to Pinocchio", None, "x", run_time.one_calls),
    BenchmarkRow(
        "one-call-mujoco",
        "one Python call, ratio to mj_forward",
        None,
        "x",
        run_time.one_call_mujoco,
    ),
    BenchmarkRow(
        "dfd",
        "d FD/d(q, v, tau), batch 4096",
        30,
        "x",
        gradients.matrices("forward_dynamics", ("UR5",), "fixed"),
        True,
    ),
    BenchmarkRow(
        "dfd-panda",
        "d FD/d(q, v, tau)",
        22,
        "x",
        gradients.matrices("forward_dynamics", ("Panda",), "fixed"),
        True,
    ),
    BenchmarkRow(
        "dfd-free",
        "d FD, free base",
        12,
        "x",
        gradients.matrices("forward_dynamics", FLOATING, "free"),
        True,
    ),
    BenchmarkRow(
        "did",
        "d ID/d(q, v, a), batch 4096",
        30,
        "x",
        gradients.matrices("inverse_dynamics", ("UR5",), "fixed"),
        True,
    ),
    BenchmarkRow(
        "did-panda",
        "d ID/d(q, v, a)",
        22,
        "x",
        gradients.matrices("inverse_dynamics", ("Panda",), "fixed"),
        True,
    ),
    BenchmarkRow(
        "did-free",
        "d ID, free base",
        15,
        "x",
        gradients.matrices("inverse_dynamics", FLOATING, "free"),
        True,
    ),
    BenchmarkRow(
        "one-dfd", "one Python call of d FD, ratio to Pinocchio", 0.2, "x", gradients.one_call
    ),
    BenchmarkRow(
        "inertias", "inertias as inputs, ratio to constants", None, "x", parameter_inputs.inertias
    ),
    BenchmarkRow("masses", "4096 different masses, one call", 1, "ms", parameter_inputs.masses),
    BenchmarkRow(
        "regressor",
        "torque regressor, ratio to Pinocchio",
        15,
        "x",
        parameter_inputs.regressors,
        at_least=True,
    ),
    BenchmarkRow(
        "osim",
        "J M^-1 J*, batch 4096, free base",
        15,
        "x",
        run_time.operational_space,
        at_least=True,
    ),
    BenchmarkRow(
        "threads", "two threads, batch 100 000", 1.8, "x", run_time.two_threads, at_least=True
    ),
    BenchmarkRow(
        "compile", "first call, empty cache", 0.4, "s", fresh_process.compile_time("UR5", "fixed")
    ),
    BenchmarkRow(
        "compile-free",
        "first call, empty cache, free base",
        4,
        "s",
        fresh_process.compile_time("G1", "free"),
    ),
    BenchmarkRow("warm", "first call, warm cache", 0.1, "s", fresh_process.warm_start),
    BenchmarkRow(
        "chain", "3-D chain, time per link, ratio to N = 10", 4, "x", long_chains.run_time
    ),
    BenchmarkRow("chain-compile", "3-D chain, first call", 5, "s", long_chains.compile_time),
    BenchmarkRow(
        "ten-thousand",
        "chain of 10 000 links, total time",
        10,
        "s",
        long_chains.ten_thousand_seconds,
    ),
    BenchmarkRow(
        "ten-thousand-memory",
        "chain of 10 000 links, memory",
        500,
        "MB",
        long_chains.ten_thousand_memory,
    ),
    BenchmarkRow(
        "flops-fd",
        "flops of forward dynamics",
        1,
        "x",
        operation_counts.flops("forward_dynamics", 426, -576),
    ),
    BenchmarkRow(
        "flops-id",
        "flops of inverse dynamics",
        1,
        "x",
        operation_counts.flops("inverse_dynamics", 174, -134),
    ),
    BenchmarkRow("closed", "closed chain, batch 4096", 20, "x", closed_chains.batch, at_least=True),
    BenchmarkRow(
        "closed-dense",
        "closed chains, error to dense KKT",
        1e-9,
        "",
        closed_chains.with_dense,
    ),
    BenchmarkRow(
        "closed-pinocchio",
        "closed chains, error to Pinocchio",
        1e-8,
        "",
        closed_chains.with_pinocchio,
    ),
    BenchmarkRow(
        "closed-links",
        "closed chain, flops for twice the links",
        2.1,
        "x",
        closed_chains.growth_in_links,
    ),
    BenchmarkRow(
        "closed-arms",
        "closed chain, flops for twice the arms",
        8,
        "x",
        closed_chains.growth_in_arms,
    ),
    BenchmarkRow(
        "closed-residual", "constraints over 10 s at 1 kHz", 1e-9, "", closed_chains.residual
    ),
    BenchmarkRow("import", "import psiphi", 0.3, "s", fresh_process.imports),
    BenchmarkRow("help", "psiphi --help", 0.3, "s", fresh_process.command_line),
    BenchmarkRow(
        "agreement", "every function, error to Pinocchio", 1e-10, "", correctness.with_pinocchio
    ),
    BenchmarkRow(
        "agreement-slopes",
        "d FD, d ID, error to Pinocchio",
        1e-9,
        "",
        correctness.derivatives_with_pinocchio,
    ),
    BenchmarkRow(
        "agreement-mujoco", "every function, error to MuJoCo", 1e-8, "", correctness.with_mujoco
    ),
    BenchmarkRow(
        "trees", "random trees, error to Pinocchio", 1e-10, "", correctness.trees_with_pinocchio
    ),
    BenchmarkRow(
        "trees-mujoco", "random trees, error to MuJoCo", 1e-8, "", correctness.trees_with_mujoco
    ),
    BenchmarkRow(
        "urdf",
        "URDF files read correctly or rejected",
        77,
        "files",
        correctness.urdf_files,
        at_least=True,
    ),
    BenchmarkRow(
        "rollout", "rollouts of RK4, 4096 x 1000 steps", 15, "x", motions.rollouts, at_least=True
    ),
    BenchmarkRow(
        "energy",
        "energy drift in 10 s, RK4 at 1 kHz",
        1e-7,
        "",
        motions.energy_drift(adaptive=False),
    ),
    BenchmarkRow(
        "energy-adaptive",
        "energy drift in 10 s, adaptive",
        1e-10,
        "",
        motions.energy_drift(adaptive=True),
    ),
    BenchmarkRow("order", "order by step halving", 3.8, "", motions.order, at_least=True),
    BenchmarkRow(
        "momentum",
        "momentum drift in 10 s, RK4 at 1 kHz",
        1e-8,
        "",
        motions.momentum_drift(adaptive=False),
    ),
    BenchmarkRow(
        "momentum-adaptive",
        "momentum drift in 10 s, adaptive",
        1e-11,
        "",
        motions.momentum_drift(adaptive=True),
    ),
    BenchmarkRow(
        "motion-mujoco", "one second of motion, error to MuJoCo", 1e-6, "", motions.same_motion
    ),
    BenchmarkRow(
        "flops-nu",
        "flops in nu, v and its rate, ratio to 700N",
        1,
        "x",
        diagonal_form.flops("diagonalised", 1, 700),
    ),
    BenchmarkRow(
        "flops-nu-2",
        "flops in nu, case 2, ratio to 500N",
        1,
        "x",
        diagonal_form.flops("diagonalised", 2, 500),
    ),
    BenchmarkRow(
        "flops-xi",
        "flops in xi, v and its rate, ratio to 600N",
        1,
        "x",
        diagonal_form.flops("unnormalised", 1, 600),
    ),
    BenchmarkRow(
        "flops-xi-2",
        "flops in xi, case 2, ratio to 420N",
        1,
        "x",
        diagonal_form.flops("unnormalised", 2, 420),
    ),
    BenchmarkRow(
        "agreement-nu", "accelerations from nu and xi", 1e-10, "", diagonal_form.agreement
    ),
    BenchmarkRow(
        "contacts",
        "a step on a ground, ratio to mujoco.rollout",
        8,
        "x",
        contacts.rollouts,
        at_least=True,
    ),
    BenchmarkRow(
        "contacts-solved",
        "steps on a ground that are not solved",
        0.1,
        "%",
        contacts.unsolved,
    ),
)
