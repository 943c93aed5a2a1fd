"""Python functions, classes and modules as TorchScript: their trees, their types, and the meaning of their names."""
