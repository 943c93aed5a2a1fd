"""The signature of the call that is being typed.

In: the text before the cursor.  Out: the schema of the function, method or operator whose brackets are open, and the
place in it of the argument at the cursor.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.lang.deferred import deferred
from tsrepl.session.inspection import operator_schemas, signature
from tsrepl.session.replies import SignatureHint
from tsrepl.session.workspace import Workspace

if TYPE_CHECKING:
    from tsrepl.session import documentation
else:
    documentation = deferred("tsrepl.session.documentation")

_PIECE: Final = re.compile(r"""'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?|[\w.]+|[()\[\]{},=]|\S""")
_LIBRARY: Final = ("nn.", "F.", "torch.nn.")
_OPEN, _CLOSED = "([{", ")]}"
_LOOKED_AT: Final = 2000
"""Characters before the cursor that are looked at: this happens at every key."""


class _OpenCall(NamedTuple):
    """A call without its closing bracket: what is called, commas so far, and the keyword before the cursor."""

    callee: str
    position: int
    keyword: str


def signature_at(workspace: Workspace, before: str) -> SignatureHint | None:
    """The hint for the innermost call that is open at the end of `before`; None outside of calls."""
    call = _open_call(before[-_LOOKED_AT:])
    if call is None:
        return None
    schemas, offset = _schemas(workspace, call.callee)
    marked = [(text, *_marked(text, call.position + offset, call.keyword)) for text in schemas]
    fitting = [each for each in marked if each[1] < each[2]] or marked
    if not fitting:
        return None
    text, start, end = fitting[0]
    return SignatureHint(text, start, end, len(schemas) - 1)


def keywords_at(workspace: Workspace, before: str) -> list[str]:
    """The arguments that may be named next in the innermost open call; none behind a keyword's equals sign."""
    before = before[-_LOOKED_AT:]
    call = _open_call(before)
    if call is None or before.rstrip()[-1:] not in ("(", ","):
        return []
    schemas, offset = _schemas(workspace, call.callee)
    found: dict[str, None] = {}
    for text in schemas:
        for start, end in _argument_places(text)[call.position + offset :]:
            name = text[start:end].partition("=")[0].partition(":")[0].split()[-1]
            if name.isidentifier() and name != "self" and not re.search(rf"[(,]\s*{name}\s*=[^=]", before):
                found[name] = None
    return [*found]


def callee_at(before: str) -> str:
    """The path of what is called by the innermost call that is open at the end of `before`; "" outside of calls."""
    call = _open_call(before[-_LOOKED_AT:])
    return call.callee if call is not None else ""


def _open_call(before: str) -> _OpenCall | None:
    stack: list[list[str]] = [[]]
    for piece in _PIECE.findall(before):
        if piece in _OPEN:
            stack[-1].append(piece)
            stack.append([])
        elif piece in _CLOSED and len(stack) > 1:
            stack.pop()
            stack[-1].append(piece)
        else:
            stack[-1].append(piece)
    for outer, inner in zip(stack[-2::-1], stack[:0:-1], strict=True):
        if outer[-1] == "(" and len(outer) > 1 and re.fullmatch(r"[A-Za-z_][\w.]*", outer[-2]):
            last = inner[len(inner) - inner[::-1].index(",") :] if "," in inner else inner
            return _OpenCall(outer[-2], inner.count(","), last[0] if last[1:2] == ["="] else "")
    return None


def _schemas(workspace: Workspace, callee: str) -> tuple[tuple[str, ...], int]:
    """The schemas that the callee may stand for, and how many of their arguments stand before the brackets."""
    callee = callee if callee.partition(".")[0] in workspace.seen() else workspace.definitions.spelled(callee)
    if callee.startswith(_LIBRARY) and (library := documentation.library_schemas(callee)):
        return library, 0
    owner, _, name = callee.rpartition(".")
    function = workspace.functions().get(callee) or workspace.method(callee)
    if function is not None:
        return (signature(function),), 0
    if (known := workspace.definitions.signature(callee)) is not None:
        return (known,), 0
    is_method = bool(owner) and not f"{owner}.".startswith(("torch.", "math."))
    if is_method and (schemas := operator_schemas(name)):
        return schemas, 1
    return operator_schemas(callee), 0


def _marked(text: str, position: int, keyword: str) -> tuple[int, int]:
    """The place of an argument in a schema; an empty one where it has none such."""
    places = _argument_places(text)
    if keyword:
        found = [place for place in places if re.search(rf"\b{keyword}(?:=|$)", text[slice(*place)])]
    else:
        found = places[position : position + 1]
    return found[0] if found else (0, 0)


def _argument_places(text: str) -> list[tuple[int, int]]:
    """The places of a schema's arguments, without the star before those that are given by keyword alone."""
    places, depth, start = [], 0, text.find("(") + 1
    for at in range(start, len(text)):
        if depth == 0 and text[at] in ",)":
            part = text[start:at]
            places.append((at - len(part.lstrip()), at))
            start = at + 1
            if text[at] == ")":
                break
        depth += (text[at] in _OPEN) - (text[at] in _CLOSED)
    return [(start, end) for start, end in places if text[start:end] not in ("*", "")]
