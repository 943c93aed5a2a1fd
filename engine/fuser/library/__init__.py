"""Operators as machine code that is made ahead of time."""
