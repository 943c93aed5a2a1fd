"""Compiled programs as Python sees them.

In: types, graphs, functions and objects of the engine.  Out: wrappers with the names that PyTorch gives them.
"""
