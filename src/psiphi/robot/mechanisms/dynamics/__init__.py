"""Forward and inverse dynamics of closed chains, and the distribution of loads.

In: a `System` and arrays. Out: accelerations, torques, forces. Read `closed_forward_dynamics.py`
first.

    closed_forward_dynamics.py  forward dynamics: compiled, with fallbacks for a singular Omega
    system_stages.py            forward dynamics, projection, bias, ... as programs in stages
    method_choice.py            Omega or the hub, by operation counts
    load_distribution.py        inverse dynamics on arrays, internal forces
    closed_inverse_dynamics.py  inverse dynamics as a program
    external_dynamics.py        mechanisms whose free dynamics come from functions
    object_dynamics.py          inverse dynamics of a held object as a program
"""
