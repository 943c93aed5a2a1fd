"""The iterables that `range`, `zip` and `enumerate` make.

In: the arguments of the call.  Out: iterables, which give a loop their length and one item for each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.frontend.sugared.sugared_value import Builder, SugaredIterable, SugaredValue
from engine.frontend.sugared.values import SimpleValue, SugaredTuple
from engine.ir.graph import Value
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import INT


class RangeValue(SugaredIterable):
    """`range(stop)`, `range(start, stop)` or `range(start, stop, step)`; `length` where it is known otherwise."""

    __slots__ = ("only_stop", "start", "static_length", "step", "stop")
    kind = "range"

    def __init__(self, b: Builder, args: Sequence[Value], range: SourceRange, length: int | None = None) -> None:
        for index, value in enumerate(args):
            if not value.type.is_subtype_of(INT):
                found = value.type.annotation_str
                raise CompileError(
                    f"all inputs of range must be ints, found {found} in argument {index}",
                    range,
                    hints=("convert it: int(...)",),
                )
        if not args:
            raise CompileError("range expected at least 1 arguments, got 0", range, hints=("write range(n)",))
        if len(args) > 3:
            raise CompileError(
                f"range expected at most 3 arguments, got {len(args)}", range, hints=("write range(start, stop, step)",)
            )
        self.only_stop = len(args) == 1
        self.static_length = length
        if self.only_stop:
            self.stop, self.start, self.step = args[0], b.constant(0, range), b.constant(1, range)
        else:
            self.start, self.stop = args[0], args[1]
            self.step = args[2] if len(args) == 3 else b.constant(1, range)

    def length(self, b: Builder, range: SourceRange) -> Value:
        if self.only_stop:
            return self.stop
        return b.insert("aten::__range_length", [self.start, self.stop, self.step], range)

    def element(self, b: Builder, index: Value, range: SourceRange) -> SugaredValue:
        if self.only_stop:
            return SimpleValue(index)
        return SimpleValue(b.insert("aten::__derive_index", [index, self.start, self.step], range))

    def static_element(self, b: Builder, index: int, range: SourceRange) -> SugaredValue:
        return self.element(b, b.literal(index, range), range)


class IterableTree(SugaredIterable):
    """`zip` and `enumerate`: several iterables gone through together."""

    __slots__ = ("children", "static_length")
    kind = "iterabletree"

    def __init__(self, children: Sequence[SugaredIterable], range: SourceRange) -> None:
        self.children = list(children)
        known = [child.static_length for child in children if child.static_length is not None]
        if known and len(known) < len(self.children):
            raise CompileError(
                "Can not iterate over a module list or tuple with a value that does not have a statically determinable "
                "length",
                range,
                hints=("use enumerate or a second module list, or index the list yourself",),
            )
        self.static_length = min(known, default=None)

    def base_iterables(self) -> list[SugaredIterable]:
        return [base for child in self.children for base in child.base_iterables()]

    def length(self, b: Builder, range: SourceRange) -> Value:
        lengths = [base.length(b, range) for base in self.base_iterables()]
        return b.insert("prim::min", [b.list(lengths, INT)], range)

    def element(self, b: Builder, index: Value, range: SourceRange) -> SugaredValue:
        parts = [child.element(b, index, range).as_value(b, range) for child in self.children]
        return SimpleValue(b.tuple(parts))

    def static_element(self, b: Builder, index: int, range: SourceRange) -> SugaredValue:
        return SugaredTuple([child.static_element(b, index, range) for child in self.children])
