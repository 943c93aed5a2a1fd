"""Python functions, classes and modules as TorchScript: their trees, their types, and what their names stand for."""
