"""Tensors whose integers stand for numbers: what they are, arithmetic with them, layers over them."""
