"""The library built: each part compiled, put into an image and published as it comes.

In: `PARTS`, and the key of this process.  Out: files.  One process builds at a time; what is there already, and sound,
is left alone.  `main` is the program of the process that builds beside others (`beside.py`).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from engine.aten.dispatch import table
from engine.fuser.backend import kernel_cache, machine
from engine.fuser.backend.pace import PATIENT, give_way
from engine.fuser.images import image, linking
from engine.fuser.images.objects import ImageError
from engine.fuser.library import image_files, key, parts, processor
from engine.fuser.library.image_files import ImageFile
from engine.fuser.library.key import Key
from engine.ir.composites import composite_graph
from engine.lang.progress import step
from engine.lang.records import dataclass

_LIBRARY: Final = "the library of operators"


@dataclass(frozen=True, slots=True)
class Library:
    """The images of this machine, and the seconds that it took until they were there."""

    files: tuple[ImageFile, ...]
    seconds: float

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)


def built(room: Path) -> Library:
    """The library, built in this process as far as it is missing, or waited for.

    Raises ImageError, MachineError or OSError for a part that cannot be made.
    """
    start, current = time.perf_counter(), key.current()
    files = image_files.packaged(current)
    if not files:
        build(room, waits=True)
        compile_texts()
        files = [file for file in image_files.kept(room) if file.key == current.digest]
    return Library(tuple(files), time.perf_counter() - start)


def compile_texts() -> None:
    """Compile all operators that are written in TorchScript, whose graphs lie beside the library."""
    for op in table.entries():
        composite_graph(op)


def build(room: Path, *, waits: bool = False) -> bool:
    """Build what is missing in the folder; False where another process does so, which this one may wait for.

    Raises ImageError, MachineError or OSError for a part that cannot be made, and says so beside the files.
    """
    current = key.current()
    with image_files.building(room, waits=waits) as is_mine:
        if is_mine:
            with _few_collections():
                _build(current, room)
        return is_mine


@contextmanager
def _few_collections() -> Iterator[None]:
    """Texts are hundreds of thousands of objects, which Python would go through with all others again and again: a
    twelfth of the time.  What there is already is left alone, the rest is looked at after each part."""
    was_enabled, is_thawed = gc.isenabled(), not gc.get_freeze_count()
    gc.disable()
    if is_thawed:  # else the program has put objects aside, and wants them to stay there
        gc.freeze()
    try:
        yield
    finally:
        if is_thawed:
            gc.unfreeze()
        if was_enabled:
            gc.enable()


def _build(current: Key, room: Path) -> None:
    is_done, part = False, ""
    try:
        for number, each in enumerate(parts.PARTS):
            part = each.name
            image_files.note(f"{image_files.BUILDING}{part}", current, room)
            if not is_sound(part, current, room):
                data = image.to_bytes(linking.linked(_objects(each, number), current.text))
                if not image_files.publish(part, current, data, room):
                    raise ImageError(f"something else lies at {image_files.path_of(part, current, room)}")
                gc.collect()
        is_done = True
    except Exception as error:
        image_files.note(f"failed at {part}: {error}", current, room)
        raise
    except BaseException:  # an interrupt: whoever needs it begins again
        image_files.forget(current, room)
        raise
    if is_done:
        kernel_cache.state_of_engine(
            *kernel_cache.ROOMS
        )  # which the first program with plans would read all sources for
        image_files.note(image_files.COMPLETE, current, room)
        image_files.sweep(current, room)
    step("building", _LIBRARY, 1, 1)


def _objects(part: parts.Part, number: int) -> Iterator[bytes]:
    """The objects of a part's modules."""
    level = processor.level()
    for text in part.modules():
        step("building", _LIBRARY, number, len(parts.PARTS))
        yield machine.relocatable(text, level.name, level.features, part.interleaved)


def is_sound(part: str, current: Key, room: Path) -> bool:
    """True if a part is there, as it was written."""
    path = image_files.path_of(part, current, room)
    for file in image_files.kept(room):
        if file.path == path:
            with suppress(ImageError, OSError):
                return current.fits(file.read().key)
    return False


def main() -> None:
    """Build in this process, behind all others."""
    give_way(PATIENT)
    room = image_files.folder()
    if room is not None:
        with suppress(Exception):  # which stands beside the files; nobody reads what is written here
            build(room)
            compile_texts()
