"""TODO folder docstring."""
