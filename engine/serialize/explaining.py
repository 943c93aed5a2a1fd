"""What a file is, said by whoever was to open a program and was given something else.

In: the path.  Out: the same error, or one that says what the file is.  What knows that is loaded when it is needed:
most files are what they should be.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.lang.errors import ArchiveError


@contextmanager
def explaining(path: object) -> Iterator[None]:
    """Whoever opens a program in here says what the file is, if it is none."""
    try:
        yield
    except ArchiveError as error:
        from engine.serialize.identify.identify import explained

        better = explained(error, path)
        if better is error:
            raise
        raise better from error
