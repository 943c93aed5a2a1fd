"""The line at the foot of the terminal.

In: what the session has defined, the terminal's width.  Out: one line of styled text that fits.
A function of its own module, since it needs no running prompt and is tested without one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from prompt_toolkit.formatted_text import StyleAndTextTuples

if TYPE_CHECKING:
    from tsrepl.session.replies import Binding, SignatureHint

_ROOM = 24
"""Columns from which on further overloads are counted."""
EMPTY = "TorchScript · %help shows the commands · Ctrl-D leaves"
_GROUPS = (("function", ""), ("class", "class "), ("module", "module "), ("variable", ""))


def toolbar_text(bindings: Iterable[Binding], width: int) -> StyleAndTextTuples:
    """Functions, classes, modules, then variables with their types, newest first, as many as fit."""
    known = list(bindings)
    parts = [_label(b, prefix) for kind, prefix in _GROUPS for b in reversed(known) if b.kind == kind]
    if not parts:
        return [("class:toolbar", f" {EMPTY}"[:width])]
    shown = " " + parts[0]
    for index, part in enumerate(parts[1:], 1):
        rest = f"  +{len(parts) - index} more"
        if len(shown) + 2 + len(part) + len(rest) > width:
            shown += rest
            break
        shown += f"  {part}"
    return [("class:toolbar", shown[:width])]


def signature_text(hint: SignatureHint, width: int) -> StyleAndTextTuples:
    """A signature with its argument at the cursor marked, as much as fits around that argument."""
    more = f"  +{hint.others} more" if hint.others and width >= _ROOM else ""
    room = max(0, width - 1 - len(more))
    first = max(0, min(hint.end - room, len(hint.text)))
    cuts = (first, max(first, hint.start), max(first, hint.end), len(hint.text))
    shown: StyleAndTextTuples = [("class:toolbar", " ")]
    for style, (start, end) in zip(("signature", "argument", "signature"), pairwise(cuts), strict=True):
        text = hint.text[start:end]
        shown.append((f"class:toolbar class:{style}", text[:room]))
        room -= len(text[:room])
    return [*shown, ("class:toolbar", more[:width])]


def _label(binding: Binding, prefix: str) -> str:
    if binding.kind == "function":
        return f"{binding.name}()"
    return f"{prefix}{binding.name}" + (f": {binding.type}" if binding.kind == "variable" else "")
