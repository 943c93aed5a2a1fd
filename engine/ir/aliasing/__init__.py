"""Alias analysis: which values may share memory, and what that forbids.  `alias_db.py` is what passes ask."""
