"""Kernels of groups on an NVIDIA GPU."""
