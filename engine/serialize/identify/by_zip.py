"""Kinds of files that are zip files: archives of PyTorch and of others, told by the names in them.

In: a file's head.  Out: a `Finding`, or None for what is no zip file.  The names are read leniently, so that also a
file that the strict reader refuses can be named; what the strict reader says stands among the facts.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from typing import Final

from engine.lang.counts import counted, some_of
from engine.lang.errors import ArchiveError
from engine.serialize.container.read import VERSIONS, Container, open_container
from engine.serialize.identify.by_bytes import clipped
from engine.serialize.identify.by_pickle import judged
from engine.serialize.identify.kinds import KINDS, Finding, Head
from engine.serialize.pickling.values import describe_pickle, names_in

_MODELS: Final = (".pt", ".pth", ".ptl", ".jit", ".bin", ".ckpt", ".safetensors", ".onnx", ".npz", ".pt2", ".tar")
MOST_PICKLE: Final = 256 << 20
"""A `data.pkl` beyond this is not read to tell what it holds."""
_END_SIZE: Final = 22
_UNREADABLE: Final = (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError, zlib.error, MemoryError)


def zip_file(head: Head) -> Finding | None:
    """A zip file, whole or what is left of one."""
    starts = head.data.startswith((b"PK\x03\x04", b"PK\x05\x06"))
    if not starts and not _has_end(head):
        return None
    try:
        names = _names(head.path)
    except _UNREADABLE:
        return _without_directory(head)
    if "MAR-INF/MANIFEST.json" in names:
        return Finding("torchserve", (("it holds", clipped(some_of(names, 8))),), advice=_models_in(names))
    finding = next((kind for belongs, kind in _KINDS if belongs(names)), None)
    if finding is not None:
        return finding
    try:
        with_folder = open_container(head.path)
    except ArchiveError as error:
        return _refused(names, error)
    try:
        return _archive(with_folder)
    finally:
        with_folder.close()


def _has_end(head: Head) -> bool:
    with open(head.path, "rb") as file:
        file.seek(max(0, head.size - 65557))
        return b"PK\x05\x06" in file.read() and zipfile.is_zipfile(head.path)


def _names(path: str) -> list[str]:
    with zipfile.ZipFile(path) as file:
        return file.namelist()


def _without_directory(head: Head) -> Finding:
    """Its end is missing, or there and damaged."""
    first = head.data[30:300].split(b"/")[0]
    what = "a PyTorch archive" if first.isascii() and b"data.pkl" in head.data[:4096] else "a zip file"
    missing = _missing_end(head)
    if missing:
        return Finding(
            "truncated", (("damage", f"its last {counted(missing, 'byte')} are missing"),), f"{what} that is cut off"
        )
    if missing == 0:
        return Finding("damaged", (("damage", "its directory cannot be read"),), f"{what} that is damaged")
    damage = (("damage", f"the directory at its end is missing; {head.size:,} bytes are there"),)
    return Finding("truncated", damage, f"{what} that is cut off")


def _missing_end(head: Head) -> int | None:
    """Number of bytes missing from the end record; None if all of it is missing."""
    with open(head.path, "rb") as file:
        file.seek(max(0, head.size - 65557))
        tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    return None if at < 0 else max(0, _END_SIZE - (len(tail) - at))


# -- other people's zip files


def _top_level(*wanted: str) -> Callable[[list[str]], bool]:
    return lambda names: set(wanted) <= set(names)


def _inside(*wanted: str) -> Callable[[list[str]], bool]:
    """A predicate: True if all of these names occur below a top folder."""
    return lambda names: set(wanted) <= {name.partition("/")[2] for name in names}


_KINDS: Final[tuple[tuple[Callable[[list[str]], bool], Finding], ...]] = (
    (lambda names: bool(names) and all(name.endswith(".npy") for name in names), Finding("npz")),
    (_inside("archive_format", "models/model.json"), Finding("pt2")),
    (_inside("serialized_exported_program.json"), Finding("pt2")),
    (_top_level("serialized_exported_program.json"), Finding("pt2")),
    (_inside(".data/extern_modules"), Finding("torch-package")),
    (_top_level("config.json", "model.weights.h5"), Finding("keras-zip")),
    (lambda names: any(name.rpartition("/")[2] == "saved_model.pb" for name in names),
     Finding("zip", title="a SavedModel of TensorFlow in a zip file")),
)  # fmt: skip


def _models_in(names: list[str]) -> tuple[str, ...]:
    """Commands that extract the files in it that may be models."""
    found = [
        name for name in names if name.endswith(_MODELS) and name.isprintable() and not {"{", "}", "'"} & set(name)
    ]
    return tuple(f"take one out: unzip {{file}} '{name}'" for name in found[:2])


def _refused(names: list[str], error: ArchiveError) -> Finding:
    """The finding for a file the strict reader refuses: an ordinary zip file, or a damaged archive."""
    last = {name.rpartition("/")[2] for name in names}
    if "data.pkl" in names or "model.json" in names:
        advice = "unzip it into a folder and zip that, from outside: zip -0 -r model.pt folder"
        return Finding("packed-anew", (), f"{KINDS['packed-anew'].title} without its top folder", (advice,))
    if any(name.startswith("__MACOSX/") for name in names) and {"data.pkl", "model.json"} & last:
        advice = "take that out again: zip -d {file} '__MACOSX/*' '*.DS_Store'"
        added = "on a Mac, which put a folder of its own beside it"
        return Finding("packed-anew", (), f"{KINDS['packed-anew'].title} {added}", (advice,))
    if {"data.pkl", "model.json"} & last:
        return Finding("damaged", (("damage", error.message),), "a PyTorch archive that is damaged")
    shown = clipped(some_of(names, 8))
    return Finding("zip", (("it holds", shown),) if names else (), advice=_models_in(names))


# -- PyTorch's own


def _archive(container: Container) -> Finding:
    records = set(container.names())
    code = any(name.startswith("code/") for name in records)
    if (code or "constants.pkl" in records) and (lack := _lacks(container, code=code)):
        return Finding("damaged", (("damage", lack),), "a TorchScript archive that is damaged")
    if "bytecode.pkl" in records:
        kind = "mobile" if code and "data.pkl" in records else "mobile-bytecode-only"
        return Finding(kind, _program_facts(container))
    if "model.json" in records:
        return Finding("torchscript-old", _program_facts(container))
    if "constants.pkl" in records or (code and "data.pkl" in records):
        return Finding("torchscript", _program_facts(container))
    if "data.pkl" in records:
        return _saved(container)
    names = sorted(f"{container.folder}/{name}" for name in records)
    return Finding("zip", (("it holds", clipped(some_of(names, 8))),), advice=_models_in(names))


def _lacks(container: Container, *, code: bool) -> str:
    """The reason why an archive of a program cannot be loaded, as far as its names tell; "" for a whole one."""
    if not any(name in container for name in VERSIONS):
        return "it does not say its version"
    if not any(name in container for name in ("data.pkl", "model.json", "bytecode.pkl")):
        return "it has no record 'data.pkl'"
    return "" if code or "bytecode.pkl" in container else "it has no code"


def _program_facts(container: Container) -> tuple[tuple[str, str], ...]:
    """The version, how much code and data there is, and what came along."""
    names = container.names()
    version = next((_text(container, name) for name in VERSIONS if name in names), "not given")
    code = [name for name in names if name.startswith("code/") and name.endswith(".py")]
    data = [name for name in names if name.startswith(("data/", "constants/", "tensors/"))]
    extra = [name.removeprefix("extra/") for name in names if name.startswith("extra/")]
    facts = [("version", version)]
    facts += (
        [("code", f"{counted(len(code), 'record')}, {counted(sum(map(container.size, code)), 'byte')}")] if code else []
    )
    facts += (
        [("tensors", f"{counted(len(data), 'record')}, {counted(sum(map(container.size, data)), 'byte')}")]
        if data
        else []
    )
    order = _text(container, "byteorder") if "byteorder" in names else "little"
    facts += [("byte order", order)] if order != "little" else []
    return (*facts, ("extra files", clipped(", ".join(extra)))) if extra else tuple(facts)


def _text(container: Container, name: str) -> str:
    try:
        return clipped(container.read_short(name)[:80].decode(errors="replace").strip())
    except ArchiveError as error:
        return f"unreadable ({error.message})"


def _saved(container: Container) -> Finding:
    """The finding for a zip file of torch.save."""
    if container.size("data.pkl") > MOST_PICKLE:
        return Finding("torch-value", (("note", "its pickle is too large to be looked at"),))
    try:
        data = container.read("data.pkl")
    except ArchiveError as error:
        return Finding("damaged", (("damage", error.message),), "a file of torch.save that is damaged")
    try:
        described = describe_pickle(data, "data.pkl")
        return judged(described.value, described.names)
    except ArchiveError as error:
        found = judged(None, names_in(data))
        return found._replace(facts=(*found.facts, ("note", error.message)))
