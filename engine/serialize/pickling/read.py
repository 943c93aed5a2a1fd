"""The pickle machine: reads the pickles of archives, and nothing else that pickles can say.

In: bytes, a table of the global names that may appear, and who answers persistent ids.  Out: the value.
`scan` walks over all opcodes and every global name is found before anything is built.  Every opcode is a
row of one table, every global name a `PickleGlobal` from an allow-list or a class that the caller's resolver knows;
nothing is imported, no attribute is looked up, and numbers and texts are parsed, never evaluated.  What is not
known is refused with ArchiveError that names record, byte and reason.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Final

from engine.lang.deferred import pattern_of
from engine.lang.errors import ArchiveError, BudgetExceeded, EngineError, UnsupportedTensorError
from engine.lang.records import dataclass
from engine.serialize.pickling.scan import IMPLIED, Scan, UnsupportedTensor, expect_tuple
from engine.serialize.pickling.scan import PickleRefusal as PickleRefusal

LOOK: Final = "tsrepl show lists its tensors, tsrepl extract takes them out"
MAX_DEPTH: Final = 200
"""Maximum nesting of tuples, lists and dicts: later code walks them by recursion."""


@dataclass(frozen=True, slots=True)
class PickleGlobal:
    """The meaning of a global name: something to be called with the pickled arguments.

    `call` takes them one by one, `call_bare` takes a single value that no tuple holds (as enums are
    written), `new` makes an empty instance of a class.
    """

    name: str
    call: Callable[..., Any] | None = None
    call_bare: Callable[[Any], Any] | None = None
    new: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """An instance whose state, once given, is turned into the value that takes its place."""

    make: Callable[[Any], Any]


_ATOMS: Final = frozenset([str, int, float, bool, type(None), PickleGlobal])

Globals = Callable[[str, str], Any]
"""(module, name) -> its meaning; raises PickleRefusal for an unknown name."""


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
    stored: int | None = None
    """The pickle's length in the file, where that is not the length of `data` (it limits what may be built)."""
    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)
    _depths: dict[int, tuple[Any, int, bool]] = field(default_factory=dict)

    def run(self) -> Any:
        """The value that the pickle describes; the machine stops at STOP, `at` is then behind it."""
        scan = Scan(self.data, self.at, self.stored)
        self._guarded(scan.run, lambda: scan.at)
        for each in scan.names.values():
            self._guarded(partial(self.find_global, each.module, each.name), lambda: each.offset)  # noqa: B023
        start = [self.at]
        self._guarded(lambda: self._build_all(start), lambda: start[0])
        return self._result()

    def _build_all(self, start: list[int]) -> None:
        """Execute each opcode; `start` holds the place of the current one."""
        data = self.data
        while True:
            start[0] = at = self.at
            code = data[at]
            self.at = at + 1
            if code == _STOP:
                return
            _OPCODES[code](self)

    def _guarded(self, action: Callable[[], object], place: Callable[[], int]) -> None:
        """Run the action; its errors are raised with the record and the byte offset."""
        try:
            action()
        except UnsupportedTensor as reason:
            raise UnsupportedTensorError(str(reason), record=self.record, offset=place(), hints=(LOOK,)) from None
        except PickleRefusal as reason:
            raise self._error(str(reason), place()) from None
        except BudgetExceeded as error:
            raise BudgetExceeded(error.message, record=self.record, offset=place(), hints=error.hints) from None
        except ArchiveError:
            raise
        except EngineError as error:
            raise self._error(str(error), place()) from None
        except UnicodeDecodeError:
            raise self._error("a text in it is not UTF-8", place()) from None

    def _error(self, reason: str, offset: int) -> ArchiveError:
        hint = "the file is damaged, or holds what torch.jit.save does not write"
        return ArchiveError(f"the pickle is refused: {reason}", record=self.record, offset=offset, hints=(hint,))

    def _result(self) -> Any:
        if len(self.stack) != 1 or self.marks or type(self.stack[0]) is Unbuilt:
            raise PickleRefusal("it ends with more or less than one value")
        return self.stack[0]

    # -- bytes

    def number(self, form: struct.Struct) -> Any:
        """The next bytes as one number."""
        (value,) = form.unpack_from(self.data, self.at)
        self.at += form.size
        return value

    def take(self, count: int) -> bytes:
        end = self.at + count
        assert end <= len(self.data)
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def line(self) -> str:
        return self.line_bytes().decode()

    def line_bytes(self) -> bytes:
        end = self.data.index(b"\n", self.at)
        piece: bytes = self.data[self.at : end]
        self.at = end + 1
        return piece

    # -- the stack

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        self._need(1)
        return self.stack.pop()

    def pop_all(self, count: int) -> list[Any]:
        """The last values, which go away."""
        self._need(count)
        start = len(self.stack) - count
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def top(self) -> Any:
        self._need(1)
        return self.stack[-1]

    def _need(self, count: int) -> None:
        if len(self.stack) - count < (self.marks[-1] if self.marks else 0):
            raise PickleRefusal("it takes a value that is not there")

    def remember(self, index: int) -> None:
        """Give the last value the memo number."""
        value = self.top()
        if type(value) is Unbuilt:
            raise PickleRefusal("it uses an instance before that has its state")
        self.memo[index] = value

    def pop_mark(self) -> list[Any]:
        """The values above the last mark, which goes away too."""
        if not self.marks:
            raise PickleRefusal("it closes what it never opened")
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def hold(self, container: Any, parts: Sequence[Any]) -> None:
        """Note that `container` now holds `parts`.

        Raises PickleRefusal when that nests too deep, or when something holds `container` already: what is
        written fills a container before it uses it, and so nothing can hold itself.
        """
        depths = self._depths
        known = depths.get(id(container))
        depth = known[1] if known else 0
        for part in parts:
            if part.__class__ in _ATOMS:
                continue
            if type(part) is Unbuilt:
                raise PickleRefusal("it uses an instance before that has its state")
            known = depths.get(id(part))
            own = known[1] if known else 0
            depth = max(depth, own + 1)
            # The part is kept beside its depth, so that its id is not given to another.
            depths[id(part)] = (part, own, True)
        known = depths.get(id(container))
        if known and known[2]:
            raise PickleRefusal("it fills what it has used already")
        if depth > MAX_DEPTH:
            raise PickleRefusal(f"it nests deeper than {MAX_DEPTH}")
        if depth:
            depths[id(container)] = (container, depth, False)


