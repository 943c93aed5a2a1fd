"""Library code of the torch namespace that is written in TorchScript.

In: a dotted name like `torch.nn.functional.relu`.  Out: the text that defines it, and under which qualified
name it is compiled.  The texts are the files of `library_source`, one for each scope, every definition
starting in the first column.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_FOLDER: Final = Path(__file__).parent / "library_source"
_SCOPES: Final = {
    "torch.nn.functional": "torch.nn.functional",
    "torch.functional": "torch.functional",
    "torch.autograd.grad_mode": "torch.autograd.grad_mode",
    "torch": "torch.functional",
}
"""Where a name may be looked up -> the scope whose file defines it."""
_ELSEWHERE: Final = {"torch.no_grad": "torch.autograd.grad_mode.no_grad",
                     "torch.enable_grad": "torch.autograd.grad_mode.enable_grad"}  # fmt: skip
_DEFINITION: Final = re.compile(r"^(?:def|class) (\w+)", re.MULTILINE)


class Definition(NamedTuple):
    """The text of one definition, the line where it begins in its file, and the scope it belongs to."""

    text: str
    line: int
    scope: str


def find(path: str) -> list[Definition]:
    """The definitions of that dotted name: several where it is overloaded, none where it is not known."""
    scope, _, name = _ELSEWHERE.get(path, path).rpartition(".")
    return definitions(_SCOPES[scope]).get(name, []) if scope in _SCOPES else []


@cache
def definitions(scope: str) -> dict[str, list[Definition]]:
    """Everything that the file of that scope defines."""
    text = (_FOLDER / f"{scope}.txt").read_text()
    starts = list(_DEFINITION.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    found: dict[str, list[Definition]] = {}
    for match, end in zip(starts, ends, strict=True):
        line = text.count("\n", 0, match.start()) + 1
        found.setdefault(match[1], []).append(Definition(text[match.start() : end], line, f"__torch__.{scope}"))
    return found
