"""Programs of numbers, lists and dicts as kernels."""
