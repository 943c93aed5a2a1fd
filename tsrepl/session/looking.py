"""Commands about files that are not loaded: identify, check, diff.

In: paths.  Out: what the commands of the command line answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from tsrepl.session import archives, differences
from tsrepl.session.failures import UsageError
from tsrepl.session.files import words_of
from tsrepl.session.replies import Reply
from tsrepl.session.workspace import Workspace


def identify(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%identify path`."""
    return archives.identify_files(_paths(argument))


def check(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%check path`."""
    paths = _paths(argument)
    if len(paths) != 1:
        raise UsageError("%check wants one file", hints=("write %check model.pt",))
    return archives.check(paths[0])


def diff(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%diff old new`."""
    paths = _paths(argument)
    if len(paths) != 2:
        raise UsageError("%diff wants two files", hints=("write %diff old.pt new.pt",))
    return differences.diff(paths)


def _paths(argument: str) -> list[str]:
    return [os.path.expanduser(word) for word in words_of(argument)]
