"""Operators as functions that CPython calls without Python in between, one module for each kind of operator."""
