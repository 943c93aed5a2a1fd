"""Mending archives: other devices in code and pickles, and archives of old versions written anew.

In: an archive's path and the path of the new one.  Out: the new archive, written in one step, and what was changed,
each change with its place.  `fix_devices` leaves every other byte of the records as it is.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

from engine.aten.values.ivalue import Object
from engine.lang import scalars
from engine.lang.errors import ArchiveError, OperatorError
from engine.lang.records import dataclass
from engine.serialize.archive import form_of, load_archive, save_archive
from engine.serialize.container.qualified_names import MODEL
from engine.serialize.container.write import ContainerWriter, replace_file
from engine.serialize.identify.identify import explained, identify
from engine.serialize.inspect.card import card_of
from engine.serialize.inspect.survey import Survey, walked
from engine.serialize.legacy.model_json import ATTRIBUTES
from engine.serialize.mobile.file import is_flatbuffer, open_program
from engine.serialize.pickling.devices import replace_devices
from engine.serialize.pickling.unpickle import Runner
from engine.serialize.upgrade.upgraders import UpgradedCall

_IN_CODE: Final = re.compile(r'torch\.device\("([a-z]+(?::\d+)?)"\)|\btorch\.(cuda|cpu)\(')
_CODE: Final = ("code/", "libs/")
_PICKLES: Final = ("data.pkl", "constants.pkl", "traced_inputs.pkl", ATTRIBUTES)
_BYTECODE: Final = ("bytecode.pkl", "mobile_debug_handles.pkl")
"""Records compiled from the code for mobile devices; they would still name the old devices."""
_KEPT: Final = ("meta",)
"""Devices that hold no numbers; they stay."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change in a record: a line of code, or the device of tensors in a pickle (`line` is 0, `count` how often)."""

    record: str
    line: int
    before: str
    after: str
    count: int = 1


class Repacked(NamedTuple):
    """Result of `repack`: versions before and after, sizes, old operators' calls, and the module as it was saved.

    `moved` names the devices of tensors that are on the CPU in the new file, "" if all were there; `named` are the
    devices that still stand in the code, with their places.
    """

    before: str
    after: str
    size_before: int
    size_after: int
    rewrites: list[UpgradedCall]
    module: Object
    moved: str = ""
    named: tuple[str, ...] = ()


def fix_devices(path: str | os.PathLike[str], device: str, target: str | os.PathLike[str]) -> list[Change]:
    """Write a copy of the archive whose code and tensors name `device` where they named another.

    Where there is nothing to change, the new file is the old one, byte by byte.  Raises ArchiveError.
    """
    wanted = _device(device)
    found = identify(path)
    if not found.is_program:
        raise explained(ArchiveError(f"'{found.path}' holds no program"), path)
    container = open_program(path)
    if is_flatbuffer(container):
        hint = "tsrepl repack makes an archive of it, in which devices can be changed"
        raise ArchiveError(f"'{found.path}' is a flatbuffer, which is not changed in place", hints=(hint,))
    try:
        records = {name: container.read(name) for name in container.names()}
        folder = container.folder
    finally:
        container.close()
    changes: list[Change] = []
    stale = set(_BYTECODE)
    for name, data in records.items():
        if name.startswith(_CODE) and name.endswith(".py"):
            records[name], longer = _fixed_code(name, data, wanted, changes)
            stale |= {f"{name}.debug_pkl"} if longer else set()
        elif name in _PICKLES:
            records[name] = _fixed_pickle(name, data, wanted, changes)
        elif name == MODEL:
            records[name] = _fixed_model(data, wanted, changes)
    if not changes:
        replace_file(target, [Path(path).read_bytes()])
        return changes
    writer = ContainerWriter(folder)
    for name, data in records.items():
        if name not in stale:
            writer.add(name, data, deflate=name.startswith(_CODE))
    replace_file(target, writer.pieces())
    return changes