# -- opcodes


def _constant(value: Any) -> Callable[[PickleMachine], None]:
    return lambda machine: machine.stack.append(value)


def _empty(kind: Callable[[], Any]) -> Callable[[PickleMachine], None]:
    return lambda machine: machine.stack.append(kind())


def _number(layout: str) -> Callable[[PickleMachine], None]:
    form = struct.Struct(layout)

    def step(machine: PickleMachine) -> None:
        machine.stack.append(machine.number(form))

    return step


def _put(layout: str) -> Callable[[PickleMachine], None]:
    form = struct.Struct(layout)

    def step(machine: PickleMachine) -> None:
        machine.remember(machine.number(form))

    return step


def _get(layout: str) -> Callable[[PickleMachine], None]:
    form = struct.Struct(layout)

    def step(machine: PickleMachine) -> None:
        index = machine.number(form)
        machine.push(machine.memo[index])

    return step


def _text(layout: str, *, strict: bool = True) -> Callable[[PickleMachine], None]:
    form = struct.Struct(layout)

    def step(machine: PickleMachine) -> None:
        raw = machine.take(machine.number(form))
        # Strings of programs are bytes: invalid UTF-8 is kept as surrogates.
        machine.push(raw.decode(errors="strict" if strict else "surrogateescape"))

    return step


def _tuple_of(count: int) -> Callable[[PickleMachine], None]:
    def step(machine: PickleMachine) -> None:
        _push_tuple(machine, machine.pop_all(count))

    return step


