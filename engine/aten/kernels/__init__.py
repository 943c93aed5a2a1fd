"""Numerics over arrays that the kernels of several families share."""
