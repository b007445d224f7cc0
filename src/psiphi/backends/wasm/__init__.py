"""WebAssembly with its JavaScript module.

In: a tape, or the blocks of a frame. Out: WebAssembly, JavaScript. Read `wasm_module.py` first.

    wasm_module.py  WebAssembly of a tape in a small JavaScript module
"""
