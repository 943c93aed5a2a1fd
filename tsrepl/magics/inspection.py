"""Documentation of names, as `f?` and Shift-Tab show it.

In: a cell and the place of the cursor, or an object that IPython has found.  Out: what `%tsjit_doc` tells.  IPython
offers a slot for the forms in which it shows an object, and a kernel one for each kind of request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell

from tsrepl.magics.display import WIDTH
from tsrepl.magics.words import CELL
from tsrepl.render.html import to_html
from tsrepl.render.terminal import to_text
from tsrepl.session.documentation import doc, of_object
from tsrepl.session.entries import COMMAND
from tsrepl.session.replies import Reply, SchemaReply
from tsrepl.session.session import Session
from tsrepl.session.signatures import callee_at

_REQUEST: Final = "inspect_request"
_PATH: Final = re.compile(r"[A-Za-z_][\w.]*$")
_REST: Final = re.compile(r"\w*")
Forms = dict[str, str]


class Inspection:
    """The documentation that a session has of names, for one shell."""

    def __init__(self, session: Session, shell: InteractiveShell) -> None:
        self.session, self.shell = session, shell
        self._before: Any = None

    def register(self) -> None:
        """Take the slots."""
        hooks: Any = self.shell.inspector.mime_hooks
        hooks["text/plain"] = partial(_fields, _text)
        hooks["text/html"] = partial(_fields, to_html)
        handlers = self._handlers()
        self._before = handlers.get(_REQUEST)
        if self._before is not None:
            handlers[_REQUEST] = self._answer

    def unregister(self) -> None:
        """Give them back."""
        for form in ("text/plain", "text/html"):
            self.shell.inspector.mime_hooks.pop(form, None)
        if self._before is not None:
            self._handlers()[_REQUEST] = self._before

    def _handlers(self) -> dict[str, Any]:
        """The handlers of the kernel, by kinds of requests; none where there is no kernel."""
        kernel = getattr(self.shell, "kernel", None)
        found: dict[str, Any] = {} if kernel is None else kernel.shell_handlers
        return found

    def at(self, code: str, cursor: int) -> Forms:
        """The documentation of the call that is open at the cursor in a cell of TorchScript, or of the name there.

        Empty for other cells, and for names that mean nothing.
        """
        if not code.startswith(f"%%{CELL}") or "\n" not in code[:cursor]:
            return {}
        before = code[:cursor].partition("\n")[2]
        word = _PATH.search(before)
        name = word[0] + _REST.match(code[cursor:])[0] if word else ""  # type: ignore[index]  # it may be empty
        for each in (callee_at(before), name):
            replies = self._known(each) if each else []
            if replies:
                return _forms(replies)
        return {}

    def _known(self, name: str) -> list[Reply]:
        workspace = self.session.workspace
        try:
            workspace.python.take(f"{COMMAND}{name}")  # Python may have bound it since the last cell
            return [*doc(workspace, name)]
        except Exception:
            return []

    async def _answer(self, stream: Any, ident: Any, parent: Any) -> None:
        """Answer a request of a page, for which any other cell is Python's."""
        kernel: Any = self.shell.kernel  # type: ignore[attr-defined]  # the shell of a kernel has it
        found = self.at(parent["content"]["code"], parent["content"]["cursor_pos"])
        if not found:
            await self._before(stream, ident, parent)
            return
        content = {"status": "ok", "found": True, "data": found, "metadata": {}}
        kernel.session.send(stream, "inspect_reply", content, parent, ident)


def _fields(form: Callable[[Reply], str], data: Any) -> list[tuple[str, str]] | None:
    """The documentation of an object that IPython has found, by headings; None of one that is not the engine's."""
    name = data.info_dict.get("name") or getattr(data.obj, "__name__", "")
    replies = [*of_object(name, data.obj)]
    headed = [("Signature" if isinstance(each, SchemaReply) else "Docstring", form(each).rstrip()) for each in replies]
    return headed or None


def _forms(replies: Iterable[Reply]) -> Forms:
    found = [*replies]
    return {"text/plain": "".join(map(_text, found)), "text/html": "".join(map(to_html, found))}


def _text(reply: Reply) -> str:
    return to_text(reply, WIDTH)
