"""The 6-D algebra of one body: pure functions over any scalar (float, NumPy array, tape expression).

Comes in: numbers. Goes out: numbers. Spatial vectors are lists of six, angular part first. Read `screws.py` first:
every displacement psiphi meets is a product of axial screws, turns and shifts.
"""
