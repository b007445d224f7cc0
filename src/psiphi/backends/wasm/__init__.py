"""WebAssembly with its JavaScript module.

In: code. Out: bytes, JavaScript. Read `wasm_module.py` first.

    wasm_module.py  WebAssembly from a tape, inside a small JavaScript module
"""
