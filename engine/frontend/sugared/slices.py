"""The slices of programs: `slice(start, stop, step)`.

In: the arguments of the call.  Out: a `SliceValue`, which subscripts take like `start:stop:step`; it has no value in
the graph.  A part that is `None` is a number here: 0 for the start, the largest integer for the stop, 1 for the step.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from engine.frontend.matching.schema_match import Actual
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.ir.graph import Value
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import NONE

_WITHOUT: Final = (0, sys.maxsize, 1)


class SliceClass(SugaredValue):
    """`slice`."""

    __slots__ = ()
    kind = "Python slice class"

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SliceValue:
        if kwargs:
            hints = ("give them by position: slice(start, stop, step)",)
            raise CompileError("Slice does not accept any keyword arguments", kwargs[0].range or range, hints=hints)
        if not 1 <= len(args) <= 3:
            raise CompileError(
                f"slice accepts exactly 1, 2 or 3 arguments, got: {len(args)}",
                range,
                hints=("write slice(stop), slice(start, stop) or slice(start, stop, step)",),
            )
        given = [arg.value for arg in args]
        parts = [None, *given] if len(given) == 1 else given
        values = [
            part if part is not None and part.type is not NONE else b.constant(number, range)
            for part, number in zip([*parts, None][:3], _WITHOUT, strict=True)
        ]
        return SliceValue(*values)


class SliceValue(SugaredValue):
    """A result of `slice`: good for a subscript, and under a name."""

    __slots__ = ("start", "step", "stop")
    kind = "Python slice value"

    def __init__(self, start: Value, stop: Value, step: Value) -> None:
        self.start, self.stop, self.step = start, stop, step
