"""The version of tsrepl, alone in its module since every layer reads it and `tsrepl --version` loads nothing else."""

__version__ = "0.1.0"
