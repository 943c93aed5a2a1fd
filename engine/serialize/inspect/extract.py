"""Taking a model file apart: weights as arrays, code and other records as files of a folder.

In: the path of a program or of weights, and where to put them.  Out: files: `.safetensors` or `.npz` in one step, or a
new folder whose files all lie inside it, whatever the records are called.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np

from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import ArchiveError, UnsupportedTensorError
from engine.serialize.container.write import replace_file
from engine.serialize.identify.identify import identify
from engine.serialize.inspect.safetensors import write_safetensors
from engine.serialize.inspect.survey import Survey, numbers_of, survey
from engine.serialize.inspect.weights import open_tensors, open_weights
from engine.serialize.mobile.file import open_program
from engine.serialize.pickling.other_tensors import RAW_DTYPES

ENDINGS: Final = (".safetensors", ".npz")
Named = dict[str, tuple[str, Array]]
"""Name -> the dtype's name, and the numbers."""
_SAFE_PART: Final = re.compile(r"[\w.+=@, -]+")
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?$", re.I)
_WITHOUT_NAME: Final = ("bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz")
"""Dtypes that `.npz` has no name for; float32 holds every one of their values."""


def weights_of(path: str | os.PathLike[str]) -> Named:
    """Every tensor of the file by name: parameters, buffers and attributes of a program.  Raises ArchiveError.

    Of quantized tensors the integers; tensors on the device meta, of which there are no numbers, are left out.
    """
    try:
        if identify(path).is_program:
            return _tensors_of(survey(path))
        opened = open_weights(path)
    except UnsupportedTensorError:
        opened = open_tensors(path)
    with opened as weights:
        present = {name: weight for name, weight in weights.entries.items() if weight.has_numbers}
        return {name: (RAW_DTYPES.get(each.dtype, each.dtype), each.array()) for name, each in present.items()}


def extract_weights(path: str | os.PathLike[str], target: str) -> Named:
    """Write the file's tensors to a `.safetensors` or `.npz` file; what was written.  Raises ArchiveError."""
    found = weights_of(path)
    if not found:
        raise ArchiveError(f"'{os.fspath(path)}' holds no tensors", hints=("`tsrepl identify` tells what the file is",))
    write_arrays(target, found)
    return found


def write_arrays(target: str, arrays: Named) -> None:
    """Write arrays in the format of the target's file name.  Raises ArchiveError."""
    if target.endswith(".safetensors"):
        write_safetensors(target, arrays, {"format": "pt"})
        return
    buffer = io.BytesIO()
    named: dict[str, Any] = {_npz_name(name): _plain(d, a) for name, (d, a) in arrays.items()}
    np.savez(buffer, **named)
    replace_file(target, [buffer.getvalue()])


def extract_folder(path: str | os.PathLike[str], target: str) -> list[tuple[str, int]]:
    """Write code, extra files, constants and weights into a new folder; the files' names and sizes.

    Raises ArchiveError when the folder is not empty, or a name would lead out of it.
    """
    found = identify(path)
    folder = Path(target)
    _new_folder(folder)
    written = []
    if found.is_program:
        for name, data in _records(path):
            written.append((name, _write(folder, name, data)))
        constants = _constants(survey(path))
        if constants:
            write_arrays(str(folder / "constants.npz"), constants)
            written.append(("constants.npz", (folder / "constants.npz").stat().st_size))
    arrays = weights_of(path)
    name = "weights.safetensors"
    if arrays:
        write_arrays(str(folder / name), arrays)
        written.append((name, (folder / name).stat().st_size))
    return written


def _tensors_of(seen: Survey) -> Named:
    return {
        path: (t.dtype.name, np.asarray(numbers_of(path, t), order="C"))
        for path, _, t in seen.tensors()
        if not t.is_meta
    }


def _constants(seen: Survey) -> Named:
    """The tensors that the code holds as constants, by function and number."""
    found: Named = {}
    for function in seen.functions:
        nodes = function.graph.find_all_nodes("prim::Constant")
        values = [node.attr("value") for node in nodes if node.has_attribute("value")]
        for index, value in enumerate(each for each in values if isinstance(each, Tensor)):
            found[f"{function.qualname}.{index}"] = (value.dtype.name, np.asarray(value.array, order="C"))
    return found


def _records(path: str | os.PathLike[str]) -> Iterator[tuple[str, bytes]]:
    """Code and extra files, the debug records left out."""
    container = open_program(path)
    try:
        for name in container.names():
            if name.startswith(("code/", "extra/", "libs/")) and not name.endswith(".debug_pkl"):
                yield name, container.read(name)
    finally:
        container.close()


# -- files in a folder


def _new_folder(folder: Path) -> None:
    try:
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise ArchiveError(f"'{folder}' is a file, not a folder", hints=("name a new folder",))
        if folder.exists() and any(folder.iterdir()):
            raise ArchiveError(f"the folder '{folder}' is not empty", hints=("name a new folder",))
        if not folder.parent.exists():
            raise ArchiveError(
                f"there is no folder '{folder.parent}' to put '{folder.name}' in", hints=("make it first",)
            )
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ArchiveError(f"the folder '{folder}' cannot be made: {(error.strerror or str(error)).lower()}") from None


def _write(folder: Path, name: str, data: bytes) -> int:
    """Write a new file below the folder, which is ours alone: there are no links in it to follow."""
    place = folder.joinpath(*_safe_parts(name))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            file.write(data)
    except OSError as error:
        raise ArchiveError(f"'{place}' cannot be written: {error.strerror or error}", record=name) from None
    return len(data)


def _safe_parts(name: str) -> tuple[str, ...]:
    """The parts of a record's name, each a name that means nothing but itself on any system."""
    parts = PurePosixPath(name).parts
    if not parts or not all(_is_safe(part) for part in parts):
        raise ArchiveError("a record's name cannot be that of a file", record=name)
    return parts


def _is_safe(part: str) -> bool:
    if part in (".", "..") or len(part) > 200 or _DEVICES.match(part) or part[-1] in " .":
        return False
    return _SAFE_PART.fullmatch(part) is not None


def _npz_name(name: str) -> str:
    """A name that is no path; NumPy keeps that of its own argument `file` for itself."""
    return "file_" if name == "file" else re.sub(r"[/\\:]", "_", name)


def _plain(dtype: str, array: Array) -> Array:
    return array.astype(np.float32) if dtype in _WITHOUT_NAME else array
