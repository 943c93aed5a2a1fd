"""Completion in cells and magics.

In: IPython's context: the text of the cell and the cursor.  Out: the session's candidates, in IPython's form.  Names of
Python that the session has not seen yet are among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from tsrepl.magics.words import PREFIX
from tsrepl.session.bridge import Bridge
from tsrepl.session.commands import COMMANDS
from tsrepl.session.entries import COMMAND
from tsrepl.session.replies import Candidate
from tsrepl.session.session import Session

_CELL: Final = "%%torchscript"
_WORD: Final = re.compile(r"\w*$")
_MEMBER: Final = re.compile(r"(\w+)\.(\w*)$")
_OPTIONS: Final = ("--show", "--run", "--name")
_VIEWS: Final = tuple(command.name for command in COMMANDS if command.argument == "function")


class Completion:
    """A matcher of IPython's completer."""

    def __init__(self, session: Session, bridge: Bridge) -> None:
        self.session, self.bridge = session, bridge

        @context_matcher(identifier="tsrepl")  # type: ignore[untyped-decorator]
        def matches(context: CompletionContext) -> SimpleMatcherResult:
            return self._matches(context)

        self.matches = matches

    def _matches(self, context: CompletionContext) -> SimpleMatcherResult:
        found = list(self._candidates(_before_cursor(context)))
        if not found:
            return {"completions": [], "suppress": False}
        replaced = found[0].replaces
        line = context.text_until_cursor
        return {
            "completions": [SimpleCompletion(text=each.text, type=each.kind) for each in found],
            "matched_fragment": line[len(line) - replaced :],
            "suppress": True,
        }

    def _candidates(self, before: str) -> Iterator[Candidate]:
        first, _, body = before.partition("\n")
        line = before.rpartition("\n")[2].lstrip()
        if line.startswith(f"{COMMAND}{PREFIX}") and " " in line:
            yield from self._with_python(f"{COMMAND}{line.removeprefix(COMMAND + PREFIX)}")
        elif first.startswith(_CELL) and "\n" in before:
            yield from self._with_python(body)
        elif first.startswith(f"{_CELL} "):
            word = first.rpartition(" ")[2].rpartition(",")[2]
            known = (*_OPTIONS, *_VIEWS)
            yield from (Candidate(name, "option", len(word)) for name in known if name.startswith(word))

    def _with_python(self, text: str) -> Iterator[Candidate]:
        """The session's candidates, then names of Python that begin like the word at the end."""
        self.bridge.take(text.rpartition("\n")[2])
        found = self.session.complete(text)
        unknown = None if found else _MEMBER.search(text)
        if unknown is not None and unknown[1] != "self" and unknown[1] not in self.bridge.namespace:
            found = self.session.complete(
                f"().{unknown[2]}"
            )  # a name that the cell itself binds is a tensor, most often
        yield from found
        word = _WORD.search(text)[0]  # type: ignore[index]  # it may be empty
        if word and not text[: -len(word)].endswith((".", "/")) and not word.startswith("_"):
            known = {each.text for each in found}
            names = (name for name in self.bridge.namespace if name.startswith(word) and name not in known)
            yield from (Candidate(name, "Python", len(word)) for name in names)


def _before_cursor(context: CompletionContext) -> str:
    """The text of the cell up to the cursor."""
    lines = context.full_text.split("\n")
    return "\n".join([*lines[: context.cursor_line], context.text_until_cursor])
