"""Splitting of text into entries.

In: text as it is typed, pasted or piped.  Out: its completeness, and the entries in it.  TorchScript has Python's
layout, so Python's own compiler answers the question of completeness; nothing is ever run by it.
"""

from __future__ import annotations

import codeop
import re
import warnings
from collections.abc import Iterator

from engine.lang.records import dataclass

COMMAND = "%"
_BLOCK = re.compile(r"(?:async|def|class|if|for|while|with|try)\b|@")
_IMPORT = re.compile(r"(?:import|from)\b")
_DEFINITION = re.compile(r"(?:def|class)\b|@")
_DERIVED = re.compile(r"^class[ \t]+\w+[ \t]*\(", re.MULTILINE)
_DEFINED = re.compile(r"^(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_PIECE = re.compile(r"""\"{3}|'{3}|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|\#|[()\[\]{}]""")
_ENDS_OF_STRINGS = {quotes: re.compile(rf"(?<!\\)(?:\\\\)*{quotes}") for quotes in ('"' * 3, "'" * 3)}
_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_CONTINUES = re.compile(r"(?:else|elif|except|finally)\b")


SYSTEM = "!"
"""The sign before a line for the system's own shell."""
CELL = "%%"
"""The sign before a command that takes the lines behind it, too."""
_SHORTHANDS = tuple(
    re.compile(pattern.replace("NAME", r"([\w.:\[\]]+)"))
    for pattern in (r"NAME\s*\?{1,2}", r"\?{1,2}\s*NAME", r"help\(\s*['\"]?NAME['\"]?\s*\)")
)
LEAVE = frozenset({"exit", "quit", "exit()", "quit()", "%exit", "%quit"})
"""Entries that end the dialogue."""
HELP = frozenset({"help", "help()", "?"})
"""Entries that ask for the list of commands."""
_PROMPTS = re.compile(r"(?:ts> |>>> |In \[\d+\]: )|(?:\.\.\.:? |\.\.\.:?$| +\.\.\.: ?)")
_FIRST_PROMPT = re.compile(r"\s*(?:ts> |>>> |In \[\d+\]: )")


def command_of(text: str) -> str:
    """The command that the text is short for: `%doc f` for `f?`, `?f` and `help(f)`; else the text."""
    for short in _SHORTHANDS:
        match = short.fullmatch(text.strip())
        if match is not None:
            return f"%doc {match[1]}"
    return text


def without_prompts(text: str) -> str:
    """Text copied from a dialogue with Python, IPython or this shell: what was typed, without prompts and answers."""
    if not _FIRST_PROMPT.match(text):
        return text
    lines = text.split("\n")
    return "\n".join(_PROMPTS.sub("", line, count=1) for line in lines if not line or _PROMPTS.match(line))


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement or command, and the line (from 1) of the text that it starts on."""

    text: str
    line: int = 1

    @property
    def is_command(self) -> bool:
        return self.text.lstrip().startswith(COMMAND)

    @property
    def system(self) -> str:
        """The line that it is for the system's shell; "" for others."""
        text = self.text.lstrip()
        return text.removeprefix(SYSTEM).strip() if text.startswith(SYSTEM) else ""

    @property
    def is_definition(self) -> bool:
        return _DEFINITION.match(self.text) is not None

    @property
    def is_import(self) -> bool:
        return _IMPORT.match(self.text) is not None

    @property
    def derives(self) -> bool:
        """True for a class with a base, going by its lines."""
        return _DERIVED.search(self.text) is not None

    def defined_names(self) -> list[str]:
        """The names of the functions and classes it defines, going by its lines: it need not be well formed."""
        return _DEFINED.findall(self.text)


def split_entries(text: str) -> list[Entry]:
    """The statements and commands of the text, each an entry of its own; blank lines and comments are left out."""
    entries: list[Entry] = []
    lines = _lines(text)
    at = 0
    while at < len(lines):
        end = _end_of_entry(lines, at)
        if not _is_blank(lines[at]):
            entries.append(Entry(command_of("\n".join(lines[at:end]).rstrip()), at + 1))
        at = end
    return entries


def is_complete(text: str) -> bool:
    """True if the text is complete: a block needs a blank line at its end; invalid text is complete."""
    entries = split_entries(text)
    if entries and entries[-1].text.lstrip().startswith(CELL):
        head, *rest = entries[-1].text.split("\n")
        return text.endswith("\n") or (
            not rest and len(head.split()) > 1 and not _wants_more(head.split(None, 1)[1], "single")
        )
    if not entries or entries[-1].is_command or text.lstrip().startswith(SYSTEM):
        return True
    last = "\n".join(_lines(text)[entries[-1].line - 1 :])
    return not _wants_more(last, "single")


def next_indent(text: str) -> str:
    """The blanks that the line after `text` most likely starts with."""
    line = text.rpartition("\n")[2]
    indent = line[: len(line) - len(line.lstrip())]
    if line.rstrip().endswith((":", "(", "[", "{")):
        return indent + "    "
    if re.match(r"\s*(?:return|raise|pass|break|continue)\b", line):
        return indent[:-4]
    return indent


def _end_of_entry(lines: list[str], start: int) -> int:
    """Index of the line after the entry that starts at `start`."""
    if lines[start].startswith(CELL):
        return len(lines)
    if _is_blank(lines[start]) or lines[start].lstrip().startswith((COMMAND, SYSTEM)):
        return start + 1
    ends = _possible_ends(lines, start)
    end, is_forced = next(ends)
    while not is_forced and end < len(lines) and _wants_more("\n".join(lines[start:end]), "exec"):
        end, is_forced = next(ends)
    if _BLOCK.match(lines[start]):
        while not is_forced and end < len(lines) and _belongs_to_block(lines[end]):
            end, is_forced = next(ends)
    return end


def _belongs_to_block(line: str) -> bool:
    return _is_blank(line) or line[0].isspace() or _CONTINUES.match(line) is not None


def _possible_ends(lines: list[str], start: int) -> Iterator[tuple[int, bool]]:
    """Positions where an entry that begins at `start` may end: after lines that leave no bracket or string open.

    It must end, whatever is open, before a definition that begins a line inside of brackets: one is not closed.
    Python's compiler knows most of this, too, but it would read the text again for each line.
    """
    depth, quotes = 0, ""
    for index in range(start, len(lines)):
        line = lines[index]
        if depth > 0 and not quotes and _DEFINITION.match(line):
            yield index, True
        depth, quotes = _open_after(line, depth, quotes)
        if depth <= 0 and not quotes and not line.endswith("\\") and not line.startswith("@"):
            yield index + 1, False
    yield len(lines), True


def _open_after(line: str, depth: int, quotes: str) -> tuple[int, str]:
    """The number of brackets, and the triple quotes, open after the line."""
    at = 0
    while True:
        found = (_ENDS_OF_STRINGS[quotes] if quotes else _PIECE).search(line, at)
        if found is None or found[0] == "#":
            return depth, quotes
        at = found.end()
        if quotes or found[0] in _ENDS_OF_STRINGS:
            quotes = "" if quotes else found[0]
        else:
            depth += _DEPTH.get(found[0], 0)


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
