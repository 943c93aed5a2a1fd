"""The sweep: operators and constructors, crossed with dtypes and numbers, here and in PyTorch."""
