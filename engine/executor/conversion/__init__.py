"""Conversions between Python values and the values of programs, by TorchScript type."""
