"""Builder of LLVM text, line by line.

In: a `Layout`, which says where this process keeps what.  Out: `Text`, whose methods write one step each.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Layout:
    """The process, as far as entries look at it: addresses of objects and offsets of slots."""

    functions: Mapping[str, int]
    array_new: int
    tensor: int
    parameter: int
    """The type of tensors, and where they keep what."""
    slots: Mapping[str, int]
    fresh: Mapping[int, int]
    """The slot values of a new tensor, by offset."""
    array: int
    floating: int
    whole: int
    list: int
    none: int
    false: int
    true: int
    zero: int
    hooks: int
    hook_slots: Mapping[str, int]
    defaults: int
    floating_slot: int
    """Where the default dtype is found."""
    storage_type: int
    version_slot: int
    dtypes: Mapping[str, int]
    products: Mapping[str, int]
    """Functions of BLAS, by name and kind; none where numpy's are not found."""


LARGEST: Final = {
    "f32": "0x47EFFFFFE0000000", "f16": "65504.0", "bf16": "0x47EFE00000000000",
}  # fmt: skip
"""The largest number of a kind of element, as LLVM spells it."""


def pointer(address: int) -> str:
    """An address as LLVM spells a constant."""
    return f"inttoptr (i64 {address} to ptr)"


@dataclass(slots=True)
class Text:
    """Lines of one function, with names for what they compute."""

    at: Layout
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def put(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def make(self, expression: str) -> str:
        self.count += 1
        self.put(f"%t{self.count} = {expression}")
        return f"%t{self.count}"

    def load(self, base: str, offset: int, type: str = "ptr") -> str:
        return self.make(f"load {type}, ptr {self.place(base, offset)}")

    def place(self, base: str, offset: int) -> str:
        return self.make(f"getelementptr i8, ptr {base}, i64 {offset}")

    def store(self, base: str, offset: int, value: str) -> None:
        self.put(f"store ptr {value}, ptr {self.place(base, offset)}")

    def is_(self, value: str, other: str, type: str = "ptr") -> str:
        return self.make(f"icmp eq {type} {value}, {other}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def need(self, condition: str, otherwise: str = "miss") -> None:
        """Go on where it holds."""
        self.count += 1
        self.put(f"br i1 {condition}, label %go{self.count}, label %{otherwise}")
        self.label(f"go{self.count}")

    def call(self, name: str, type: str, arguments: str) -> str:
        return self.make(f"call {type} {pointer(self.at.functions[name])}({arguments})")

    def do(self, name: str, arguments: str) -> None:
        self.put(f"call void {pointer(self.at.functions[name])}({arguments})")

    def new_array(self, dtype: str, ndim: str, dims: str) -> str:
        """Null, and no error, where there is no memory."""
        return self.make(f"call ptr @new_array(ptr {dtype}, i32 {ndim}, ptr {dims})")

    def fit(self, number: str, kind: str) -> None:
        """Go on where the element can hold the number: Python says what happens to larger ones."""
        if kind in LARGEST:
            self.need(self.make(f"call i1 @fits(double {number}, double {LARGEST[kind]})"))

    def retain(self, value: str) -> None:
        """One more reference; from 3.12 on some objects do not count theirs, which CPython's own function knows."""
        if sys.version_info >= (3, 12):
            self.do("Py_IncRef", f"ptr {value}")
            return
        count = self.make(f"load i64, ptr {value}")
        self.put(f"store i64 {self.make(f'add i64 {count}, 1')}, ptr {value}")


def define(head: str, text: Text) -> str:
    """The definition of a function."""
    return "\n".join([f"define {head} {{", "start:", *text.lines, "}"])
