"""The commands, one file each.

In: parsed arguments. Out: an exit code. Read `demo.py` first.

    demo.py      `psiphi demo`: a simulation and a page
    view.py      `psiphi view`: a robot, scene or motion in the browser
    info.py      `psiphi info`: tree, coordinates, checks, operation counts
    check.py     `psiphi check`: all faults of a file
    simulate.py  `psiphi simulate`: a motion and its files
    optimise.py  `psiphi optimise`: a motion of least cost and its files
    study.py     `psiphi study run | status | report`
    derive.py    `psiphi derive`: an operator expression as loops, or a proof
    count.py     `psiphi count`: operation counts
    emit.py      `psiphi emit`: C, CasADi, WebAssembly, LLVM IR, PTX
    warm.py      `psiphi warm`: functions compiled for later processes
    bench.py     `psiphi bench`: run times of psiphi and other libraries
"""
