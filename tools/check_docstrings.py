"""Refuse docstrings that are questions or begin like one: a docstring states what the thing is or returns.

In: Python files or folders (default: `engine` and `tsrepl`).  Out: a line for each docstring that ends in a question
mark or begins with "What", "How", "Who" or "Whether" (strings below assignments count); exit status 1 if there are any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_QUESTION_WORDS = re.compile(r"(What|How|Who|Whether)\b")


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the text of every string that stands alone as a statement: docstrings, and those of attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value.strip()


def fault(text: str) -> str | None:
    """The reason to refuse a docstring, or None."""
    if text.endswith("?"):
        return "ends in a question mark"
    if begins := _QUESTION_WORDS.match(text):
        return f'begins with "{begins[0]}"'
    return None


def main(places: list[str]) -> int:
    """Print the faults in the files; returns the exit status."""
    files = [file for place in places for file in (sorted(Path(place).rglob("*.py")) or [Path(place)])]
    count = 0
    for file in files:
        for line, text in docstrings(ast.parse(file.read_text(encoding="utf-8"))):
            if (reason := fault(text)) is not None:
                count += 1
                print(f"{file}:{line}: the docstring {reason}: {text.splitlines()[0]}")
    if count:
        print(f"{count} docstrings to reword: say what the thing is or returns")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["engine", "tsrepl"]))
