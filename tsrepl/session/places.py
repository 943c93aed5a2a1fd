"""Places of programs in reports about plans: `line 2`, `model.py:2`, `entry 1:2`.

In: lines of source.  Out: their places, with the file only where there are several, and ranges of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Protocol, TypeVar

from engine.executor.plans.source_lines import SourceLine


class _Placed(Protocol):
    @property
    def line(self) -> SourceLine | None: ...


P = TypeVar("P", bound=_Placed)


class Places:
    """The places of some lines; `is_one` is True where all are in one file, whose name then goes without saying."""

    def __init__(self, lines: Iterable[SourceLine | None]) -> None:
        self.is_one = len({line.file for line in lines if line is not None}) <= 1

    @classmethod
    def of(cls, *items: Iterable[_Placed]) -> Places:
        return cls(item.line for some in items for item in some)

    def text(self, line: SourceLine | None) -> str:
        if line is None:
            return ""
        return f"line {line.number}" if self.is_one else full_place(line)

    def span(self, lines: Sequence[SourceLine]) -> str:
        """The lines from the first to the last of a file, of all files if there are more."""
        by_file: dict[str, list[SourceLine]] = {}
        for line in lines:
            by_file.setdefault(line.file, []).append(line)
        return ", ".join(map(self._span, by_file.values())) or "no line"

    def _span(self, lines: Sequence[SourceLine]) -> str:
        ordered = sorted(lines, key=lambda line: line.number)
        first, last = self.text(ordered[0]), ordered[-1].number
        return first if last == ordered[0].number else f"{first.replace('line ', 'lines ', 1)}–{last}"


def full_place(line: SourceLine | None) -> str:
    """The place with its file, less the folders that it is in."""
    if line is None:
        return ""
    name = PurePath(line.file).name.strip("<>") if line.file != "<string>" else ""
    return f"{name}:{line.number}" if name else f"line {line.number}"


def by_line(items: Iterable[P]) -> list[tuple[SourceLine | None, Sequence[P]]]:
    """The items by their lines, in the order of the program."""
    found: dict[SourceLine | None, list[P]] = {}
    for item in items:
        found.setdefault(item.line, []).append(item)
    return sorted(found.items(), key=lambda each: (each[0].file, each[0].number) if each[0] else ("", 0))
