"""Functions and operators of the torch namespace that are written in TorchScript: their texts, by name."""
