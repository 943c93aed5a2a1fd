"""Commands by their names in a notebook: `%save` at the prompt is `%tsjit_save` there.

In: a reply.  Out: the same, with the commands that its texts mention renamed.  It stands alone, a pure function
of replies that needs no IPython.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Final

from tsrepl.session.commands import COMMANDS
from tsrepl.session.entries import COMMAND, SYSTEM
from tsrepl.session.replies import (
    CodeReply,
    DebugReply,
    ErrorReply,
    FileReply,
    HelpReply,
    HelpTopic,
    ModuleReply,
    Reply,
    TextReply,
)
from tsrepl.session.surroundings import HISTORY

CELL: Final = "torchscript"
PREFIX: Final = "tsjit_"
REPORT: Final = "report"
"""The magic that is no command of the session."""
_SPEAK: Final = (TextReply, ErrorReply, HelpReply, HelpTopic, FileReply)
"""Replies that mention commands; others show the contents of programs."""
_SHELL: Final = re.compile(r"(?<![\w!])tsrepl (?=[a-z]+ )")
"""The beginning of a line for the system's own shell, which has an exclamation mark in a cell."""
_ENTRY: Final = re.compile(rf"^{COMMAND}", re.MULTILINE)
_NAMES: Final = "|".join(re.escape(command.name) for command in COMMANDS)
_COMMAND: Final = re.compile(rf"(?<![\w{COMMAND}]){COMMAND}(?=(?:{_NAMES})\b)")


def as_magics(reply: Reply) -> Reply:
    """The reply, for a reader whose commands are magics."""
    renamed: Reply = _renamed(reply)
    return renamed


def _renamed(value: Any) -> Any:
    if isinstance(value, str):
        return _SHELL.sub(f"{SYSTEM}tsrepl ", _COMMAND.sub(COMMAND + PREFIX, value))
    if isinstance(value, ModuleReply):
        return dataclasses.replace(value, command=_renamed(value.command))
    if isinstance(value, DebugReply):
        return dataclasses.replace(value, error=_renamed(value.error))
    if isinstance(value, CodeReply) and value.title == HISTORY:
        return dataclasses.replace(value, text=_ENTRY.sub(COMMAND + PREFIX, value.text))
    if isinstance(value, tuple):
        return tuple(map(_renamed, value))
    if not isinstance(value, _SPEAK):
        return value
    return dataclasses.replace(
        value, **{field.name: _renamed(getattr(value, field.name)) for field in dataclasses.fields(value)}
    )
