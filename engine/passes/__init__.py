"""Passes: one file is one pass is one function of the file's name, however short; `pipeline` runs them.

`pipeline.PASSES` has a row for each: the stages that run it (compiling, plans, freezing, named pipelines, or none but
on request), and what it makes of what.
"""
