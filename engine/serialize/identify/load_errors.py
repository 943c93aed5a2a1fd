"""Error hints for a file that was opened as a program and is not one.

In: the path and the ArchiveError.  Out: the same error, or one that names the kind of file.  The identification stands
in modules of its own, which are imported when an error occurs: most files are programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.lang.errors import ArchiveError


@contextmanager
def explain_load_errors(path: object) -> Iterator[None]:
    """A block that opens a program: its ArchiveError names the kind of file if the file is no program."""
    try:
        yield
    except ArchiveError as error:
        from engine.serialize.identify.identify import explained

        better = explained(error, path)
        if better is error:
            raise
        raise better from error
