"""Kernels of single operators, which take the slots that `engine.aten` offers."""
