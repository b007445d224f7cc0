"""The commands, one file each.

In: parsed options. Out: an exit code. Read `demo.py` first.

    bench.py     `psiphi bench`
    count.py     `psiphi count`
    demo.py      `psiphi demo`
    derive.py    `psiphi derive`
    emit.py      `psiphi emit`
    info.py      `psiphi info`
    simulate.py  `psiphi simulate`
    study.py     `psiphi study run | status | report`
    view.py      `psiphi view`
"""
