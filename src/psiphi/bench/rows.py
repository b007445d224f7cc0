"""The benchmark as data: one row a demand. A new demand is a new row here and a small generator of `Measured`."""

from __future__ import annotations

from psiphi.bench import checks, closed, counts, diagonal, gradients, large, motion, speed, starts
from psiphi.bench.row import Demand

ARMS, FLOATING = ("UR5", "Panda"), ("G1", "Talos")

ROWS = (  # what takes minutes stands last
    Demand("fd", "forward dynamics, batch 4096", 25, "x", speed.batch("forward_dynamics", ARMS, "fixed"), at_least=True),
    Demand("id", "inverse dynamics, batch 4096", 20, "x", speed.batch("inverse_dynamics", ARMS, "fixed"), at_least=True),
    Demand("fd-free", "forward dynamics, free base", 12, "x", speed.batch("forward_dynamics", FLOATING, "free"), at_least=True),
    Demand("one-call", "one Python call, of pinocchio.aba", 0.5, "x", speed.one_call),
    Demand("one-call-mujoco", "one Python call, of mj_forward", None, "x", speed.one_call_mujoco),
    Demand("dfd", "d FD/d(q, v, tau), batch 4096", 30, "x", gradients.matrices("forward_dynamics", ("UR5",), "fixed"), True),
    Demand("dfd-panda", "d FD/d(q, v, tau)", 22, "x", gradients.matrices("forward_dynamics", ("Panda",), "fixed"), True),
    Demand("dfd-free", "d FD, free base", 12, "x", gradients.matrices("forward_dynamics", FLOATING, "free"), True),
    Demand("did", "d ID/d(q, v, a), batch 4096", 30, "x", gradients.matrices("inverse_dynamics", ("UR5",), "fixed"), True),
    Demand("did-panda", "d ID/d(q, v, a)", 22, "x", gradients.matrices("inverse_dynamics", ("Panda",), "fixed"), True),
    Demand("did-free", "d ID, free base", 15, "x", gradients.matrices("inverse_dynamics", FLOATING, "free"), True),
    Demand("one-dfd", "one Python call of d FD, of Pinocchio's", 0.2, "x", gradients.one_call),
    Demand("osim", "J M^-1 J*, batch 4096, free base", 15, "x", speed.operational_space, at_least=True),
    Demand("threads", "two threads, batch 100 000", 1.8, "x", speed.two_threads, at_least=True),
    Demand("compile", "first call, empty cache", 0.4, "s", starts.compile_time("UR5", "fixed")),
    Demand("compile-free", "first call, empty cache, free base", 4, "s", starts.compile_time("G1", "free")),
    Demand("warm", "first call, warm cache", 0.1, "s", starts.warm_start),
    Demand("chain", "3-D chain, time a link, of N = 10", 4, "x", large.run_time),
    Demand("chain-compile", "3-D chain, first call", 5, "s", large.compile_time),
    Demand("ten-thousand", "chain of 10 000 links, in all", 10, "s", large.ten_thousand_seconds),
    Demand("ten-thousand-memory", "chain of 10 000 links, memory", 500, "MB", large.ten_thousand_memory),
    Demand("flops-fd", "flops of forward dynamics", 1, "x", counts.flops("forward_dynamics", 426, -576)),
    Demand("flops-id", "flops of inverse dynamics", 1, "x", counts.flops("inverse_dynamics", 174, -134)),
    Demand("closed", "closed chain, batch 4096", 20, "x", closed.batch, at_least=True),
    Demand("closed-dense", "closed chains beside the dense KKT system", 1e-9, "", closed.with_dense),
    Demand("closed-pinocchio", "closed chains beside Pinocchio's", 1e-8, "", closed.with_pinocchio),
    Demand("closed-links", "closed chain, flops of twice the links", 2.1, "x", closed.growth_in_links),
    Demand("closed-arms", "closed chain, flops of twice the arms", 8, "x", closed.growth_in_arms),
    Demand("closed-residual", "constraints over 10 s at 1 kHz", 1e-9, "", closed.residual),
    Demand("import", "import psiphi", 0.3, "s", starts.imports),
    Demand("help", "psiphi --help", 0.3, "s", starts.command_line),
    Demand("agreement", "every function beside Pinocchio's", 1e-10, "", checks.with_pinocchio),
    Demand("agreement-mujoco", "every function beside MuJoCo's", 1e-8, "", checks.with_mujoco),
    Demand("trees", "random trees beside Pinocchio", 1e-10, "", checks.trees_with_pinocchio),
    Demand("trees-mujoco", "random trees beside MuJoCo", 1e-8, "", checks.trees_with_mujoco),
    Demand("urdf", "URDF files read right or refused", 77, "files", checks.urdf_files, at_least=True),
    Demand("rollout", "rollouts of RK4, 4096 x 1000 steps", 15, "x", motion.rollouts, at_least=True),
    Demand("energy", "energy drift in 10 s, RK4 at 1 kHz", 1e-7, "", motion.energy_drift(adaptive=False)),
    Demand("energy-adaptive", "energy drift in 10 s, adaptive", 1e-10, "", motion.energy_drift(adaptive=True)),
    Demand("order", "order by step halving", 3.8, "", motion.order, at_least=True),
    Demand("momentum", "momentum drift in 10 s, RK4 at 1 kHz", 1e-8, "", motion.momentum_drift(adaptive=False)),
    Demand("momentum-adaptive", "momentum drift in 10 s, adaptive", 1e-11, "", motion.momentum_drift(adaptive=True)),
    Demand("motion-mujoco", "a second of motion beside MuJoCo's", 1e-6, "", motion.same_motion),
    Demand("flops-nu", "flops in nu, v and its rate, of 700N", 1, "x", diagonal.flops("diagonalised", 1, 700)),
    Demand("flops-nu-2", "flops in nu, case 2, of 500N", 1, "x", diagonal.flops("diagonalised", 2, 500)),
    Demand("flops-xi", "flops in xi, v and its rate, of 600N", 1, "x", diagonal.flops("unnormalised", 1, 600)),
    Demand("flops-xi-2", "flops in xi, case 2, of 420N", 1, "x", diagonal.flops("unnormalised", 2, 420)),
    Demand("agreement-nu", "accelerations from nu and xi", 1e-10, "", diagonal.agreement),
)
