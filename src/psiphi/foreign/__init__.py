"""Arrays of other libraries: torch and JAX come in, the same go out, with derivatives; so do arrays on graphics cards.

Comes in: a compiled function and the arrays of a call. Goes out: its results, in the arrays' library. Read `entering.py` first:
every door sends here what is not NumPy's.

    numbering.py         functions by number; batch axes that vmap adds
    entering.py          whose arrays these are, and the way they take
    torch_operators.py   functions as operators of torch: autograd, torch.compile, torch.func
    jax_primitives.py    functions as primitives of JAX: jit, grad, vmap
    xla_handlers.py      a function as XLA calls it: machine code that reads XLA's call frame
    xla_cards.py         the same on a graphics card: its kernel on XLA's stream

A function here is anything with `inputs` and `outputs` (`Argument`s), `name`, `number`, a call on NumPy arrays, and the two
derivatives that such libraries ask for, `pullback(*names)` and `pushforward(*names)`, which are functions again.
"""
