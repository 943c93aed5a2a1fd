"""Texts out of files of others, made so that they can be shown: nothing in them steers the terminal.

In: a reply.  Out: the same, in whose texts characters that move the cursor, change colours or turn the direction of
writing stand as their escapes.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Final

from tsrepl.session.replies import Later, Reply

_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(reply: Reply) -> Reply:
    """The reply, safe to print."""
    safe: Reply = _safe(reply)
    return safe


def safe_text(text: str) -> str:
    """The text, safe to print; a line may end as it does on Windows."""
    if _STEERING.search(text) is None:
        return text
    return _STEERING.sub(lambda found: _escaped(found[0]), text.replace("\r\n", "\n"))


def safe_json(text: str) -> str:
    """The JSON, which means the same."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _safe(value: Any) -> Any:
    """The value with safe texts; the same one where they all are."""
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, Later):
        return Later(lambda: safe_text(value.text), value.length)
    if type(value) is tuple:
        parts = tuple(map(_safe, value))
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    if not dataclasses.is_dataclass(value) or not type(value).__module__.endswith("replies"):
        return value
    changed = {}
    for field in dataclasses.fields(value):
        given = getattr(value, field.name)
        safe = _safe(given)
        if safe is not given:
            changed[field.name] = safe
    return dataclasses.replace(value, **changed) if changed else value  # type: ignore[type-var]
