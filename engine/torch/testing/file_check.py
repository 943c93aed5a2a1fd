"""`FileCheck`: ordered checks of the contents of a text.

In: checks, one after the other, and a text (or a graph, which is printed).  Out: nothing, or a RuntimeError that
shows the check and the part of the text that was searched.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any, Final

from engine.lang.records import dataclass

_ANNOTATION: Final = re.compile(
    r"#\s*CHECK(?:-(?P<kind>NEXT|SAME|DAG|NOT|REGEX|SOURCE-HIGHLIGHTED|COUNT(?:-EXACTLY)?-(?P<count>\d+)))?:"
    r"[ \t]+(?P<text>.*?)\s*$",
    re.MULTILINE,
)
_BEGUN: Final = re.compile(r"#\s*CHECK.*")


@dataclass(frozen=True, slots=True)
class _Check:
    kind: str
    text: str
    count: int = 1
    exactly: bool = False

    @property
    def name(self) -> str:
        if self.kind == "COUNT":
            return f"CHECK-COUNT-{'EXACTLY-' if self.exactly else ''}{self.count}"
        return f"CHECK-{self.kind}" if self.kind else "CHECK"

    def find(self, text: str, start: int, end: int | None = None) -> tuple[int, int] | None:
        """The first match between the two positions, or None."""
        pattern = self.text if self.kind == "REGEX" else re.escape(self.text)
        found = re.compile(pattern).search(text, start, len(text) if end is None else end)
        return found.span() if found else None


class FileCheck:
    """Checks in order: each searches the text after the match of the one before it."""

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def check(self, test_string: str) -> FileCheck:
        """Check that the text occurs."""
        return self._add(_Check("", test_string))

    def check_not(self, test_string: str) -> FileCheck:
        """Check that the text does not occur between the matches of the checks before and after."""
        return self._add(_Check("NOT", test_string))

    def check_next(self, test_string: str) -> FileCheck:
        """Check that the text occurs in the next line."""
        return self._add(_Check("NEXT", test_string))

    def check_same(self, test_string: str) -> FileCheck:
        """Check that the text occurs in the same line."""
        return self._add(_Check("SAME", test_string))

    def check_dag(self, test_string: str) -> FileCheck:
        """Check that the text occurs; neighbouring checks of this kind may match in any order."""
        return self._add(_Check("DAG", test_string))

    def check_count(self, str: str, count: int, exactly: bool = False) -> FileCheck:
        """Check that the text occurs `count` times, and, if `exactly`, not again before the next check."""
        if count < (0 if exactly else 1):
            raise RuntimeError(f'check_count("{str}", {count}) checks nothing: count from 1, or say exactly=True')
        return self._add(_Check("COUNT", str, count, exactly))

    def check_regex(self, test_string: str) -> FileCheck:
        """Check that the regular expression matches."""
        return self._add(_Check("REGEX", test_string))

    def check_source_highlighted(self, test_string: str) -> FileCheck:
        """Check that the text occurs and that the line below marks it, from its first to its last letter, with `~`."""
        return self._add(_Check("SOURCE-HIGHLIGHTED", test_string))

    def run(self, checks_file: Any, test_file: Any = None) -> None:
        """Run the checks on the text; with two arguments, the first has the checks in comments: `# CHECK: word`.

        Raises RuntimeError for the first check that fails, or if there are none.
        """
        if test_file is not None:
            self._checks = [*self._checks, *_annotated(str(checks_file))]
        if not self._checks:
            raise RuntimeError("FileCheck has nothing to check")
        _run(self._checks, str(checks_file if test_file is None else test_file))

    def _add(self, check: _Check) -> FileCheck:
        self._checks.append(check)
        return self

    def __repr__(self) -> str:
        return f"FileCheck({', '.join(f'{check.name}: {check.text}' for check in self._checks)})"


def _annotated(text: str) -> list[_Check]:
    """The checks written as comments."""
    found = []
    for begun in _BEGUN.finditer(text):
        match = _ANNOTATION.match(text, begun.start())
        if match is None:
            raise RuntimeError(f'Could not parse check: write "# CHECK: text" or "# CHECK-NOT: text"\n{begun[0]}')
        kind, count = match["kind"] or "", match["count"]
        if count is None:
            found.append(_Check(kind, match["text"]))
        else:
            found.append(_Check("COUNT", match["text"], int(count), "EXACTLY" in kind))
    if not found:
        raise RuntimeError('Check for bad input: there are no checks; write them as "# CHECK: text"')
    return found


def _run(checks: list[_Check], text: str) -> None:
    at, unwanted = 0, list[_Check]()
    for kind, group in groupby(checks, key=lambda check: check.kind):
        if kind == "NOT":
            unwanted += group
            continue
        for together in [list(group)] if kind == "DAG" else [[check] for check in group]:
            start, end = _find(together, text, at)
            _refuse(unwanted, text, at, start)
            unwanted = [_Check("NOT", check.text) for check in together if check.exactly]
            at = end
    _refuse(unwanted, text, at, len(text))


def _find(together: list[_Check], text: str, at: int) -> tuple[int, int]:
    """The range of the text that the checks match (several only of the kind DAG)."""
    check = together[0]
    if check.kind == "COUNT":
        return _find_count(check, text, at)
    if check.kind == "SOURCE-HIGHLIGHTED":
        return _find_highlighted(check, text, at)
    spans = [_found(each, text, at) for each in together]
    start, end = min(first for first, _ in spans), max(last for _, last in spans)
    lines = text.count("\n", at, start)
    if check.kind == "NEXT" and lines != 1:
        raise _error(check, _not_next(lines), text, at)
    if check.kind == "SAME" and lines:
        raise _error(
            check,
            "Expected to not find a line end before it: it is to be in the same line, and is in " + _line(lines),
            text,
            at,
        )
    return start, end


def _find_count(check: _Check, text: str, at: int) -> tuple[int, int]:
    first = end = at
    for number in range(check.count):
        start, end = _found(check, text, end)
        first = start if number == 0 else first
    return first, end


def _find_highlighted(check: _Check, text: str, at: int) -> tuple[int, int]:
    """The first of the text's places whose letters, and no others beside them, are marked in the line below."""
    span = _found(check, text, at)
    while not _is_highlighted(text, *span):
        following = check.find(text, span[1])
        if following is None:
            raise _error(check, f'Expected to find "{check.text}" highlighted but it is not', text, span[0])
        span = following
    return span


