"""Execution plans: a graph specialised for one combination of arguments, made by pipelines of passes and kept."""
