"""A specialised graph as the source of one Python function."""
