"""Completion in cells and magics.

In: IPython's context: the text of the cell and the cursor.  Out: the session's candidates, in IPython's form.  Names of
Python that the session has not seen yet are among them.  In cells of Python, what objects and modules of the engine
have: they are there to be asked, where others read the engine's sources for seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

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
_PATH: Final = re.compile(r"(?<![\w.)\]'\"])([A-Za-z_]\w*)((?:\.\w+|\[-?\d+\])*)\.(\w*)$")
"""The name of an object, what is taken of it, and the beginning of what is wanted of that."""
_STEP: Final = re.compile(r"\.(\w+)|\[(-?\d+)\]")
_CLASS: Final = re.compile(r"^(\s*)class\s+\w+.*:\s*$", re.MULTILINE)
_METHOD: Final = re.compile(r"^\s*def\s+(\w+)\s*\(", re.MULTILINE)
_ATTRIBUTE: Final = re.compile(r"\bself\.(\w+)\s*(?::[^=\n]+)?=(?!=)")
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
            "ordered": True,
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
        elif not line.startswith((COMMAND, "!", "?")) and not first.startswith(f"{COMMAND}{COMMAND}"):
            yield from self._of_engine(line)

    def _of_engine(self, line: str) -> Iterator[Candidate]:
        """Names of what the object of the engine at the end of a line of Python has; nothing of others."""
        path = _PATH.search(line)
        found = _at(self.bridge.namespace, path) if path is not None else _NOTHING
        if path is None or not _is_engine_s(found):
            return
        word = path[3]
        names = (name for name in dir(found) if name.startswith(word) and (word or not name.startswith("_")))
        # Pages get some hundreds at most, so what works in place comes last.
        yield from (Candidate(name, "Python", len(word)) for name in sorted(names, key=lambda each: each.endswith("_")))

    def _with_python(self, text: str) -> Iterator[Candidate]:
        """The session's candidates, then names of Python that begin like the word at the end."""
        self.bridge.take(text.rpartition("\n")[2])
        found = self.session.complete(text) or _of_own_class(text)
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


def _at(namespace: Mapping[str, Any], path: re.Match[str]) -> Any:
    """The object of that path, each step of which is one that may be asked: looking into others may run anything."""
    found = namespace.get(path[1], _NOTHING)
    for name, index in _STEP.findall(path[2]):
        if not _is_engine_s(found):
            return _NOTHING
        try:
            found = getattr(found, name) if name else found[int(index)]
        except Exception:
            return _NOTHING
    return found


_NOTHING: Final = object()


def _is_engine_s(value: Any) -> bool:
    """True for modules and classes of the engine, classes derived from one, and objects of all these."""
    kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
    homes = [value.__name__] if isinstance(value, ModuleType) else [kind.__module__ for kind in kinds]
    return any(f"{home}.".startswith("engine.") for home in homes)


def _of_own_class(text: str) -> list[Candidate]:
    """Names that follow `self.` in the class that the text ends in: its methods, and what they assign to."""
    member, begun = _MEMBER.search(text), [*_CLASS.finditer(text)]
    if member is None or member[1] != "self" or not begun:
        return []
    body = text[begun[-1].end() : member.start()]
    kinds = {**dict.fromkeys(_ATTRIBUTE.findall(body), "attribute"), **dict.fromkeys(_METHOD.findall(body), "method")}
    fitting = ((name, kind) for name, kind in kinds.items() if name.startswith(member[2]) and name[:2] != "__")
    return [Candidate(name, kind, len(member[2])) for name, kind in fitting]


def _before_cursor(context: CompletionContext) -> str:
    """The text of the cell up to the cursor."""
    lines = context.full_text.split("\n")
    return "\n".join([*lines[: context.cursor_line], context.text_until_cursor])
