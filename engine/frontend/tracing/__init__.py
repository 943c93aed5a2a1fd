"""Tracing: what a Python program runs, recorded as a graph.  `recording.py` is where operators come in."""
