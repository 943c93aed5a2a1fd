"""Device names in a pickle: found by what they are used for, and replaced without building anything.

In: a pickle's bytes, and what each device shall become.  Out: the changed bytes, and the changes.  A text that names
both a device and something else of the program (pickles write equal texts once) is changed for the device alone.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, Final, NamedTuple

from engine.lang.errors import ArchiveError
from engine.lang.records import dataclass

Replace = Callable[[str], str]
_TEXTS: Final = ("BINUNICODE", "SHORT_BINUNICODE", "UNICODE")
_GETS: Final = ("BINGET", "LONG_BINGET", "GET")
_PUTS: Final = ("BINPUT", "LONG_BINPUT", "PUT")
_DEVICE: Final = "torch device"


class PickleChange(NamedTuple):
    """At byte `offset`, the device `before` became `after`."""

    offset: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class _Text:
    """A text on the stack: the operation that wrote it, and the one that put it here (or fetched it again)."""

    written: int
    pushed: int


@dataclass(frozen=True, slots=True)
class _Tuple:
    parts: list[Any]


@dataclass(frozen=True, slots=True)
class _Global:
    name: str


_MARK: Final = object()
_OTHER: Final = object()


def replace_devices(data: bytes, record: str, replace: Replace) -> tuple[bytes, list[PickleChange]]:
    """The pickle with its devices replaced.  Raises ArchiveError when it cannot be followed."""
    try:
        steps = [(opcode.name, argument, at or 0) for opcode, argument, at in pickletools.genops(data)]
        uses = _Uses(steps)
        uses.run({opcode.name: opcode for opcode in pickletools.opcodes})
    except (ValueError, IndexError, KeyError, OverflowError, UnicodeDecodeError, MemoryError) as error:
        raise ArchiveError(f"the pickle cannot be followed: {error}", record=record) from None
    ends = [*(at for _, _, at in steps[1:]), len(data)]
    edits: dict[int, bytes] = {}
    changes: list[PickleChange] = []
    for index, new_text in _edits(steps, uses, replace, changes):
        raw = new_text.encode()
        edits[index] = b"X" + struct.pack("<I", len(raw)) + raw
    pieces = (edits.get(i, data[at : ends[i]]) for i, (_, _, at) in enumerate(steps))
    return b"".join(pieces) + data[ends[-1] :], changes


def _edits(
    steps: list[tuple[str, Any, int]], uses: _Uses, replace: Replace, changes: list[PickleChange]
) -> Iterator[tuple[int, str]]:
    """(operation, the text it shall push): the changed devices, and copies of texts that are shared with them."""
    for written, devices in uses.devices.items():
        before = steps[written][1]
        after = replace(before)
        if after == before:
            continue
        changes += (PickleChange(steps[index][2], before, after) for index in sorted(devices))
        if written not in devices:
            yield from ((index, after) for index in devices)  # it was another text first, which stays
            continue
        yield written, after
        yield from ((index, before) for index in uses.pushes[written] - devices)


@dataclass(slots=True, eq=False)
class _Uses:
    """Uses of the texts of a pickle: sets of operations by the one that wrote the text."""

    steps: list[tuple[str, Any, int]]
    devices: dict[int, set[int]] = field(default_factory=dict)
    pushes: dict[int, set[int]] = field(default_factory=dict)
    _stack: list[Any] = field(default_factory=list)
    _memo: dict[int, Any] = field(default_factory=dict)

    def run(self, opcodes: dict[str, Any]) -> None:
        for index, (name, argument, _) in enumerate(self.steps):
            if name in _TEXTS:
                self._push_text(index, index)
            elif name in _GETS:
                self._get(index, self._memo[int(argument)])
            elif name in _PUTS:
                self._memo[int(argument)] = self._stack[-1]
            elif name == "MEMOIZE":
                self._memo[len(self._memo)] = self._stack[-1]
            elif name == "MARK":
                self._stack.append(_MARK)
            elif name == "GLOBAL":
                self._stack.append(_Global(argument))
            else:
                self._other(name, opcodes[name])

    def _push_text(self, written: int, pushed: int) -> None:
        self.pushes.setdefault(written, set()).add(pushed)
        self._stack.append(_Text(written, pushed))

    def _get(self, index: int, value: Any) -> None:
        if isinstance(value, _Text):
            self._push_text(value.written, index)
        else:
            self._stack.append(value)

    def _other(self, name: str, opcode: Any) -> None:
        popped = self._pop(opcode)
        if name == "BINPERSID" and isinstance(popped[0], _Tuple) and len(popped[0].parts) > 3:
            self._note(popped[0].parts[3])
        if name == "REDUCE" and popped[0] == _Global(_DEVICE) and isinstance(popped[1], _Tuple) and popped[1].parts:
            self._note(popped[1].parts[0])
        if name in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE"):
            self._stack.append(_Tuple(popped))
            return
        # What is filled stays itself; anything else is of no interest.
        kept = popped[0] if opcode.stack_before and opcode.stack_after == opcode.stack_before[:1] and popped else _OTHER
        self._stack += [kept] * len(opcode.stack_after)

    def _pop(self, opcode: Any) -> list[Any]:
        """The operands of the operation, in order; with a mark, everything above it and the value below it."""
        before = opcode.stack_before
        if pickletools.markobject not in before:
            count = len(before)
            popped = self._stack[len(self._stack) - count :]
            if len(popped) != count:
                raise IndexError("it takes a value that is not there")
            del self._stack[len(self._stack) - count :]
            return popped
        at = len(self._stack) - 1 - self._stack[::-1].index(_MARK)
        above = self._stack[at + 1 :]
        below = before.index(pickletools.markobject)
        popped = self._stack[at - below : at]
        del self._stack[at - below :]
        return [*popped, *above]

    def _note(self, value: Any) -> None:
        if isinstance(value, _Text):
            self.devices.setdefault(value.written, set()).add(value.pushed)
