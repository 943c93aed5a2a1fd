"""Tensors and the other values of programs: memory, dtypes, devices, parameters. No operators."""
