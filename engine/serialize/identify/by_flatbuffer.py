"""Mobile programs that are flatbuffers, told by the identifier in them and by what they hold.

In: a file's head.  Out: a `Finding`, or None for what is no such file.
"""

from __future__ import annotations

from engine.lang.counts import counted, some_of
from engine.lang.errors import ArchiveError
from engine.serialize.container.read import Container
from engine.serialize.identify.by_bytes import clipped
from engine.serialize.identify.kinds import Finding, Head
from engine.serialize.mobile.file import IDENTIFIER, IDENTIFIER_AT, holds_code, is_flatbuffer, open_program
from engine.serialize.mobile.records import root_of, version_of

_MOST_NAMES = 8


def mobile_flatbuffer(head: Head) -> Finding | None:
    """A mobile program with or without code, or nothing but tensors."""
    if not head.data.startswith(IDENTIFIER, IDENTIFIER_AT):
        return None
    try:
        return _finding(open_program(head.path))
    except ArchiveError as error:
        title = "a mobile program as a flatbuffer that is damaged or cut off"
        return Finding("damaged", (("damage", error.message),), title)


def _finding(container: Container) -> Finding:
    assert is_flatbuffer(container)
    root = root_of(container)
    methods = len(root.listed("methods"))
    facts = [("format", "flatbuffer"), ("version", str(version_of(root)))]
    facts += [(label, told) for label, folder in _FOLDERS if (told := _told(container, folder))]
    facts += [("methods", f"{methods:,}")] if methods else []
    extra = [name.removeprefix("extra/") for name in container.names() if name.startswith("extra/")]
    facts += [("extra files", clipped(some_of(extra, _MOST_NAMES)))] if extra else []
    if holds_code(container):
        return Finding("mobile-flatbuffer", tuple(facts))
    return Finding("mobile-bytecode-only" if methods else "mobile-weights", tuple(facts))


_FOLDERS = (("code", "code/"), ("tensors", "data/"))


def _told(container: Container, folder: str) -> str:
    sizes = [container.size(name) for name in container.names() if name.startswith(folder)]
    return f"{counted(len(sizes), 'record')}, {counted(sum(sizes), 'byte')}" if sizes else ""
