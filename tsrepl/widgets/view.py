"""The base of all views: a front end, its styles, and the way in which both sides talk.

In: the names of front-end files.  Out: widgets.  The front end asks with a message that has a number; the answer
carries the same number.  `data` is what a view is about, `shown` what shows of it now, as the kernel answered last, and
`state` what the reader chose: all are saved with the notebook, so that a view looks the same when its kernel is gone.
All else is fetched when it is looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

import anywidget
import traitlets

from tsrepl.render.highlight import highlight
from tsrepl.session.failures import error_replies
from tsrepl.session.replies import ErrorReply
from tsrepl.widgets.messages import Refused, message_of
from tsrepl.widgets.theme import styles

Answer = dict[str, Any]
Handler = Callable[[Any, Any], Answer]
MOST_KEPT: Final = 150_000
"""Characters of what shows that are saved with the notebook."""
_HERE: Final = Path(__file__).parent
_LEFT_OUT: Final = re.compile(r"^[ \t]*(?:/\*\*.*?\*/\n|//[^\n]*\n)|^[ \t]+|^\n", re.MULTILINE | re.DOTALL)


def front_end(*names: str) -> str:
    """The files as one module: the shared ones in front, since a module that a widget sends can import no other.

    Each saved view has it, so that comments of whole lines and indentation are left out.
    """
    text = "\n".join((_HERE / f"{name}.js").read_text(encoding="utf-8") for name in ("common", *names))
    return _LEFT_OUT.sub("", text)


class View(anywidget.AnyWidget):
    """A widget; `HANDLERS` has a row for each message that it knows."""

    _css = traitlets.Unicode(styles()).tag(sync=True)
    data = traitlets.Dict().tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)
    HANDLERS: ClassVar[dict[type[Any], Handler]] = {}

    def __init__(self, data: Answer, **state: Any) -> None:
        super().__init__(data=data, state=state)
        self.key = self.model_id  # by which the front end knows itself
        self.on_msg(lambda _, content, buffers: self.receive(content))

    def keep(self, **changes: Any) -> None:
        """Save what shows now with the view; what would make that large is left out."""
        kept = {**self.shown, **changes}
        if len(json.dumps(kept)) > MOST_KEPT:
            kept = {name: value for name, value in self.shown.items() if name not in changes}
        self.shown = kept

    def receive(self, content: object) -> None:
        """Answer a message of the front end."""
        number = content.get("id") if isinstance(content, dict) else None
        self.send({"id": number if isinstance(number, int) else 0, **self.answer(content)})

    def answer(self, content: object) -> Answer:
        """The answer to a message: what its handler gives, or the reason why there is none."""
        try:
            message = message_of(content, [*self.HANDLERS])
            return {"answer": self.HANDLERS[type(message)](self, message)}
        except Refused as refused:
            return {"refused": str(refused)}
        except Exception as error:
            (reply, *_) = error_replies(error)
            assert isinstance(reply, ErrorReply)
            return {"refused": f"{reply.kind}: {reply.message}"}


def spans(text: str, language: str) -> list[list[list[str]]]:
    """Highlighted lines: for each its pieces, as (text, role)."""
    lines: list[list[list[str]]] = [[]]
    for piece, role in highlight(text, language):
        first, *rest = piece.split("\n")
        _extend(lines[-1], first, role)
        for each in rest:
            lines.append([])
            _extend(lines[-1], each, role)
    return lines


def _extend(pieces: list[list[str]], text: str, role: str) -> None:
    """Add a piece, to the last one if that has the same role."""
    if pieces and pieces[-1][1] == role:
        pieces[-1][0] += text
    elif text:
        pieces.append([text, role])
