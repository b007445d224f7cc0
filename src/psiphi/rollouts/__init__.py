"""Steps in time as code: the integrators, and whole rollouts of them in one kernel.

Comes in: a system, what drives it, a method. Goes out: states after many steps, from machine code. Read `integrators.py`
first (what a step is), then

    parts.py         rules of integrators and laws, losses and limits, traced as blocks over one frame
    constrained.py   the blocks of closed chains, and of joint stops
    machine.py       which blocks run in which order; `emitters/rollout.py` writes them as LLVM text
    supply.py        the numbers a kernel is given: torques, gains, references
    runner.py        the kernel found, compiled or loaded, and run
    on_cards.py      the same on a graphics card
    mending.py       what a kernel could not solve, again in Python
    differentiated.py   the derivatives of a rollout as rollouts: alongside, and backwards
    curving.py       second ones: the changes of gradients
    beginning.py     those of unit(q), where a motion begins, by the numbers q that were given
    sensitivity.py   all of them run: gradients of a motion, and the effect of changes
    card_gradients.py   all of them on a graphics card
    stepping.py      one step alone, as a function: `robot.step`
    compiled_coordinates.py   configurations moved and compared, as functions for arrays that are not NumPy's
    law_functions.py a controller's torque as a function, for arrays that are not NumPy's
    handled.py       a step with everything a hand can change as an input: what runs in a live page
    joint_slopes.py  the laws of one joint with their slopes, as functions
    linearising.py   how a change of the state grows, at once or in a step: `robot.linearize`; linearised.py: as one function
"""
