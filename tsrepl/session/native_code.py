"""Machine code that is kept on disk: the library of operators, which is built once, and plans and kernels of programs.

In: nothing but the user's folders.  Out: replies, or with `as_data` one reply with the same facts for programs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, Final

from engine.executor.calls import warming
from engine.executor.calls.warming import Warmed
from engine.fuser.backend import kernel_cache, tiering
from engine.fuser.backend.machine import MachineError
from engine.fuser.images.objects import ImageError
from engine.fuser.library import building, image_files, key
from engine.fuser.library.image_files import ImageFile
from engine.fuser.library.key import Key
from engine.lang.counts import ago, byte_size, counted, duration
from engine.lang.records import dataclass
from tsrepl.session import programs
from tsrepl.session.failures import CommandLineError, SessionError, error_reply
from tsrepl.session.replies import DataReply, Reply, ReportReply, Section, TextReply

FOUND: Final = 3
"""The exit status where something on disk cannot be used."""


def warm(
    path: str | None = None, method: str | None = None, inputs: Sequence[str] = (), grad: bool | None = None, *,
    as_data: bool = False,
) -> Iterator[Reply]:  # fmt: skip
    """`tsrepl warm`: build the library of operators, as far as it is not there; with a file, all that a call of its
    program comes to, too."""
    if path is not None and tiering.mode() == "off":
        yield DataReply({"mode": "off"}) if as_data else TextReply(f"{warming.OFF} (TSREPL_COMPILE)", "warning")
        return
    try:
        current, room = _place()
        library = building.built(room)
    except (ImageError, MachineError, OSError) as error:
        yield error_reply(SessionError(f"the library of operators cannot be built: {error}"))
        return
    size = sum(file.size for file in library.files)
    facts: dict[str, Any] = {"target": current.facts["target"], "seconds": library.seconds,
                             "parts": [_image_data(each) for each in library.files]}  # fmt: skip
    if not as_data:
        text = f"{counted(len(library.files), 'part')} of the library of operators for {current.facts['target']}"
        yield TextReply(f"{text}, {byte_size(size)}: there after {duration(library.seconds)}")
    if path is None and (method or inputs):
        raise CommandLineError("there is no program to be called", hints=("tsrepl warm FILE --input INPUT",))
    if path is not None:
        call = yield from programs.call_of(path, method, inputs)
        if call is None:
            return
        with redirect_stdout(sys.stderr) if as_data else nullcontext():  # a program may print
            warmed = warming.warm(call.function, partial(call.make, grad))
        facts["call"] = {
            "function": call.function.name, "mode": warmed.mode, "groups": warmed.groups, "kernels": warmed.kernels,
            "seconds": warmed.seconds, "notes": [*warmed.notes],
            "files": {each.kind: {"made": each.made, "found": each.found, "size": each.size} for each in warmed.files},
        }  # fmt: skip
        if not as_data:
            yield _warmed(call.function.name, warmed)
    if as_data:
        yield DataReply(facts)


def _warmed(name: str, warmed: Warmed) -> Reply:
    counts = f"{counted(warmed.groups, 'group')}, {counted(warmed.kernels, 'kernel')}"
    rows = tuple(
        (kernel_cache.KINDS[each.kind], f"{each.made:,}", f"{each.found:,}", byte_size(each.size))
        for each in warmed.files
    )  # fmt: skip
    heading = f"{name}: {counts}, there after {duration(warmed.seconds)}"
    on_disk = Section(heading, ("on disk", ">made", ">found", ">size") if rows else (), rows)
    notes = tuple(Section(note, level="warning") for note in warmed.notes)
    return ReportReply("", (on_disk, *notes))


def cache(what: str, *, as_data: bool = False) -> Iterator[Reply]:
    """`tsrepl cache list`, `verify` or `clear`."""
    yield from {"list": _list, "verify": _verify, "clear": _clear}[what](as_data)


def _place() -> tuple[Key, Path]:
    """The key of this machine, and the folder of images; raises SessionError where nothing is kept."""
    room = image_files.folder()
    if room is None:
        raise SessionError(
            "no machine code is kept: there is no folder that is yours alone",
            hints=("TSREPL_KERNEL_CACHE=FOLDER names one; with 0, nothing is kept",),
        )
    return key.current(), room


# ------------------------------------------------------------------ what is there


@dataclass(frozen=True, slots=True)
class _Seen:
    """An image, the level that it is for, why this process does not use it, and why nobody can ("" for neither)."""

    file: ImageFile
    target: str
    stale: str
    broken: str = ""


def _seen(current: Key, room: Path) -> Iterator[_Seen]:
    for file in (*image_files.packaged(current), *image_files.kept(room)):
        try:
            found = file.read().key
        except (ImageError, OSError) as error:
            yield _Seen(file, "", "", str(error))
            continue
        differences = [name for name in current.differences(found) if not (file.is_packaged and name == key.COMPILER)]
        stale = f"other {', '.join(differences)}" if differences else ""
        yield _Seen(file, key.of_text(found).facts.get("target", ""), stale)


def _list(as_data: bool) -> Iterator[Reply]:
    current, room = _place()
    seen, kernels, state = [*_seen(current, room)], kernel_cache.entries(), image_files.state(current, room)
    words = state.words if state is not None else "not built"
    words = "came with the package" if any(each.file.is_packaged for each in seen) else words
    if as_data:
        images = [{**_image_data(each.file), "target": each.target, "stale": each.stale, "broken": each.broken}
                  for each in seen]  # fmt: skip
        facts = {"target": current.facts["target"], "state": words, "folder": str(room), "images": images}
        kinds = {kind or "others": {"files": len(files), "size": sum(each.size for each in files)}
                 for kind, files in _by_kind(kernels).items()}  # fmt: skip
        size = sum(each.size for each in kernels)
        yield DataReply({"library": facts, "kernels": {"files": len(kernels), "size": size, "kinds": kinds}})
        return
    rows = tuple(
        (each.file.part, each.target, byte_size(each.file.size), ago(each.file.used),
         each.broken or each.stale or ("in the package" if each.file.is_packaged else ""))
        for each in seen
    )  # fmt: skip
    heading = f"the library of operators for {current.facts['target']}: {words}"
    columns = ("part", "target", ">size", ">used", "")
    yield ReportReply("", (Section(heading, columns, rows, note=str(room)), _kernels(kernels)))


def _kernels(found: Sequence[kernel_cache.Entry]) -> Section:
    """The files by kind: how many, their sizes, and when one was used last."""
    size = byte_size(sum(each.size for each in found))
    heading = f"plans and kernels of programs: {counted(len(found), 'file')}, {size} of {byte_size(kernel_cache.ROOM)}"
    kinds = _by_kind(found)
    rows = tuple(
        (kernel_cache.KINDS[kind], f"{len(files):,}", byte_size(sum(each.size for each in files)),
         ago(files[-1].used), ago(files[0].used))
        for kind, files in kinds.items()
    )  # fmt: skip
    return Section(heading, ("kind", ">files", ">size", ">used last", ">longest unused") if rows else (), rows)


def _by_kind(found: Sequence[kernel_cache.Entry]) -> dict[kernel_cache.Kind, list[kernel_cache.Entry]]:
    kinds = {kind: [each for each in found if kernel_cache.kind_of(each.key) == kind] for kind in kernel_cache.KINDS}
    return {kind: files for kind, files in kinds.items() if files}


def _verify(as_data: bool) -> Iterator[Reply]:
    current, room = _place()
    seen, kernels = [*_seen(current, room)], kernel_cache.entries()
    broken = [(str(each.file.path), each.broken) for each in seen if each.broken]
    broken += [(str(each.path), "not as it was written") for each in kernels if not each.is_sound()]
    status, count = FOUND if broken else 0, len(seen) + len(kernels)
    if as_data:
        yield DataReply({"files": count, "broken": [{"file": file, "why": why} for file, why in broken]}, status)
        return
    if not broken:
        yield TextReply(f"{counted(count, 'file')}, all as they were written")
        return
    note = "they are not used, and written anew when they are needed"
    heading = f"{counted(len(broken), 'file')} of {count:,} cannot be used"
    yield ReportReply("", (Section(heading, ("file", "why"), tuple(broken), "warning", note),), status)


def _clear(as_data: bool) -> Iterator[Reply]:
    _, room = _place()
    size = image_files.clear(room) + sum(each.size for each in kernel_cache.entries() if kernel_cache.remove(each))
    yield DataReply({"freed": size}) if as_data else TextReply(f"{byte_size(size)} freed")


def _image_data(file: ImageFile) -> dict[str, Any]:
    return {"part": file.part, "file": str(file.path), "size": file.size, "used": file.used,
            "packaged": file.is_packaged}  # fmt: skip