def _push_tuple(machine: PickleMachine, parts: list[Any]) -> None:
    value = tuple(parts)
    if parts:
        machine.hold(value, parts)
    machine.push(value)


def _proto(machine: PickleMachine) -> None:
    machine.take(1)


def _long1(machine: PickleMachine) -> None:
    machine.push(_in_64_bits(int.from_bytes(machine.take(machine.take(1)[0]), "little", signed=True)))


def _in_64_bits(number: int) -> int:
    if not -(1 << 63) <= number < 1 << 63:
        raise PickleRefusal("an integer does not fit 64 bits")
    return number


def _parsed_int(machine: PickleMachine) -> None:
    """`I12`; `I00` and `I01` are False and True.  `L12L` too."""
    text = machine.line()
    if not _INTEGER.fullmatch(text):
        raise PickleRefusal(f"{text!r:.40} is no integer")
    machine.push(text == "01" if text in ("00", "01") else _in_64_bits(int(text.removesuffix("L"))))


def _parsed_float(machine: PickleMachine) -> None:
    text = machine.line()
    if not _FLOAT.fullmatch(text):
        raise PickleRefusal(f"{text!r:.40} is no number")
    machine.push(float(text))


def _parsed_string(machine: PickleMachine) -> None:
    """`S'it\\'s'`: the text between the quotes, its escapes resolved."""
    text = machine.line()
    if not _STRING.fullmatch(text):
        raise PickleRefusal(f"{text!r:.40} is no string")
    machine.push(_ESCAPE.sub(_unescaped, text[1:-1]))


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] == "x":
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED[code]


def _parsed_unicode(machine: PickleMachine) -> None:
    text = machine.line_bytes().decode("raw_unicode_escape")
    if _HALVES.search(text):
        raise PickleRefusal("a text holds half of a character")
    machine.push(text)


def _put_line(machine: PickleMachine) -> None:
    machine.remember(int(machine.line()))


def _get_line(machine: PickleMachine) -> None:
    machine.push(machine.memo[int(machine.line())])


def _mark(machine: PickleMachine) -> None:
    machine.marks.append(len(machine.stack))


def _tuple(machine: PickleMachine) -> None:
    _push_tuple(machine, machine.pop_mark())


def _list(machine: PickleMachine) -> None:
    values = machine.pop_mark()
    machine.push([])
    _extend(machine, values)


def _dict(machine: PickleMachine) -> None:
    values = machine.pop_mark()
    machine.push({})
    _update(machine, values)


def _append(machine: PickleMachine) -> None:
    _extend(machine, [machine.pop()])


def _appends(machine: PickleMachine) -> None:
    _extend(machine, machine.pop_mark())


def _extend(machine: PickleMachine, values: list[Any]) -> None:
    target = machine.top()
    if type(target) is not list:
        raise PickleRefusal("it appends to what is no list")
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
        raise PickleRefusal("it sets items of what is no dict")
    machine.hold(target, values)
    for key, value in zip(values[::2], values[1::2], strict=True):
        if isinstance(key, (list, dict, tuple, PickleGlobal)):
            raise PickleRefusal("a dict has a key that programs cannot have")
        target[key] = value


def _global(machine: PickleMachine) -> None:
    module, name = machine.line(), machine.line()
    machine.push(machine.find_global(module, name))


def _stack_global(machine: PickleMachine) -> None:
    name, module = machine.pop(), machine.pop()
    if type(name) is not str or type(module) is not str:
        raise PickleRefusal("a global name is no text")
    machine.push(machine.find_global(module, name))


def _memoize(machine: PickleMachine) -> None:
    machine.remember(len(machine.memo))


def _bytes(layout: str) -> Callable[[PickleMachine], None]:
    """Bytes, made as older protocols make them: `_codecs.encode(text, "latin1")`."""
    form = struct.Struct(layout)

    def step(machine: PickleMachine) -> None:
        raw = machine.take(machine.number(form))
        _call_implied(machine, ord("C"), (raw.decode("latin1"), "latin1"))

    return step


