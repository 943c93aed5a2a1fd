"""`torch.jit.script`, and the modules it makes.

In: Python functions, classes and modules; graphs.  Out: compiled functions and modules, and frozen ones.
"""
