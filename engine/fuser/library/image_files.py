"""Files of images: where they lie, which there are, who may build them.

In: keys, names of parts and bytes.  Out: files beside the kernel cache, in a folder that is the user's alone (Note
[Whose files] in `private_files.py`), or those that came with the package, which are trusted as its code is.

A file is `PART.KEY.image`.  A note beside them (`KEY.state`) says how far building is, and `lock` is locked by the
process that builds, for as long as it lives.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from engine.fuser.backend import kernel_cache, private_files
from engine.fuser.backend.private_files import UNFINISHED
from engine.fuser.images import image
from engine.fuser.images.objects import ImageError
from engine.fuser.library import key as keys
from engine.fuser.library.key import Key, of_text
from engine.lang.deferred import pattern_of
from engine.lang.records import dataclass

KEYS: Final = 4
"""Keys whose files are kept: several machines and versions may share a folder."""
COMPLETE: Final = "complete"
BUILDING: Final = "building "
"""The beginning of notes as long as somebody builds; the part that is being built follows."""
SUFFIX: Final = ".image"
_NAME: Final = pattern_of(rf"(?:(?P<part>[a-z0-9_]+)\.)?(?P<key>[0-9a-f]{{16}})(?:\{SUFFIX}|\.state|\..*\{UNFINISHED})")
_LOCK: Final = "lock"


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A file with an image; `used` is when it was loaded or written last (seconds of the epoch)."""

    path: Path
    part: str
    key: str
    size: int
    used: float
    is_packaged: bool = False

    def open(self) -> int:
        """A descriptor; raises OSError for what cannot be trusted."""
        return os.open(self.path, os.O_RDONLY) if self.is_packaged else private_files.opened(self.path)

    def read(self) -> image.Image:
        """The image, all of which is looked at; raises ImageError or OSError."""
        with open(self.open(), "rb") as file:
            found, _ = image.from_bytes(memoryview(file.read()))
        if not self.is_packaged and of_text(found.key).digest != self.key:
            raise ImageError("the image has another key than its file")
        return found


@dataclass(frozen=True, slots=True)
class State:
    """The progress of building, in words ("complete", or of what part, or why it failed), and seconds since then."""

    words: str
    age: float


def folder() -> Path | None:
    """Where images lie, made if need be; None where none are kept."""
    cache = kernel_cache.directory()
    try:
        return None if cache is None else private_files.folder_of(cache / "library")
    except OSError:
        return None


def path_of(part: str, key: Key, room: Path) -> Path:
    """The file of a part."""
    return room / f"{part}.{key.digest}{SUFFIX}"


def packaged(key: Key) -> list[ImageFile]:
    """The images that came with the package for the key's level."""
    return [*_found(keys.PACKAGED / key.facts["target"], is_packaged=True)]


def kept(room: Path) -> list[ImageFile]:
    """The images in a folder, of all keys, by part."""
    return sorted(_found(room), key=lambda file: (file.key, file.part))


def _found(room: Path, is_packaged: bool = False) -> Iterator[ImageFile]:
    with suppress(OSError), os.scandir(room) as entries:
        for entry in entries:
            name = _NAME.fullmatch(entry.name)
            if name is None or not entry.name.endswith(SUFFIX) or name["part"] is None:
                continue
            with suppress(OSError):
                facts = entry.stat(follow_symlinks=False)
                if is_packaged or private_files.is_users(facts):
                    path = Path(entry.path)
                    yield ImageFile(path, name["part"], name["key"], facts.st_size, facts.st_mtime, is_packaged)


def publish(part: str, key: Key, data: bytes, room: Path) -> bool:
    """Let a part's file hold these bytes; False where something else lies there.  Raises OSError."""
    return private_files.publish(path_of(part, key, room), (data,))


# ------------------------------------------------------------------ building


def state(key: Key, room: Path) -> State | None:
    """The progress of building; None where nobody began."""
    try:
        with private_files.reading(room / f"{key.digest}.state") as file:
            return State(file.read().decode(), time.time() - os.fstat(file.fileno()).st_mtime)
    except (OSError, UnicodeDecodeError):
        return None


def note(words: str, key: Key, room: Path) -> None:
    """Keep the progress of building; nothing where nobody can be told."""
    with suppress(OSError):
        private_files.publish(room / f"{key.digest}.state", (words.encode(),))


def forget(key: Key, room: Path) -> None:
    """Say that nobody began."""
    with suppress(OSError):
        (room / f"{key.digest}.state").unlink()


@contextmanager
def building(room: Path, *, waits: bool = False) -> Iterator[bool]:
    """True in the block for the one process, and the one thread in it, that builds in this folder.

    Where another one does so, False, unless it `waits` for that one to end.
    """
    with private_files.alone(room / _LOCK, waits=waits) as is_alone:
        yield is_alone


def is_being_built(room: Path) -> bool:
    """True while a process builds there."""
    with building(room) as is_free:
        return not is_free


# ------------------------------------------------------------------ removal


def sweep(key: Key, room: Path) -> None:
    """Remove what is of other keys than this one and those that were used last, and what nobody will finish."""
    used: dict[str, float] = {}
    for file in kept(room):
        used[file.key] = max(file.used, used.get(file.key, 0.0))
    others = sorted(used.keys() - {key.digest}, key=lambda digest: used[digest])
    remaining = {key.digest, *others[-(KEYS - 1) :]}
    for path, facts in _ours(room):
        name = _NAME.fullmatch(path.name)
        is_unfinished = path.name.endswith(UNFINISHED)
        if name is not None and (private_files.is_abandoned(facts) if is_unfinished else name["key"] not in remaining):
            _remove(path)


def clear(room: Path) -> int:
    """Remove all images and notes; the bytes that they took."""
    return sum(facts.st_size for path, facts in [*_ours(room)] if _remove(path))


def _ours(room: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files of the folder that have our names and are the user's."""
    with suppress(OSError), os.scandir(room) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    if private_files.is_users(facts):
                        yield Path(entry.path), facts


def _remove(path: Path) -> bool:
    with suppress(OSError):
        path.unlink()
        return True
    return False
