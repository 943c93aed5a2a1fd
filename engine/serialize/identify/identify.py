"""Identify a file by its first bytes and the names in it, never by its own name, and without running it.

In: a path.  Out: an `Identity`: a kind, its title, facts about the file, advice.  Code that was
given the wrong kind of file adds that to its error with `explained`, so that the answer has one home.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from engine.lang.counts import some_of
from engine.lang.errors import ArchiveError, MissingDeviceError, MissingFileError
from engine.lang.records import dataclass
from engine.serialize.container.file_bytes import missing_file, not_ordinary, open_at_once, shell_word
from engine.serialize.identify import by_bytes, by_flatbuffer, by_pickle, by_zip
from engine.serialize.identify.kinds import KINDS, Finding, Head

HEAD: Final = 1 << 16
"""Bytes that are looked at first."""
MOST_COPIED: Final = 64 << 20
"""Bytes of a buffer that are copied into a file for the rules."""
Rule = Callable[[Head], Finding | None]
_NO_PROGRAM: Final = "is not a TorchScript archive: it is"

_RULES: Final[tuple[Rule, ...]] = (
    by_bytes.nothing_in_it, by_pickle.legacy_save, by_flatbuffer.mobile_flatbuffer, by_bytes.known_start,
    by_bytes.compressed, by_bytes.safetensors, by_pickle.plain_pickle, by_bytes.tar, by_zip.zip_file, by_bytes.onnx,
    by_bytes.text,
)  # fmt: skip
"""The first that knows the file decides."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The kind of a file, with facts and advice.

    `kind` is a word of `KINDS` that programs can rely on, `title` the same for people, `facts` what else its bytes say
    (label, text), `advice` what to do next, `size` its bytes.
    """

    path: str
    kind: str
    title: str
    facts: tuple[tuple[str, str], ...]
    advice: tuple[str, ...]
    size: int

    @property
    def is_program(self) -> bool:
        """True if it is an archive that `load_archive` reads."""
        return KINDS[self.kind].is_program

    @property
    def has_weights(self) -> bool:
        """True if `load_weights` reads tensors from it."""
        return KINDS[self.kind].has_weights


def identify(path: str | os.PathLike[str]) -> Identity:
    """The file's identity.  Raises ArchiveError (MissingFileError) where there is none to read."""
    name = os.fsdecode(path)
    return _identity(name, _head(name))


def _identity(name: str, head: Head, *, is_file: bool = True) -> Identity:
    """The identity of what `head` begins; of what is no file at that path, advice that names it is left out."""
    finding = next((found for rule in _RULES if (found := rule(head)) is not None), Finding("unknown"))
    kind = KINDS[finding.kind]
    facts = finding.facts
    if finding.kind == "unknown":
        facts = (*facts, ("it starts with", _shown(head.data)))
    told = [text for text in (*finding.advice, *kind.advice) if is_file or "{" not in text]
    advice = tuple(text.format(file=shell_word(name), name=repr(name)) for text in told)
    return Identity(name, finding.kind, finding.title or kind.title, facts, advice, head.size)


def explained(error: ArchiveError, path: object, wanted: str = _NO_PROGRAM) -> ArchiveError:
    """The error that says what the file is where it is no program; else `error` itself."""
    if isinstance(error, (MissingFileError, MissingDeviceError)):
        return error
    is_file = isinstance(path, (str, os.PathLike))
    if not is_file and error.record:
        return error  # the rest of it was what it should be
    try:
        found = identify(path) if isinstance(path, (str, os.PathLike)) else _of_buffer(path)
    except (ArchiveError, OSError, ValueError) as reason:
        return reason if isinstance(reason, ArchiveError) and is_file else error
    if found is None:
        return error
    if found.is_program or (found.kind == "damaged" and wanted == _NO_PROGRAM):
        return error  # it says more
    facts = "".join(f" ({text})" for label, text in found.facts if label in ("damage", "says"))
    named = f"'{found.path}'" if is_file else found.path
    better = ArchiveError(f"{named} {wanted} {found.title}{facts}", hints=found.advice)
    better.record, better.offset = error.record, error.offset
    return better


def _of_buffer(file: Any) -> Identity | None:
    """The identity of what an open file or buffer holds; None for one that is not small, or cannot be read again."""
    if not hasattr(file, "seek") or not hasattr(file, "read"):
        return None
    place = file.tell()
    try:
        file.seek(0)
        data = file.read(MOST_COPIED + 1)
    finally:
        file.seek(place)
    if not isinstance(data, bytes) or len(data) > MOST_COPIED:
        return None
    with tempfile.NamedTemporaryFile() as copy:  # the rules look into files
        copy.write(data)
        copy.flush()
        return _identity("the file object", _head(copy.name), is_file=False)


def _head(path: str) -> Head:
    try:
        with open_at_once(path) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise not_ordinary(path, status.st_mode)
            return Head(path, file.read(HEAD), status.st_size)
    except IsADirectoryError:
        raise _folder(path) from None
    except FileNotFoundError:
        raise missing_file(path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ArchiveError(f"'{path}' cannot be read: {reason.lower()}") from None


_FOLDERS: Final = {
    "saved_model.pb": "a TensorFlow SavedModel", "config.json": "a folder of a model hub",
}  # fmt: skip


def _folder(path: str) -> ArchiveError:
    """A folder is no file; some have a name of their own."""
    what = next((text for name, text in _FOLDERS.items() if Path(path, name).exists()), "")
    unpacked = [each.parent for each in (*Path(path).glob("data.pkl"), *Path(path).glob("*/data.pkl"))]
    if len(unpacked) == 1:
        outside, name = shell_word(str(unpacked[0].parent)), shell_word(unpacked[0].name or path)
        hint = f"zip it again: (cd {outside} && zip -0 -r model.pt {name})"
        return ArchiveError(
            f"'{path}' is a folder, not a file: it looks like an archive that was unpacked", hints=(hint,)
        )
    note = f": it looks like {what}" if what else ""
    inside = sorted(
        each.name for each in Path(path).glob("*") if each.suffix in (".pt", ".pth", ".safetensors", ".bin")
    )
    hint = f"in it there is {some_of(inside, 4)}" if inside else "give the path of a file"
    return ArchiveError(f"'{path}' is a folder, not a file{note}", hints=(hint,))


def _shown(data: bytes) -> str:
    """The first bytes, as hexadecimal numbers and as text."""
    first = data[:12]
    return f"{first.hex(' ')}  {''.join(chr(b) if 32 <= b < 127 else '.' for b in first)}"
