"""Kernel IR: what it is, its text, its rules, functions written in it, and its definition in Python."""
