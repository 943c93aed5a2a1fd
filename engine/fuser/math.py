"""Functions of numbers that are no primitives, written in kernel IR.

In: a name of `kernel.FUNCTIONS` and the type of its operands.  Out: a `Function`.
"""

from __future__ import annotations

from engine.fuser.kernel import Function


def function(name: str, type: str) -> Function | None:
    """The function for operands of a type; None where the C library's is called."""
    return None
