"""Kernels whose steps depend on each other or go where data says, as loops: see Note [What a loop may say]."""
