"""Commands about the process around the session: folder, environment, earlier entries.

In: the command's argument.  Out: replies.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from engine.lang.errors import did_you_mean
from tsrepl.session.entries import COMMAND
from tsrepl.session.failures import UsageError
from tsrepl.session.files import words_of
from tsrepl.session.replies import CodeReply, EditReply, Reply, TextReply
from tsrepl.session.workspace import Workspace

HISTORY: Final = "history"
"""The title of the reply with entries."""
RECENT: Final = 20
"""Entries that `%history` shows unless it is told."""
EDIT: Final = f"{COMMAND}edit"


def cd(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%cd [folder]`: without a folder, home."""
    words = words_of(argument)
    if len(words) > 1:
        raise UsageError("%cd wants one folder", hints=("a path with blanks in it stands in quotation marks",))
    os.chdir(os.path.expanduser(words[0] if words else "~"))
    yield TextReply(os.getcwd())


def env(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%env [NAME[=value]]`."""
    name, sign, value = argument.partition("=")
    if sign:
        os.environ[name.strip()] = value.strip()
    elif name and name not in os.environ:
        raise UsageError(f"there is no environment variable {name}", hints=(f"write %env {name}=value to set it",))
    chosen = [name.strip()] if name else sorted(os.environ)
    yield TextReply("\n".join(f"{each}={os.environ[each]}" for each in chosen))


def edit(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%edit [f]`: a definition as it was typed, or the last entry that is no `%edit`."""
    if not argument:
        earlier = (text for text in reversed(workspace.history) if not text.lstrip().startswith(EDIT))
        yield EditReply(next(earlier, ""))
        return
    text = workspace.definitions.text(argument)
    if text is None:
        near = did_you_mean(argument, workspace.definitions.trees)
        raise UsageError(f"no function or class '{argument}' was defined here", hints=near or ("%who lists all names",))
    yield EditReply(text)


def history(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%history [n]`: the last n entries, oldest first, each with the number that errors name."""
    if argument and not argument.isdecimal():
        raise UsageError("%history wants a number of entries", hints=("write %history 20",))
    count = int(argument) if argument else RECENT
    kept = [*zip(workspace.labels, workspace.history, strict=True)][-count:] if count else []
    numbers = [
        label.strip("<>").removeprefix("entry ") if first else ""
        for label, text in kept
        for first in (True, *[False] * text.count("\n"))
    ]
    yield CodeReply(HISTORY, "\n".join(text for _, text in kept), numbers=tuple(numbers))
