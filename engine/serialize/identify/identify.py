"""Identify a file by its first bytes and the names in it, never by its own name, and without running it.

In: a path.  Out: an `Identity`: a kind, its title, facts about the file, advice.  Code that was
given the wrong kind of file adds that to its error with `explained`, so that the answer has one home.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from engine.lang.counts import some_of
from engine.lang.errors import ArchiveError, MissingFileError
from engine.lang.records import dataclass
from engine.serialize.container.file_bytes import missing_file, not_ordinary, open_at_once
from engine.serialize.identify import by_bytes, by_flatbuffer, by_pickle, by_zip
from engine.serialize.identify.kinds import KINDS, Finding, Head

HEAD: Final = 1 << 16
"""Bytes that are looked at first."""
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
    head = _head(name)
    finding = next((found for rule in _RULES if (found := rule(head)) is not None), Finding("unknown"))
    kind = KINDS[finding.kind]
    facts = finding.facts
    if finding.kind == "unknown":
        facts = (*facts, ("it starts with", _shown(head.data)))
    advice = tuple(text.format(file=_quoted(name), name=repr(name)) for text in (*finding.advice, *kind.advice))
    return Identity(name, finding.kind, finding.title or kind.title, facts, advice, head.size)


def explained(error: ArchiveError, path: object, wanted: str = _NO_PROGRAM) -> ArchiveError:
    """The error that says what the file is where it is no program; else `error` itself."""
    if not isinstance(path, (str, os.PathLike)) or isinstance(error, MissingFileError):
        return error
    try:
        found = identify(path)
    except (ArchiveError, OSError) as reason:
        return reason if isinstance(reason, ArchiveError) else error
    if found.is_program or (found.kind == "damaged" and wanted == _NO_PROGRAM):
        return error  # it says more
    facts = "".join(f" ({text})" for label, text in found.facts if label in ("damage", "says"))
    better = ArchiveError(f"'{found.path}' {wanted} {found.title}{facts}", hints=found.advice)
    better.record, better.offset = error.record, error.offset
    return better


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
        outside, name = _quoted(str(unpacked[0].parent)), _quoted(unpacked[0].name or path)
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


def _quoted(path: str) -> str:
    """The path as a shell wants it."""
    plain = all(c.isalnum() or c in "/._-+=@%:," for c in path)
    if any("\ud800" <= c <= "\udfff" or not c.isprintable() for c in path):
        shown = "".join(c if 32 <= ord(c) < 127 and c not in "'\\" else _escaped(c) for c in path)
        return f"$'{shown}'"
    return path if plain else "'" + path.replace("'", "'\\''") + "'"


def _escaped(c: str) -> str:
    """Its bytes, as the shells write them in `$'...'`."""
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(c))
