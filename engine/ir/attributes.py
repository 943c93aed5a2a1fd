"""Data of nodes besides their inputs: attributes, and the calls they were inlined through.

In: values that are known when compiling.  Out: records of them, each with its kind.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from engine.lang.source import SourceRange

ATTRIBUTE_KINDS: Final = {
    "i": "int", "f": "float", "c": "complex", "s": "str", "t": "Tensor", "g": "Graph", "ty": "Type",
    "ival": "any value",
    "is": "ints", "fs": "floats", "cs": "complexes", "ss": "strs", "ts": "Tensors", "gs": "Graphs", "tys": "Types",
}  # fmt: skip


class Attr(NamedTuple):
    """An attribute of a node; `kind` is one of `ATTRIBUTE_KINDS`."""

    kind: str
    value: Any


class InlinedFrom(NamedTuple):
    """One call that inlining removed: the function that was called and where."""

    function: str
    range: SourceRange | None
