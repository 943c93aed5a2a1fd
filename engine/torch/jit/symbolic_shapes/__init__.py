"""Shapes with unknown sizes: which of them are the same, and what computes them.

In: a graph whose inputs have types with sizes, some of them unknown.  Out: symbols for the unknown sizes in the types
of all tensors that follow (`propagation.propagate`), and a graph that computes them from the sizes of the inputs
(`propagation.build_compute`).  Each operator's sizes are those that its shape function gives, a TorchScript program
(`functions`), as far as it can be worked out before anything runs (`evaluation`).
"""