def _empty_set(machine: PickleMachine) -> None:
    _call_implied(machine, 0x8F, ([],))


def _call_implied(machine: PickleMachine, code: int, arguments: tuple[Any, ...]) -> None:
    machine.push(machine.find_global(*IMPLIED[code]))
    machine.push(arguments)
    _reduce(machine)


def _reduce(machine: PickleMachine) -> None:
    arguments, builder = machine.pop(), machine.pop()
    if type(builder) is not PickleGlobal:
        raise PickleRefusal("it calls what cannot be called")
    if builder.call_bare is not None:
        machine.push(builder.call_bare(arguments))
        return
    if builder.call is None:
        raise PickleRefusal(f"it calls '{builder.name}' as that cannot be called")
    given = expect_tuple(arguments, f"what it gives '{builder.name}'")
    try:
        machine.push(builder.call(*given))
    except TypeError:
        raise PickleRefusal(f"it calls '{builder.name}' with the wrong arguments") from None


def _newobj(machine: PickleMachine) -> None:
    arguments, builder = machine.pop(), machine.pop()
    if type(builder) is not PickleGlobal or builder.new is None:
        raise PickleRefusal("it makes an instance of what is no class")
    if expect_tuple(arguments, f"what it gives '{builder.name}'"):
        raise PickleRefusal(f"it makes an instance of '{builder.name}' of values")
    machine.push(builder.new())


def _build(machine: PickleMachine) -> None:
    state = machine.pop()
    instance = machine.top()
    if type(instance) is Unbuilt:
        machine.stack[-1] = instance.make(state)
        return
    machine.hold(instance, (state,))
    machine.build(instance, state)


def _persistent(machine: PickleMachine) -> None:
    machine.push(machine.load_persistent(machine.pop()))


_STOP: Final = ord(".")
_HALVES: Final = pattern_of("[\ud800-\udfff]")
_INTEGER: Final = pattern_of(r"-?[0-9]{1,20}L?", re.ASCII)
_FLOAT: Final = pattern_of(r"-?([0-9]{1,400}(\.[0-9]{0,400})?(e[+-]?[0-9]{1,4})?|inf|nan)", re.ASCII)
_ESCAPED: Final = {
    "\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
}  # fmt: skip
_ESCAPE_TEXT: Final = r"""\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|[\\'"nrtabfv])"""
_ESCAPE: Final = pattern_of(_ESCAPE_TEXT)
_STRING: Final = pattern_of(rf"""'([^'\\]|{_ESCAPE_TEXT})*'|"([^"\\]|{_ESCAPE_TEXT})*\"""")
_OPCODES: Final[Mapping[int, Callable[[PickleMachine], object]]] = {
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
        b"I": _parsed_int, b"L": _parsed_int, b"F": _parsed_float, b"S": _parsed_string, b"V": _parsed_unicode,
        b"T": _text("<I", strict=False), b"U": _text("<B", strict=False), b"l": _list, b"d": _dict,
        b"p": _put_line, b"g": _get_line, b"0": lambda machine: machine.stack.pop(),
        b"1": lambda machine: machine.pop_mark(), b"2": lambda machine: machine.push(machine.top()),
        b"c": _global, b"\x93": _stack_global, b"\x94": _memoize, b"\x95": lambda machine: machine.take(8),
        b"C": _bytes("<B"), b"B": _bytes("<I"), b"\x8f": _empty_set, b"R": _reduce, b"\x81": _newobj,
        b"b": _build, b"Q": _persistent,
    }.items()
}  # fmt: skip
"""The action of each opcode; any that `scan` lets pass has its row."""


def no_persistent(_: Any) -> Any:
    raise PickleRefusal("it refers to a tensor, and there are none here")


def no_build(_instance: Any, _state: Any) -> None:
    raise PickleRefusal("it fills an instance, and there are none here")
