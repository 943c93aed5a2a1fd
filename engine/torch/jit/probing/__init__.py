"""Tools that look inside a compiled module while it runs.

In: a compiled module or function.  Out: values at places inside it, a part of it, the rewrite that changes its result.
"""
