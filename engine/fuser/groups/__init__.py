"""Fusion groups of graphs as kernels: sizes, elements, loops, and the operators that kernels hold."""