def _is_highlighted(text: str, start: int, end: int) -> bool:
    below = text.find("\n", end) + 1
    if not below:
        return False
    column = start - (text.rfind("\n", 0, start) + 1)
    marks = text[below:].split("\n", 1)[0]
    around = marks[:column][-1:] + marks[column + end - start :][:1]
    return marks[column : column + end - start] == "~" * (end - start) and "~" not in around


def _found(check: _Check, text: str, at: int) -> tuple[int, int]:
    span = check.find(text, at)
    if span is None:
        raise _error(check, f'Expected to find "{check.text}" but did not find it', text, at)
    return span


def _refuse(unwanted: list[_Check], text: str, start: int, end: int) -> None:
    for check in unwanted:
        span = check.find(text, start, end)
        if span is not None:
            raise _error(check, f'Expected to not find "{check.text}" but found it', text, span[0])


def _not_next(lines: int) -> str:
    if not lines:
        return "Expected to find it in the next line, but it is in the same line"
    return "Expected to not find another line end before it: it is to be in the next line, and is in " + _line(lines)


def _line(lines: int) -> str:
    return "the same line" if not lines else f"a line {lines} further down"


def _error(check: _Check, message: str, text: str, at: int) -> RuntimeError:
    begin = text.rfind("\n", 0, at) + 1
    lines = text[begin:].split("\n")
    shown = "\n".join([lines[0], " " * (at - begin) + "~~~ <--- HERE", *lines[1:]])
    return RuntimeError(f"{message}\nSearched string:\n{shown}\nFrom {check.name}: {check.text}\n")
