"""Files that `torch.load` is given and that are not what `torch.save` writes today.

In: the file, and why it was refused.  Out: a file of the older format in the form of today, or a better reason.  It is
loaded when it is needed: most files are what they should be.
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
    """What torch.save wrote before PyTorch 1.6, as it would today; None for anything else.  Raises ArchiveError."""
    found = _identity(f)
    if found is None or dict(found.facts).get("format") is None or found.kind not in _READABLE:
        return None
    return as_zip_file(mapped(found.path))


def with_advice(error: ArchiveError, f: PathOrFile) -> ArchiveError:
    """The error, with what can be done about a file that holds more than tensors, numbers and containers."""
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
