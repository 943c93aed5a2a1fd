"""Hints beside the errors of a program, and cautions for one that compiles and may surprise."""
