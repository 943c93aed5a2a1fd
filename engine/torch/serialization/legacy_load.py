"""Files of older formats for `torch.load`, and advice on files that it refuses.

In: the file, and the error that it caused.  Out: a file of the format before PyTorch 1.6 converted to the current one,
or a better error.  The module is imported only when a file needs it.
"""

from __future__ import annotations

import io
import os

from engine.lang.errors import ArchiveError
from engine.serialize.archive import PathOrFile
from engine.serialize.identify.by_pickle import mapped
from engine.serialize.identify.identify import Identity, explained, identify
from engine.serialize.legacy.torch_save import as_zip_file


def in_todays_form(f: PathOrFile) -> io.BytesIO | None:
    """A file of the format before PyTorch 1.6 in the current one; None for other files.  Raises ArchiveError."""
    found = _identity(f)
    if found is None or dict(found.facts).get("format") is None or found.kind not in _READABLE:
        return None
    return as_zip_file(mapped(found.path))


def with_advice(error: ArchiveError, f: PathOrFile) -> ArchiveError:
    """The error, with hints for a file that holds more than tensors, numbers and containers."""
    found = _identity(f)
    if found is None or not (found.has_weights or found.kind == "torch-value"):
        return error
    if found.kind == "module-pickle":
        return explained(error, found.path)
    hint = f"engine.load_weights({found.path!r}) takes the tensors out of it and leaves all else"
    better = type(error)(error.message, hints=(hint,) if found.has_weights else found.advice)
    better.record, better.offset = error.record, error.offset
    return better


def _identity(f: PathOrFile) -> Identity | None:
    return identify(f) if isinstance(f, (str, os.PathLike)) else None


_READABLE = ("state-dict", "checkpoint", "optimizer", "tensors", "torch-value")
