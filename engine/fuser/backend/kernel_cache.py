"""Machine code, and graphs of archives, on disk, so that a second process need not compile again.

In: a key and the bytes of an object file or of graphs.  Out: these bytes again, in this process or another.  Files lie
in the user's cache directory (`TSREPL_KERNEL_CACHE` names another one, or is 0 for none), one for each key, which ends
with the kind of what is kept.

Note [Trusting the cache]
What is loaded is run.  So only files that are the user's own count (Note [Whose files] in `private_files.py`); a file
begins with the digest of the rest, and one that does not fit is taken for none and written anew.  Nothing here ever
fails a program: without a directory that can be written, code is just compiled.

Note [Making room]
To list the files takes ten microseconds for each, so it is not done with every file that is stored, but when about
`SWEPT` bytes were stored since: a file decides it by its size and by its key, which is as good as chance.  So processes
that store one file each make room as well, and none has to keep count.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from platformdirs import user_cache_path

from engine.fuser.backend import private_files
from engine.fuser.backend.private_files import UNFINISHED
from engine.lang.deferred import pattern_of
from engine.lang.records import dataclass

ROOM: Final = 256 << 20
"""Bytes that all files may take; those that were used least recently go first."""
SWEPT: Final = 1 / 16
"""Part of `ROOM` that is stored, on average, until room is made again.  See Note [Making room]."""
_MAGIC: Final = b"tsrepl kernel 1\n"
_HEAD: Final = len(_MAGIC) + 32
"""Bytes before what was stored: the kind of file, and the digest."""
_SUFFIX: Final = ".kernel"
_NAME: Final = pattern_of(rf"[0-9a-f]{{64}}(\.[a-z]+)?(\{_SUFFIX}|\..*\{UNFINISHED})")
_SETTING: Final = "TSREPL_KERNEL_CACHE"
ENGINE: Final = Path(__file__).parents[2]
"""The folder of the engine's rooms."""
ROOMS: Final = ("aten", "executor", "frontend", "fuser", "ir", "lang", "passes", "serialize")
"""Those whose sources decide what becomes of a program."""


Kind = Literal["", "plan", "groups", "calls", "planned", "kernel", "code", "graphs", "operator", "sources", "ptx"]
KINDS: Final[Mapping[Kind, str]] = {
    "plan": "plans", "groups": "plans with groups", "calls": "calls of groups", "planned": "functions with plans",
    "kernel": "kernels of groups", "code": "machine code", "ptx": "code of GPUs", "graphs": "graphs of archives",
    "operator": "operators made of others",
    "sources": "states of sources", "": "others",
}  # fmt: skip
"""Words for kinds, which keys end with."""


def key_of(parts: Iterable[str], kind: Kind = "") -> str:
    """A key for code that is the same if all parts are, of a kind that has no part in that."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return f"{digest.hexdigest()}.{kind}" if kind else digest.hexdigest()


def kind_of(key: str) -> Kind:
    """The kind of what is kept under a key; "" for one that is unknown."""
    named = key.partition(".")[2]
    return next((kind for kind in KINDS if kind == named), "")


def state_of(folders: Iterable[Path]) -> str:
    """A key for the contents of all sources in the folders, wherever these lie.

    It is kept under their sizes and times, since to read them takes longer.
    """
    rooms = [*folders]
    return _state(rooms, map(_seen, rooms))


def state_of_engine(*rooms: str) -> str:
    """The same for the engine's own rooms, each looked at once in a process, which has loaded what was there then."""
    return key_of(map(_state_of_room, rooms))


@cache
def _state_of_room(room: str) -> str:
    """Kept for each room, so that all who ask for some of them share what was read."""
    folder = ENGINE / room
    return _state([folder], [_seen(folder)])


COMPILER: Final = "llvmlite"


@cache
def compiler() -> str:
    """The version of llvmlite, which is looked up and not imported; empty where there is none."""
    found = find_spec(COMPILER)
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        with contextlib.suppress(OSError):
            return hashlib.sha256((Path(folder) / "_version.py").read_bytes()).hexdigest()[:16]
    return ""


def _state(folders: Iterable[Path], seen: Iterable[str]) -> str:
    """The key for the contents of the folders, which are known by what was seen of them."""
    key = key_of(("sources", *seen), "sources")
    if (known := load(key)) is not None:
        return known.decode()
    found = key_of(fact for folder in folders for fact in _contents(folder))
    store(key, found.encode())
    return found


