"""Kernels as builtin functions of Python."""
