"""`torch.jit.trace`.

In: Python functions and modules with example inputs.  Out: compiled functions and modules, checked against them.
"""
