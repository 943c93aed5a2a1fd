"""The names of a graph's values: each belongs to one value at a time.

In: wishes.  Out: the latest wish is granted; the value that had the name before gets a numbered one, as in PyTorch.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from engine.lang.deferred import pattern_of
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.ir.graph import Value

_SUFFIX: Final = pattern_of(r"(.*)\.(\d+)")
_NAMELESS: Final = pattern_of(r"\$.*|_[0-9]*")


def name_after(variable: str) -> str:
    """The debug name of a variable's values: none for `_1` …, which a printer made up, and for the compiler's own."""
    return "" if _NAMELESS.fullmatch(variable) else variable


@dataclass(eq=False, slots=True)
class Names:
    """The debug names taken in one graph."""

    by_name: dict[str, Value] = field(default_factory=dict)
    _suffixes: dict[str, int] = field(default_factory=dict)

    def give(self, value: Value, name: str) -> None:
        """Call the value so; "" takes its name away."""
        if value.name and self.by_name.get(value.name) is value:
            del self.by_name[value.name]
        value.name = ""
        if not name:
            return
        if name in self.by_name:
            self.give(self.by_name[name], self._free(name))
        self.by_name[name] = value
        value.name = name

    def _free(self, name: str) -> str:
        """A name that is free, for the value that has to give up `name`: `x.1`, `x.3`, `x.5` …"""
        match = _SUFFIX.fullmatch(name)
        stem, suffix = (match[1], int(match[2])) if match else (name, 1)
        if stem in self._suffixes:
            suffix = max(suffix, self._suffixes[stem] + 1)
        while f"{stem}.{suffix}" in self.by_name:
            suffix += 1
        self._suffixes[stem] = suffix + 1
        return f"{stem}.{suffix}"
