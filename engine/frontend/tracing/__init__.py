"""Tracing: the operators that a Python program runs, recorded as a graph.  `tracer.py` switches it on."""
