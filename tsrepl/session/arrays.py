"""Arrays in files: `.npy` and `.npz`.

In: a path.  Out: tensors; or values, written in one step.  Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from engine.aten.values.tensor import Tensor, from_numpy
from engine.lang.errors import EngineError
from engine.lang.scalars import bfloat16
from engine.serialize.container.write import replace_file
from engine.serialize.identify.identify import identify
from tsrepl.session.failures import CommandLineError, SessionError

ENDINGS: Final = (".npy", ".npz")
_KINDS: Final = ("npy", "npz")
_MAGIC: Final = (b"\x93NUMPY", b"PK\x03\x04", b"PK\x05\x06")

_UNREADABLE: Final = (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, MemoryError, NotImplementedError)


def is_array_file(path: str) -> bool:
    """True if the file is read as arrays: its contents decide, and its name where they are nothing known."""
    named = path.endswith(ENDINGS)
    if not os.path.isfile(path):
        return named
    found = identify(path)
    return found.kind in _KINDS or (named and not found.is_program)


def read_arrays(path: str) -> dict[str, Tensor]:
    """The file's arrays by name; that of an `.npy` file is called "".

    Raises OSError when the file cannot be read, SessionError when it holds something else than arrays of numbers.
    """
    with open(path, "rb") as file:
        if not file.peek(6).startswith(_MAGIC):
            raise SessionError(f"'{path}' is no .npy or .npz file, whatever its name says")
        try:
            return {name: _tensor(array, name) for name, array in _load(file).items()}
        except _UNREADABLE as error:
            raise SessionError(f"'{path}' cannot be read as arrays: {_first_line(error)}") from None


def write_arrays(path: str, value: Any) -> None:
    """Write the tensors and numbers in `value` to `path` in one step; nothing stays when that fails.

    A `.npy` file holds one array.  In an `.npz` file one result is called `result`, those of a tuple or list `0`, `1`
    and so on, those of a dict or named tuple by their keys.  Raises SessionError, ArchiveError.
    """
    arrays = {name: _array(each, name) for name, each in _named(value).items()}
    buffer = io.BytesIO()
    if path.endswith(".npz"):
        np.savez(buffer, **arrays)
    elif len(arrays) == 1:
        np.save(buffer, next(iter(arrays.values())), allow_pickle=False)
    else:
        raise SessionError(f"a .npy file holds one array, and there are {len(arrays)}", hints=("write to a .npz file",))
    replace_file(path, [buffer.getvalue()])


def check_writable(path: str) -> None:
    """Raises SessionError if arrays cannot be written to the path; called before a long computation."""
    if not path.endswith(ENDINGS):
        raise CommandLineError(f"'{path}' is neither .npz nor .npy", hints=("results are kept as arrays",))
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise SessionError(f"there is no folder '{folder}'")


def _load(file: io.BufferedReader) -> dict[str, Any]:
    loaded = np.load(file, allow_pickle=False)
    return {"": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}


def _tensor(array: Any, name: str) -> Tensor:
    try:
        return from_numpy(np.ascontiguousarray(array).reshape(array.shape))
    except EngineError as error:
        what = f"array '{name}'" if name else "the array"
        raise SessionError(f"{what} has dtype {array.dtype}, and no tensor has: {error.message}") from None


def _named(value: Any) -> Mapping[str, Any]:
    fields = getattr(value, "_fields", None)
    if fields:
        return dict(zip(fields, value, strict=True))
    if isinstance(value, dict):
        return {str(key): each for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return {str(index): each for index, each in enumerate(value)}
    return {"result": value}


def _array(value: Any, name: str) -> Any:
    if isinstance(value, Tensor):
        # NumPy has no name for bfloat16 in files; float32 holds every one of its values.
        return value.array.astype(np.float32) if value.dtype is bfloat16 else value.array
    if isinstance(value, (bool, int, float, complex)):
        return np.asarray(value)
    if isinstance(value, (list, tuple)) and all(isinstance(v, (bool, int, float)) for v in value):
        return np.asarray(value)
    raise SessionError(f"result '{name}' is {type(value).__name__}, and only tensors and numbers are arrays")


def _first_line(error: BaseException) -> str:
    text = str(error).split("\n", 1)[0] or type(error).__name__
    return "it holds Python objects, not numbers" if "allow_pickle" in text else text
