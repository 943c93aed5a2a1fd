"""Kernels written as loops in Python (`engine.aten.stepwise.language`), as machine code."""
