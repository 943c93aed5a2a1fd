"""Files that a person names are written in one step: whoever is interrupted leaves the old one, or the new one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.lang.python_syntax import parse_python

ROOT = Path(__file__).parents[2]
ALLOWED = {
    "engine/aten/dispatch/families.py": "a cache, under a name of its own until it is complete",
    "engine/fuser/backend/pace.py": "a setting of the system",
    "engine/fuser/backend/private_files.py": "caches, likewise",
    "engine/fuser/gpu/assemble.py": "a folder that is gone afterwards",
    "engine/ir/pass_log.py": "a log, which lines are added to",
    "engine/serialize/container/write.py": "the one place",
    "engine/serialize/inspect/extract.py": "a new folder, where nothing is replaced",
}
_WRITING = re.compile(r"[rwxab+]*[wxa+][rwxab+]*")


def writing(text: str) -> Iterator[int]:
    """The lines of a module that open or write a file."""
    for node in ast.walk(parse_python(text)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = [*node.args, *(each.value for each in node.keywords if each.arg == "mode")]
            words = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            opens = name in ("open", "fdopen") and any(map(_WRITING.fullmatch, words))
            if opens or name in ("write_text", "write_bytes"):
                yield node.lineno


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("open(path, 'wb')", True), ("path.open(mode='x')", True), ("os.fdopen(handle, 'r+b')", True),
        ("path.write_text(text)", True), ("open(path)", False), ("path.open('rb')", False), ("write('w')", False),
    ],
)  # fmt: skip
def test_what_writes_is_found(text: str, writes: bool) -> None:
    assert bool([*writing(text)]) == writes


def test_files_are_written_in_one_place() -> None:
    paths = [path for package in ("engine", "tsrepl") for path in (ROOT / package).rglob("*.py")]
    found = {path.relative_to(ROOT).as_posix() for path in paths if [*writing(path.read_text(encoding="utf-8"))]}
    assert found - ALLOWED.keys() == set(), "write it with `replace_file`"
    assert ALLOWED.keys() - found == set(), "these write no files any more"
