"""Kernels as loops, for steps that depend on each other or on data: see Note [The language of loops]."""
