"""Tensors as Python programs see them: special methods, methods, indexing."""
