"""Operators that files of Python give to programs (`torch.library`).

In: paths.  Out: nothing, once their operators are there; an error reply that names the line, for the first that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.lang.errors import EngineError
from engine.torch.running import load_operators
from tsrepl.session.failures import guarded
from tsrepl.session.python_errors import PythonError, python_frames
from tsrepl.session.replies import Reply


def load_all(paths: Sequence[str]) -> Iterator[Reply]:
    """Run the files in order."""
    return guarded(_load_all(paths))


def _load_all(paths: Sequence[str]) -> Iterator[Reply]:
    for path in paths:
        try:
            load_operators(path)
        except Exception as error:
            frames = python_frames(error.__traceback__)
            raise PythonError(error, frames) if frames or not isinstance(error, EngineError) else error from None
    yield from ()
