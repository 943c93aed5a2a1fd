"""Kernels over the arrays of other devices than the CPU."""
