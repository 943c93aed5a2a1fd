"""Where one entry ends and the next begins.

In: text as it is typed, pasted or piped.  Out: is it complete, and the entries in it.  TorchScript has Python's
layout, so Python's own compiler answers the question of completeness; nothing is ever run by it.
"""

from __future__ import annotations

import codeop
import re
import warnings
from dataclasses import dataclass

COMMAND = "%"
_BLOCK = re.compile(r"(?:async|def|class|if|for|while|with|try)\b|@")
_DEFINITION = re.compile(r"(?:def|class)\b|@")
_CONTINUES = re.compile(r"(?:else|elif|except|finally)\b")


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement or command, and the line (from 1) of the text that it starts on."""

    text: str
    line: int = 1

    @property
    def is_command(self) -> bool:
        return self.text.lstrip().startswith(COMMAND)

    @property
    def is_definition(self) -> bool:
        return _DEFINITION.match(self.text) is not None


def split_entries(text: str) -> list[Entry]:
    """The statements and commands of the text, each an entry of its own; blank lines and comments are left out."""
    entries: list[Entry] = []
    lines = _lines(text)
    at = 0
    while at < len(lines):
        end = _end_of_entry(lines, at)
        if not _is_blank(lines[at]):
            entries.append(Entry("\n".join(lines[at:end]).rstrip(), at + 1))
        at = end
    return entries


def is_complete(text: str) -> bool:
    """May the text be run as it stands?  A block wants a blank line at its end; text that is wrong is complete."""
    entries = split_entries(text)
    if not entries or entries[-1].is_command:
        return True
    last = "\n".join(_lines(text)[entries[-1].line - 1 :])
    return not _wants_more(last, "single")


def next_indent(text: str) -> str:
    """The blanks that the line after `text` most likely starts with."""
    line = text.rpartition("\n")[2]
    indent = line[: len(line) - len(line.lstrip())]
    if line.rstrip().endswith(":"):
        return indent + "    "
    if re.match(r"\s*(?:return|raise|pass|break|continue)\b", line):
        return indent[:-4]
    return indent


def _end_of_entry(lines: list[str], start: int) -> int:
    """Index of the line after the entry that starts at `start`."""
    if _is_blank(lines[start]) or lines[start].lstrip().startswith(COMMAND):
        return start + 1
    end = start + 1
    while end < len(lines) and _wants_more("\n".join(lines[start:end]), "exec"):
        end += 1
    if _BLOCK.match(lines[start]):
        while end < len(lines) and _belongs_to_block(lines, start, end):
            end += 1
    return end


def _belongs_to_block(lines: list[str], start: int, at: int) -> bool:
    line = lines[at]
    inside = _is_blank(line) or line[0].isspace() or _CONTINUES.match(line) is not None
    return inside or _wants_more("\n".join(lines[start:at]), "exec")


def _wants_more(text: str, symbol: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return codeop.compile_command(text, "<entry>", symbol) is None
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
        return False


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _is_blank(line: str) -> bool:
    stripped = line.strip()
    return not stripped or stripped.startswith("#")
