"""The pickle machine: reads the pickles of archives, and nothing else that pickles can say.

In: bytes, a table of the global names that may appear, and who answers persistent ids.  Out: the value.
Every opcode is a row of one table, every global name a `Builder` from an allow-list or a class that
the caller's resolver knows; nothing is imported and no attribute is looked up.  What is not known is
refused with ArchiveError that names record, byte and reason.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from engine.lang.errors import ArchiveError, EngineError

MAX_ITEMS: Final = 50_000_000
MAX_STACK: Final = 1_000_000
MAX_DEPTH: Final = 200
"""How deep tuples, lists and dicts may nest: what is read is later walked by recursion."""


@dataclass(frozen=True, slots=True)
class Builder:
    """What a global name stands for: what may be called with the pickled arguments.

    `call` takes them one by one, `call_bare` takes a single value that no tuple holds (as enums are
    written), `new` makes an empty instance of a class.
    """

    name: str
    call: Callable[..., Any] | None = None
    call_bare: Callable[[Any], Any] | None = None
    new: Callable[[], Any] | None = None


class Refusal(Exception):
    """Raised inside the machine and by builders: why the pickle is refused."""


_ATOMS: Final = (str, int, float, bool, type(None), Builder)

Globals = Callable[[str, str], Any]
"""(module, name) -> what it stands for; raises Refusal for a name it does not know."""


@dataclass(slots=True, eq=False)
class PickleMachine:
    """One run over one pickle; see the module's top."""

    data: bytes
    record: str
    find_global: Globals
    load_persistent: Callable[[Any], Any]
    build: Callable[[Any, Any], None]
    """(instance, state): the opcode BUILD."""
    at: int = 0
    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)
    items: int = 0
    _depths: dict[int, tuple[Any, int, bool]] = field(default_factory=dict)

    def run(self) -> Any:
        """The value that the pickle describes; the machine stops at STOP, `at` is then behind it."""
        start = 0
        try:
            while True:
                start = self.at
                code = self._byte()
                if code == _STOP:
                    return self._result()
                step = _OPCODES.get(code)
                if step is None:
                    raise Refusal(f"opcode {bytes([code])!r} has no place in an archive")
                step(self)
                if len(self.stack) > MAX_STACK or self.items > MAX_ITEMS:
                    raise Refusal("it holds too many items")
        except Refusal as reason:
            raise self._error(str(reason), start) from None
        except ArchiveError:
            raise
        except EngineError as error:
            raise self._error(str(error), start) from None
        except UnicodeDecodeError:
            raise self._error("a text in it is not UTF-8", start) from None

    def _error(self, reason: str, offset: int) -> ArchiveError:
        hint = "the file is damaged, or holds what torch.jit.save does not write"
        return ArchiveError(f"the pickle is refused: {reason}", record=self.record, offset=offset, hints=(hint,))

    def _result(self) -> Any:
        if len(self.stack) != 1 or self.marks:
            raise Refusal("it ends with more or less than one value")
        return self.stack[0]

    # -- bytes

    def _byte(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise Refusal("it is cut off")
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def line(self) -> str:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise Refusal("it is cut off")
        piece = self.data[self.at : end]
        self.at = end + 1
        return piece.decode()

    # -- the stack

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise Refusal("it takes a value that is not there")
        return self.stack.pop()

    def top(self) -> Any:
        value = self.pop()
        self.stack.append(value)
        return value

    def pop_mark(self) -> list[Any]:
        """The values above the last mark, which goes away too."""
        if not self.marks:
            raise Refusal("it closes what it never opened")
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        self.items += len(values)
        return values

    def hold(self, container: Any, parts: Sequence[Any]) -> None:
        """Note that `container` now holds `parts`.

        Raises Refusal when that nests too deep, or when something holds `container` already: what is
        written fills a container before it uses it, and so nothing can hold itself.
        """
        depth = self._depth(container)
        for part in parts:
            if isinstance(part, _ATOMS):
                continue
            depth = max(depth, self._depth(part) + 1)
            # The part is kept beside its depth, so that its id is not given to another.
            self._depths[id(part)] = (part, self._depth(part), True)
        if self._is_held(container):
            raise Refusal("it fills what it has used already")
        if depth > MAX_DEPTH:
            raise Refusal(f"it nests deeper than {MAX_DEPTH}")
        if depth:
            self._depths[id(container)] = (container, depth, False)

    def _depth(self, value: Any) -> int:
        known = self._depths.get(id(value))
        return known[1] if known else 0

    def _is_held(self, value: Any) -> bool:
        known = self._depths.get(id(value))
        return known is not None and known[2]


# -- opcodes


def _constant(value: Any) -> Callable[[PickleMachine], None]:
    return lambda machine: machine.stack.append(value)


def _empty(kind: Callable[[], Any]) -> Callable[[PickleMachine], None]:
    return lambda machine: machine.stack.append(kind())


def _number(layout: str) -> Callable[[PickleMachine], None]:
    form = struct.Struct(layout)

    def step(machine: PickleMachine) -> None:
        machine.stack.append(form.unpack(machine.take(form.size))[0])

    return step


def _put(layout: str) -> Callable[[PickleMachine], None]:
    form = struct.Struct(layout)

    def step(machine: PickleMachine) -> None:
        machine.memo[form.unpack(machine.take(form.size))[0]] = machine.top()

    return step


def _get(layout: str) -> Callable[[PickleMachine], None]:
    form = struct.Struct(layout)

    def step(machine: PickleMachine) -> None:
        index = form.unpack(machine.take(form.size))[0]
        if index not in machine.memo:
            raise Refusal(f"it uses memo {index} before it is set")
        machine.push(machine.memo[index])

    return step


def _text(layout: str, *, strict: bool = True) -> Callable[[PickleMachine], None]:
    form = struct.Struct(layout)

    def step(machine: PickleMachine) -> None:
        raw = machine.take(form.unpack(machine.take(form.size))[0])
        # Programs' strings are bytes: what is no UTF-8 survives as surrogates.
        machine.push(raw.decode(errors="strict" if strict else "surrogateescape"))

    return step


def _tuple_of(count: int) -> Callable[[PickleMachine], None]:
    def step(machine: PickleMachine) -> None:
        parts = [machine.pop() for _ in range(count)][::-1]
        _push_tuple(machine, parts)

    return step


def _push_tuple(machine: PickleMachine, parts: list[Any]) -> None:
    value = tuple(parts)
    if parts:
        machine.hold(value, parts)
    machine.push(value)


def _proto(machine: PickleMachine) -> None:
    version = machine.take(1)[0]
    if not 2 <= version <= 4:
        raise Refusal(f"pickle protocol {version} has no place in an archive")


def _long1(machine: PickleMachine) -> None:
    number = int.from_bytes(machine.take(machine.take(1)[0]), "little", signed=True)
    if not -(1 << 63) <= number < 1 << 63:
        raise Refusal("an integer does not fit 64 bits")
    machine.push(number)


def _mark(machine: PickleMachine) -> None:
    machine.marks.append(len(machine.stack))
    if len(machine.marks) > MAX_DEPTH * 4:
        raise Refusal("it nests too deep")


def _tuple(machine: PickleMachine) -> None:
    _push_tuple(machine, machine.pop_mark())


def _append(machine: PickleMachine) -> None:
    _extend(machine, [machine.pop()])


def _appends(machine: PickleMachine) -> None:
    _extend(machine, machine.pop_mark())


def _extend(machine: PickleMachine, values: list[Any]) -> None:
    target = machine.top()
    if type(target) is not list:
        raise Refusal("it appends to what is no list")
    machine.hold(target, values)
    target.extend(values)


def _setitem(machine: PickleMachine) -> None:
    value, key = machine.pop(), machine.pop()
    _update(machine, [key, value])


def _setitems(machine: PickleMachine) -> None:
    _update(machine, machine.pop_mark())


def _update(machine: PickleMachine, values: list[Any]) -> None:
    target = machine.top()
    if type(target) is not dict or len(values) % 2:
        raise Refusal("it sets items of what is no dict")
    machine.hold(target, values)
    for key, value in zip(values[::2], values[1::2], strict=True):
        if isinstance(key, (list, dict, tuple, Builder)):
            raise Refusal("a dict has a key that programs cannot have")
        target[key] = value


def _global(machine: PickleMachine) -> None:
    module, name = machine.line(), machine.line()
    machine.push(machine.find_global(module, name))


def _reduce(machine: PickleMachine) -> None:
    arguments, builder = machine.pop(), machine.pop()
    if type(builder) is not Builder:
        raise Refusal("it calls what cannot be called")
    if builder.call_bare is not None:
        machine.push(builder.call_bare(arguments))
        return
    if builder.call is None or type(arguments) is not tuple:
        raise Refusal(f"it calls '{builder.name}' as that cannot be called")
    try:
        machine.push(builder.call(*arguments))
    except TypeError:
        raise Refusal(f"it calls '{builder.name}' with the wrong arguments") from None


def _newobj(machine: PickleMachine) -> None:
    arguments, builder = machine.pop(), machine.pop()
    if type(builder) is not Builder or builder.new is None or arguments != ():
        raise Refusal("it makes an instance of what is no class")
    machine.push(builder.new())


def _build(machine: PickleMachine) -> None:
    state = machine.pop()
    instance = machine.top()
    machine.hold(instance, (state,))
    machine.build(instance, state)


def _persistent(machine: PickleMachine) -> None:
    machine.push(machine.load_persistent(machine.pop()))


_STOP: Final = ord(".")
_OPCODES: Final[Mapping[int, Callable[[PickleMachine], None]]] = {
    code[0]: step
    for code, step in {
        b"\x80": _proto, b"N": _constant(None), b"\x88": _constant(True), b"\x89": _constant(False),
        b"K": _number("<B"), b"M": _number("<H"), b"J": _number("<i"), b"\x8a": _long1, b"G": _number(">d"),
        b"X": _text("<I", strict=False), b"\x8c": _text("<B", strict=False),
        b")": _tuple_of(0),
        b"\x85": _tuple_of(1), b"\x86": _tuple_of(2), b"\x87": _tuple_of(3), b"(": _mark, b"t": _tuple,
        b"]": _empty(list), b"a": _append, b"e": _appends,
        b"}": _empty(dict), b"s": _setitem, b"u": _setitems,
        b"q": _put("<B"), b"r": _put("<I"), b"h": _get("<B"), b"j": _get("<I"),
        b"c": _global, b"R": _reduce, b"\x81": _newobj, b"b": _build, b"Q": _persistent,
    }.items()
}  # fmt: skip
"""Everything a pickle of an archive may say; any other opcode is refused."""


def no_persistent(_: Any) -> Any:
    raise Refusal("it refers to a tensor, and there are none here")


def no_build(_instance: Any, _state: Any) -> None:
    raise Refusal("it fills an instance, and there are none here")
