"""Calls of programs from Python: arguments are matched with the schema and converted."""
