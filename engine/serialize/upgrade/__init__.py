"""Operators that older archives mean differently: versions, and what old calls are compiled to."""
