"""Places of programs in reports about plans: `line 2`, `model.py:2`, `entry 1:2`.

In: lines of source.  Out: their places, with the file only where there are several, and ranges of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Final, Protocol, TypeVar

from engine.executor.plans.source_lines import SourceLine
from engine.lang.records import dataclass


@dataclass(slots=True)
class Cells:
    """A slot for the notebook, which knows the cells of Python whose texts its files are."""

    of: Callable[[str], str] = lambda file: ""
    """From a file to `cell 3`; "" for other files."""


CELLS: Final = Cells()


class _Placed(Protocol):
    @property
    def line(self) -> SourceLine | None: ...


P = TypeVar("P", bound=_Placed)


_OF_THE_ENGINE: Final = re.compile(r"<(gradient of|builtin|container|state).*>")
"""Names of texts of the engine's own, whose lines tell nobody anything."""


class Places:
    """The places of some lines; `is_one` is True where all are in one file, whose name then goes without saying."""

    def __init__(self, lines: Iterable[SourceLine | None]) -> None:
        files = {line.file for line in lines if line is not None}
        self.is_one = len([file for file in files if not _OF_THE_ENGINE.fullmatch(file)]) <= 1

    @classmethod
    def of(cls, *items: Iterable[_Placed]) -> Places:
        return cls(item.line for some in items for item in some)

    def text(self, line: SourceLine | None) -> str:
        if line is None:
            return ""
        is_short = self.is_one and not _OF_THE_ENGINE.fullmatch(line.file)
        return f"line {line.number}" if is_short else full_place(line)

    def span(self, lines: Sequence[SourceLine]) -> str:
        """The lines from the first to the last of a file, of all files if there are more."""
        by_file: dict[str, list[SourceLine]] = {}
        for line in lines:
            by_file.setdefault(line.file, []).append(line)
        return ", ".join(map(self._span, by_file.values())) or "no line"

    def _span(self, lines: Sequence[SourceLine]) -> str:
        ordered = sorted(lines, key=lambda line: line.number)
        first, last = self.text(ordered[0]), self.text(ordered[-1])
        if first == last:
            return first
        return f"{first.replace('line ', 'lines ', 1)}–{ordered[-1].number}"


def full_place(line: SourceLine | None) -> str:
    """The place with its file, less the folders that it is in."""
    if line is None:
        return ""
    if _OF_THE_ENGINE.fullmatch(line.file):
        return line.file.strip("<>").replace("aten::", "")
    if is_generated(line):
        return f"{shortened(line.file)}:{line.number}"
    cell = CELLS.of(line.file)
    name = cell or (PurePath(line.file).name.strip("<>") if line.file != "<string>" else "")
    return f"{name}:{line.number}" if name else f"line {line.number}"


def is_generated(line: SourceLine) -> bool:
    """True for a line of the text that an archive was saved with, which its author did not write."""
    return line.file.startswith(_CODE)


_CODE: Final = "code/"
"""The folder of an archive's text, which tells `code/__torch__/model.py` from the author's `model.py`."""


def shortened(file: str) -> str:
    """`code/…/model.py` for `code/__torch__/nets/model.py`, `code/…/mangle_3.py` for `…/___torch_mangle_3.py`."""
    first, *folders, name = PurePath(file).parts
    return "/".join([first, *(["…"] if folders else []), name.removeprefix("___torch_")])


def by_line(items: Iterable[P]) -> list[tuple[SourceLine | None, Sequence[P]]]:
    """The items by their lines, in the order of the program."""
    found: dict[SourceLine | None, list[P]] = {}
    for item in items:
        found.setdefault(item.line, []).append(item)
    return sorted(found.items(), key=lambda each: (each[0].file, each[0].number) if each[0] else ("", 0))
