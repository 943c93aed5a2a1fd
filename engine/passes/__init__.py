"""Passes: one file is one pass is one function of the file's name, however short; `pipeline` runs them.

`pipeline.RUN_IN` tells which passes run in plans, in compiling, in freezing, and which only on request.
"""
