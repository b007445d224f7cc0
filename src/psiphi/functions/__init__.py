"""Compiled tapes as NumPy gufuncs: broadcasting, out=, dtype, threads, and a cache of machine code on disk."""
