"""Fitting a call to a schema: the order of overloads, type variables, implicit conversions."""