def _device(text: str) -> str:
    try:
        return str(scalars.device(text))
    except OperatorError as error:
        raise ArchiveError(f"'{text}' is no device", hints=("write cpu, cuda or cuda:1",)) from error


def _fixed_code(name: str, data: bytes, wanted: str, changes: list[Change]) -> tuple[bytes, bool]:
    """The code with other devices, and whether it had to grow.

    What became shorter is filled up with blanks: debug records count bytes.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ArchiveError("the code is not UTF-8", record=name) from None
    grew = False

    def new(match: re.Match[str]) -> str:
        nonlocal grew
        made = _device_call(match, wanted)
        grew = grew or len(made) > len(match[0])
        return made

    lines = text.split("\n")
    for index, line in enumerate(lines):
        lines[index] = _IN_CODE.sub(new, line)
        if lines[index] != line:
            changes.append(Change(name, index + 1, line.strip(), lines[index].strip()))
    return "\n".join(lines).encode(), grew


def _device_call(match: re.Match[str], wanted: str) -> str:
    """The new text for a device, or for the method that moves a tensor to one; as long as the old if it can be."""
    old, method = match[1], match[2]
    if method is not None:
        kind = wanted.partition(":")[0]
        made = f"torch.{kind}" if kind in ("cpu", "cuda") else match[0][:-1]
        return made.ljust(len(match[0]) - 1) + "("
    if old == wanted or old in _KEPT:
        return match[0]
    return f'torch.device("{wanted}"'.ljust(len(match[0]) - 1) + ")"


def _fixed_pickle(name: str, data: bytes, wanted: str, changes: list[Change]) -> bytes:
    fixed, found = replace_devices(data, name, lambda old: old if old in _KEPT else wanted)
    for before in dict.fromkeys(change.before for change in found):
        count = sum(change.before == before for change in found)
        changes.append(Change(name, 0, before, wanted, count))
    return fixed


def _fixed_model(data: bytes, wanted: str, changes: list[Change]) -> bytes:
    """The description of the model that archives of PyTorch 1.0 to 1.2 have, its tensors on another device."""
    try:
        model = json.loads(data)
        tensors = model.get("tensors", ())
        devices = [str(each.get("device", "cpu")) for each in tensors]
    except (ValueError, RecursionError, AttributeError, TypeError):
        raise ArchiveError("the description of the model is no JSON of tensors", record=MODEL) from None
    for tensor, device in zip(tensors, devices, strict=True):
        if device != wanted and device not in _KEPT:
            tensor["device"] = wanted
    others = [each for each in devices if each != wanted and each not in _KEPT]
    changes += [Change(MODEL, 0, each, wanted, others.count(each)) for each in dict.fromkeys(others)]
    return json.dumps(model).encode() if others else data


def repack(path: str | os.PathLike[str], target: str | os.PathLike[str], run: Runner | None = None) -> Repacked:
    """Load the archive, whatever its version and layout, and write it as archives are written today.

    A target that ends in `.ptl` or `.ff` is a file for phones.  What old operators did is spelled out with those of
    today.  Raises ArchiveError, CompileError, and NotSupportedError for what programs for phones cannot do.
    """
    found = identify(path)
    if not found.is_program:
        raise explained(ArchiveError(f"'{found.path}' holds no program"), path)
    container = open_program(path)
    try:
        extra: dict[str, Any] = {n[6:]: container.read(n) for n in container.names() if n.startswith("extra/")}
    finally:
        container.close()
    module = load_archive(path, run=run, map_location="cpu")
    save_archive(module, target, extra, run, form=form_of(target))
    seen = walked(Survey(found, module, {}))
    after = identify(target)
    versions = [dict(each.facts).get("version", "?") for each in (found, after)]
    lay = dict(card_of(path).facts).get("device", "cpu").split(", ")
    moved, named = ", ".join(each for each in lay if each not in ("cpu", *_KEPT)), tuple(seen.named_devices())
    return Repacked(versions[0], versions[1], found.size, after.size, seen.rewrites(), module, moved, named)
