"""Kinds of files that are pickles: what `torch.save` writes, in a zip file or before that, and what it does not.

In: a file's head, or the pickle in a zip file.  Out: a `Finding`, or None.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable
from typing import Any, Final

from engine.lang.counts import counted
from engine.lang.errors import ArchiveError
from engine.serialize.identify.by_bytes import clipped
from engine.serialize.identify.kinds import Finding, Head
from engine.serialize.pickling.values import (
    Described,
    TensorEntry,
    TensorParts,
    describe_pickle,
    is_module,
    names_in,
    tensors_in,
)

_MAGIC: Final = re.compile(rb"\x80[\2-\5](\x95.{8})?\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19\.", re.DOTALL)
"""First bytes of torch.save files that are no zip files: a pickle, of protocol 2 to 5, of one big number."""
_ORDINARY: Final = ("collections.", "torch._utils.", "torch.storage.", "builtins.", "__builtin__.", "copyreg.")
_MOST_NAMES: Final = 6
_RISKY: Final = frozenset(
    "os posix nt subprocess sys builtins.eval builtins.exec builtins.getattr builtins.compile builtins.__import__ "
    "__builtin__.eval __builtin__.exec __builtin__.getattr __builtin__.apply socket shutil importlib runpy pty "
    "commands webbrowser code ctypes pickle.loads _pickle".split()
)
"""Modules and functions whose name in a pickle means that loading it would run something."""


def legacy_save(head: Head) -> Finding | None:
    """A file of torch.save from before PyTorch 1.6, or written with its old format."""
    if not _MAGIC.match(head.data):
        return None
    with mapped(head.path) as data:
        try:
            described = legacy_parts(data)
        except ArchiveError as error:
            cut = "cut off" in error.message
            finding = judged(None, names_in(head.data))
            title = "a file of torch.save (before the zip format) that is cut off" if cut else ""
            damage = (("damage", error.message),)
            return Finding("truncated", damage, title) if cut else finding._replace(facts=(*finding.facts, *damage))
    found = judged(described.value, described.names)
    return found._replace(facts=(("format", "before PyTorch 1.6 (no zip file)"), *found.facts))


class MappedPickle(mmap.mmap):
    """A file's bytes, read when they are touched, that can be searched as bytes can."""

    def index(self, wanted: bytes, start: int) -> int:
        at = self.find(wanted, start)
        if at < 0:
            raise ValueError("subsection not found")
        return at


def mapped(path: str) -> MappedPickle:
    """The file, which stays readable until the map is closed or forgotten."""
    with open(path, "rb") as file:
        return MappedPickle(file.fileno(), 0, access=mmap.ACCESS_READ)


def legacy_parts(data: Any) -> Described:
    """The value of such a file: the fourth pickle in it.  Raises ArchiveError."""
    start = _MAGIC.match(data)
    if start is None:
        raise ArchiveError("the file does not begin as torch.save begins one")
    at = start.end()
    for part in ("the protocol", "the system", "the value"):
        described = describe_pickle(data, part, at)
        at = described.end
    return described


def judged(value: Any, names: Iterable[str]) -> Finding:
    """The kind of file that has this value in its pickle; `value` is None where it could not be read."""
    names = list(names)
    foreign = [name for name in names if not name.startswith(_ORDINARY) and not _is_torch_word(name)]
    facts = _class_facts(foreign)
    if is_module(value) or (value is None and any(".modules." in name for name in foreign)):
        return Finding("module-pickle", (*_tensor_facts(value), *facts))
    if value is None and any(name.startswith("torch._utils._rebuild") for name in names):
        return Finding("checkpoint", facts, "tensors that torch.save wrote")
    if isinstance(value, (TensorEntry, TensorParts)):
        return Finding("tensors", _tensor_facts([value]), "a tensor that torch.save wrote")
    tensors = _tensor_facts(value)
    if not tensors:
        return Finding("torch-value", facts)
    if isinstance(value, dict) and all(isinstance(each, (TensorEntry, TensorParts)) for each in value.values()):
        return Finding("state-dict", tensors)
    if isinstance(value, dict) and set(value) == {"state", "param_groups"}:
        return Finding("optimizer", tensors)
    if isinstance(value, dict):
        keys = clipped(", ".join(map(str, value)))
        lightning = value.get("pytorch-lightning_version")
        maker = (("made by", f"PyTorch Lightning {lightning}"),) if isinstance(lightning, str) else ()
        return Finding("checkpoint", (*maker, ("keys", keys), *tensors, *facts))
    return Finding("tensors", (*tensors, *facts))


def plain_pickle(head: Head) -> Finding | None:
    """A pickle of any protocol, going by its first opcode and its last."""
    if not (head.data[:1] == b"\x80" and head.data[1:2] in b"\2\3\4\5"):
        return None
    with open(head.path, "rb") as file:
        file.seek(head.size - 1)
        whole = file.read(1) == b"."
    names = names_in(head.data)
    if not whole:
        return Finding("truncated", (("damage", "the pickle does not end"),), "a Python pickle that is cut off")
    if any(name.startswith("torch.") for name in names):
        return Finding("pickle", _class_facts(names), "a Python pickle with parts of PyTorch in it")
    return Finding("pickle", _class_facts(names))


def risky_names(names: Iterable[str]) -> list[str]:
    """The names that run code when Python's own pickle module loads them."""
    return [name for name in names if name in _RISKY or name.partition(".")[0] in _RISKY]


def _is_torch_word(name: str) -> bool:
    """`torch.FloatStorage`, `torch.float16`, `torch.device`, `torch.Size`."""
    head, _, rest = name.partition(".")
    return head == "torch" and "." not in rest


def _class_facts(names: list[str]) -> tuple[tuple[str, str], ...]:
    risky = risky_names(names)
    shown = ", ".join(names[:_MOST_NAMES]) + (
        f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    )
    facts = (("names of Python in it", shown),) if names else ()
    return (*facts, ("beware", f"Python's pickle would run {', '.join(risky[:3])}")) if risky else facts


def _tensor_facts(value: Any) -> tuple[tuple[str, str], ...]:
    tensors = [tensor for _, tensor in tensors_in(value)]
    if not tensors:
        return ()
    counts = [_count(tensor) for tensor in tensors]
    size = sum(n * tensor.dtype.itemsize for n, tensor in zip(counts, tensors, strict=True))
    dtypes = ", ".join(dict.fromkeys(tensor.dtype.name for tensor in tensors))
    places = ", ".join(dict.fromkeys(tensor.storage.location for tensor in tensors))
    told = (
        ("tensors", f"{len(tensors):,} with {counted(sum(counts), 'number')}, {counted(size, 'byte')}"),
        ("dtypes", dtypes),
    )
    return told if places == "cpu" else (*told, ("saved from", places))


def _count(tensor: TensorEntry) -> int:
    count = 1
    for size in tensor.shape:
        count *= size
    return count
