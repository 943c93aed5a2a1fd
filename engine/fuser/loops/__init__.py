"""Kernels written as loops in Python (`engine.aten.loops`), as machine code."""
