"""Older and smaller forms: what changed between versions, and how it is read today."""
