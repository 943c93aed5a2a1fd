"""Sugared values: the objects that expressions stand for while they are compiled."""