def _contents(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        yield path.relative_to(folder.parent).as_posix()
        yield hashlib.sha256(path.read_bytes()).hexdigest()


def _seen(folder: Path) -> str:
    """The names, sizes and times of all sources in the folder."""
    facts: list[str] = []
    waiting = [os.fspath(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    found = entry.stat()
                    facts.append(f"{entry.path} {found.st_size} {found.st_mtime_ns}")
                elif entry.is_dir() and entry.name != "__pycache__":
                    waiting.append(entry.path)
    return "\n".join(sorted(facts))


def load(key: str) -> bytes | None:
    """The bytes that were stored under the key; None where there are none that can be trusted."""
    folder = directory()
    if folder is None:
        return None
    path = folder / f"{key}{_SUFFIX}"
    try:
        with private_files.reading(path) as file:
            found = file.read()
        os.utime(path)
    except (OSError, MemoryError):
        return None
    if not _is_sound(key, found):
        return None
    for uses in _COUNTING:
        uses.note(key, len(found), is_new=False)
    return found[_HEAD:]


def has(key: str) -> bool:
    """True if there is a file of that key, whether it can be trusted or not."""
    folder = directory()
    return folder is not None and (folder / f"{key}{_SUFFIX}").exists()


def discard(key: str) -> None:
    """Remove what was stored under the key, if there is something."""
    folder = directory()
    if folder is not None:
        remove(Entry(folder / f"{key}{_SUFFIX}", 0, 0.0))


def store(key: str, data: bytes) -> None:
    """Keep the bytes, if that is possible."""
    folder = directory()
    if folder is None:
        return
    with contextlib.suppress(OSError, MemoryError):
        is_stored = private_files.publish(folder / f"{key}{_SUFFIX}", (_MAGIC, _digest(key, data), data))
        for uses in _COUNTING if is_stored else ():
            uses.note(key, _HEAD + len(data), is_new=True)
        if is_stored and int(key[:8], 16) * ROOM * SWEPT <= len(data) << 32:
            _make_room(folder)


@dataclass(frozen=True, slots=True)
class Uses:
    """The sizes in bytes of files that this process `made`, and of others that it `found`, by their keys."""

    made: dict[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)

    def note(self, key: str, size: int, *, is_new: bool) -> None:
        """A file was written, or read."""
        if is_new:
            self.made[key] = size
            self.found.pop(key, None)
        elif key not in self.made:
            self.found[key] = size


_COUNTING: Final[list[Uses]] = []


@contextlib.contextmanager
def counting() -> Iterator[Uses]:
    """The files that this process, whatever thread, uses in the block."""
    uses = Uses()
    _COUNTING.append(uses)
    try:
        yield uses
    finally:
        _COUNTING[:] = [each for each in _COUNTING if each is not uses]


def directory() -> Path | None:
    """The directory, made if need be; None where the user wants none, or there is none that is the user's alone."""
    setting = os.environ.get(_SETTING, "")
    if setting == "0":
        return None
    if setting not in _directories and (found := _directory(setting)) is not None:
        _directories[setting] = found
    return _directories.get(setting)


_directories: Final[dict[str, Path]] = {}
"""Those that were found, by settings; one that is missing may be there next time."""


def _directory(setting: str) -> Path | None:
    try:
        return private_files.folder_of(
            Path(setting) if setting else user_cache_path("tsrepl", appauthor=False) / "kernels"
        )
    except (OSError, RuntimeError):  # there may be no home
        return None


def _digest(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + data).digest()


def _is_sound(key: str, found: bytes) -> bool:
    """True of the bytes of a file that was stored under the key."""
    return found[:_HEAD] == _MAGIC + _digest(key, found[_HEAD:])


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: how many bytes it takes, and when it was used last (seconds of the epoch)."""

    path: Path
    size: int
    used: float

    @property
    def key(self) -> str:
        """The key that it was stored under."""
        return self.path.name.removesuffix(_SUFFIX)

    def is_sound(self) -> bool:
        """True if it can be trusted, and holds what was stored."""
        try:
            with private_files.reading(self.path) as file:
                found = file.read()
        except (OSError, MemoryError):
            return False
        return _is_sound(self.key, found)


def entries() -> list[Entry]:
    """All files, those that were used least recently first."""
    folder = directory()
    return [] if folder is None else sorted(_entries(folder), key=lambda entry: entry.used)


def remove(entry: Entry) -> bool:
    """Remove a file; False where it is none of ours."""
    with contextlib.suppress(OSError):
        if _begins_as_ours(entry.path):
            os.unlink(entry.path)
            return True
    return False


def _entries(folder: Path) -> Iterator[Entry]:
    """The files of the folder that are the user's; what others began and left is removed."""
    with os.scandir(folder) as found:
        for each in found:
            if not _NAME.fullmatch(each.name):
                continue
            with contextlib.suppress(OSError):
                facts = each.stat(follow_symlinks=False)
                if each.name.endswith(_SUFFIX) and private_files.is_users(facts):
                    yield Entry(Path(each.path), facts.st_size, facts.st_mtime)
                elif each.name.endswith(UNFINISHED) and private_files.is_abandoned(facts):
                    os.unlink(each.path)


def _make_room(folder: Path) -> None:
    """Remove what was used least recently, until the rest fits; others may remove the same."""
    found = sorted(_entries(folder), key=lambda entry: entry.used)
    total = sum(entry.size for entry in found)
    for entry in found:
        if total <= ROOM:
            return
        total -= entry.size * remove(entry)


def _begins_as_ours(path: Path) -> bool:
    with private_files.reading(path) as file:
        return file.read(len(_MAGIC)) == _MAGIC
