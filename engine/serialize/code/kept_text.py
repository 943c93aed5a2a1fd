"""The archive's own text of functions that call unknown operators, such as those of an extension of PyTorch.

What such calls give is not known either, so that writing their graphs would be guessing.

In: the text of a definition, and what its names mean in its archive.  Out: the same text for another archive, with the
names and the constants that these have there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from engine.ir.constants import type_of
from engine.ir.unit import Function
from engine.lang.deferred import deferred
from engine.lang.records import dataclass
from engine.lang.source import SourceRange
from engine.lang.types import FunctionType, Type
from engine.passes.erase_shape_information import unshaped
from engine.serialize.container.qualified_names import ROOT

if TYPE_CHECKING:
    from engine.serialize.code import python_text
else:
    python_text = deferred("engine.serialize.code.python_text")

if TYPE_CHECKING:
    from engine.serialize.code.source_export import SourcePrinter

_PART: Final = r"[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*"
_NAMES: Final = (
    r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    rf"|(?<![\w.])(?:CONSTANTS\.c\d+|{ROOT}(?:\.{_PART})+)"
)
"""Strings, which stay as they are, and names that another archive may have others for."""


@dataclass(frozen=True, slots=True)
class KeptText:
    """A definition as its archive has it; `constant` finds `c3` of the archive's table."""

    range: SourceRange
    find_type: Callable[[str], Type | None]
    find_function: Callable[[str], Function | None]
    constant: Callable[[str, SourceRange], Any]

    def write(self, printer: SourcePrinter) -> None:
        """Write it to another archive's record.  Raises EngineError for names that its archive does not have."""
        source, start = self.range.source, self.range.start
        indent = "  " * printer.level
        for line in self.range.text.rstrip().split("\n"):
            printer.ranges.append(SourceRange(source, start, start + len(line)))
            printer.body.write(indent, re.sub(_NAMES, lambda found: self._renamed(found[0], printer), line), "\n")
            printer.ranges.pop()
            start, indent = start + len(line) + 1, ""

    def _renamed(self, name: str, printer: SourcePrinter) -> str:
        if name[0] in "\"'":
            return name
        if name.startswith("CONSTANTS"):
            value = self.constant(name.partition(".")[2], self.range)
            return f"CONSTANTS.c{printer.table.index(value, unshaped(type_of(value)))}"
        parts = name.split(".")
        for end in range(len(parts), 1, -1):  # `__torch__.Color.RED` is a class and more
            known, rest = ".".join(parts[:end]), parts[end:]
            found = self.find_type(known)
            if found is not None:
                printer.need(found)
                return ".".join([printer.class_name(found, python_text.qualname_of(found) or known), *rest])
            function = self.find_function(known)
            if function is not None:
                return ".".join([printer.function_name(FunctionType(function)), *rest])
        return name
