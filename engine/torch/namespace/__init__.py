"""Functions and tensors of the `torch` namespace as Python programs use them.

In: names and Python values.  Out: Python functions that run operators or compiled library functions, and tensors.
"""
