"""Quantized arrays: packed weights, arithmetic and layers."""
