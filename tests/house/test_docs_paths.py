"""The pages name files and folders that the repository has.

A name in backticks is a path where it is one word with a slash or with the ending of a source; in commands and blocks
of code, where it begins with a folder of the root.  It is looked for from the root, from `engine` and `tsrepl`, and
from the folders that its section speaks of: those of the other paths there, and what these lie in.  So
`engine/fuser/groups/gemm.py` at a section's top lets its text say `products.py` and `backend/threads.py`.  Pages of
`docs/decisions` tell what was decided, of a repository that has changed since, and are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
_HOMES: Final = (ROOT, ROOT / "engine", ROOT / "tsrepl")
_BLOCK: Final = re.compile(r"^(    [^\n]*|```.*?^```)$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`([^`]+)`")
_PATH: Final = re.compile(r"[\w.*-]+(/[\w.*-]+)*/?")
_ENDING: Final = re.compile(r"/|\.(py|md|js|toml|txt|css)$")
_ROOTED: Final = re.compile(r"\b(?:engine|tsrepl|tests|tools|benchmarks|examples|docs)/[\w/.*-]*\w")
_ELSEWHERE: Final = frozenset({"config.toml", "tensors/"})
"""A file of the reader, and a folder in old archives."""


def paths(text: str) -> Iterator[str]:
    """The paths in a text; of commands and blocks of code those that begin with a folder of the root."""
    yield from _ROOTED.findall(text)
    for code in _CODE.findall(_BLOCK.sub("", text)):
        if _PATH.fullmatch(code) and _ENDING.search(code) and code not in _ELSEWHERE:
            yield code


def named(home: Path, path: str) -> list[Path]:
    """The files or folders of a folder that a path stands for."""
    file = home / path
    return list(home.glob(path)) if "*" in path else [file] if file.exists() else []


def missing(section: str) -> set[str]:
    """The paths of a section that are nowhere, from any folder that it speaks of."""
    left, homes, spoken = set(paths(section)), set[Path](), set(_HOMES)
    while spoken:
        homes |= spoken
        found = {path: [file for home in homes for file in named(home, path)] for path in left}
        left = {path for path in left if not found[path]}
        folders = {folder for files in found.values() for file in files for folder in (file, *file.parents)}
        spoken = {folder for folder in folders if folder.is_dir() and ROOT in folder.parents} - homes
    return left


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_paths_exist(page: Path) -> None:
    sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {path: section.split("\n")[0] for section in sections for path in missing(section)} == {}


def test_a_path_that_is_gone_is_found() -> None:
    text = "`engine/lang/source.py`, `errors.py`, `gone.py`, `a.b`, `lang/gone/`\n\n    `code.py` tests/gone.py\n"
    assert missing(text) == {"gone.py", "lang/gone/", "tests/gone.py"}
