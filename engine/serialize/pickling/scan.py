"""Checks a pickle from its first opcode to STOP before anything of it is built.

In: bytes and where the pickle starts.  Out: the global names in it.  A pickle has no loops, so that one walk over its
opcodes tells everything but types: which opcodes it uses, whether texts and numbers end inside the data, how many
values lie on the stack at each step, which memo numbers are set, and how much memory the values can take at most.
Names that lie on the stack (protocol 4) are told where texts, or memo numbers that stand for texts, come right before.
What `_ROWS` does not list is refused.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field
from typing import Any, Final, NamedTuple

from engine.lang.records import dataclass

LINE: Final = 1 << 16
"""Longest text that ends with its line, in bytes."""
ROOM: Final = 256 << 20
GROWTH: Final = 32
"""Limits on what a pickle builds: `ROOM` bytes, or `GROWTH` times its length in the file, since bombs are short."""
STEPS: Final = 1_000_000
STEPS_PER_BYTE: Final = 4
"""Limits on the number of opcodes, in the same way."""
MAX_MARKS: Final = 800


_NO_TEXTS: Final = (None, None)
IMPLIED: Final = {
    ord("C"): ("_codecs", "encode"), ord("B"): ("_codecs", "encode"), 0x8F: ("builtins", "set"),
}  # fmt: skip
"""Functions that older protocols call by name to make bytes and sets, and newer ones have opcodes for."""
_KEEP_LAST: Final = frozenset(b"qrp\x94hjgX\x8c\x93\x95")
"""Opcodes that look after `Scan._last` themselves, or leave it as it is."""


class PickleRefusal(Exception):
    """Why a pickle is refused; raised by the walk, by the machine that builds, and by builders."""


def expect_tuple(value: Any, what: str) -> tuple[Any, ...]:
    """The value, which has to be a tuple.  Raises PickleRefusal, which calls it `what`, for any other."""
    if type(value) is not tuple:
        kind = type(value).__name__ if isinstance(value, _NAMED) else "something else"
        raise PickleRefusal(f"{what} is no tuple but {_article(kind)}")
    return value


_NAMED: Final = (type(None), bool, int, float, complex, str, list, dict)


def _article(kind: str) -> str:
    if kind in ("something else", "NoneType"):
        return kind.removesuffix("Type")
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


class UnsupportedTensor(PickleRefusal):
    """It describes a tensor of a kind that nothing here can be."""


class Effect(NamedTuple):
    """The effect of an opcode: the bytes that follow it, and how the stack and the memory change.

    `argument` is a number of bytes, or the size of the number that counts them, negative; "line" and "lines" are
    one text and two.  A marked one takes the values above the last mark, then `pops`.
    """

    argument: int | str = 0
    pops: int = 0
    pushes: int = 0
    cost: int = 0
    marked: bool = False
    per_value: int = 0
    """Bytes for each value that the mark gives."""


@dataclass(frozen=True, slots=True)
class GlobalName:
    """A global name in a pickle, and the byte where it stands."""

    offset: int
    module: str
    name: str


@dataclass(slots=True, eq=False)
class Scan:
    """One walk; `at` is the opcode it looks at, and at the end the byte behind STOP."""

    data: Any
    at: int
    stored: int | None = None
    """The pickle's length in the file; None where it is the data's own."""
    names: dict[tuple[str, str], GlobalName] = field(default_factory=dict)
    _height: int = 0
    _marks: list[int] = field(default_factory=list)
    _memo: dict[int, str | None] = field(default_factory=dict)
    """By memo number, the text that it stands for; None for anything else."""
    _last: tuple[str | None, str | None] = _NO_TEXTS
    """The two values that were pushed last, where they are texts that may be names."""
    _cost: int = 0

    def run(self) -> None:
        """Walk to the end.  Raises PickleRefusal; `at` is then where."""
        data, size = self.data, len(self.data)
        length = size if self.stored is None else self.stored
        room, most = max(ROOM, GROWTH * length), max(STEPS, STEPS_PER_BYTE * length)
        steps = 0
        while True:
            if self.at >= size:
                raise PickleRefusal("it is cut off")
            code: int = data[self.at]
            steps += 1
            if code == _STOP:
                break
            found = _STEPS.get(code)
            if found is None:
                raise PickleRefusal(f"opcode {bytes([code])!r} has no place in an archive")
            row, special, keeps_last, is_text, is_line = found
            argument, pops, pushes, cost, marked, _ = row
            start = end = self.at + 1
            if argument:
                start, end = self._argument(argument, start)
            if not keeps_last:
                self._last = _NO_TEXTS
            if special is not None:
                special(self, code, start, end)
            if marked:
                self._close(row)
            if pops and self._height - pops < (self._marks[-1] if self._marks else 0):
                raise PickleRefusal("it takes a value that is not there")
            self._height += pushes - pops
            self._cost += cost + end - start if is_text else cost
            if self._cost > room:
                raise PickleRefusal(f"what it describes takes more than {room} bytes")
            if steps > most:
                raise PickleRefusal(f"it has more than {most} opcodes")
            self.at = end + is_line
        if self._height != 1 or self._marks:
            raise PickleRefusal("it ends with more or less than one value")
        self.at += 1

    def _argument(self, argument: int | str, start: int) -> tuple[int, int]:
        """The start and end of the argument."""
        if argument == "lines":
            return start, self._line_end(self._line_end(start) + 1)
        if argument == "line":
            return start, self._line_end(start)
        assert isinstance(argument, int)
        end = start + abs(argument)
        if end <= len(self.data) and argument < 0:
            start, end = end, end + int.from_bytes(self.data[start:end], "little")
        if end > len(self.data):
            raise PickleRefusal("it is cut off")
        return start, end

    def _line_end(self, start: int) -> int:
        end: int = self.data.find(b"\n", start, start + LINE)
        if end < 0:
            raise PickleRefusal("it is cut off")
        return end

    def _close(self, row: Effect) -> None:
        """Take the last mark away, and the values above it."""
        if not self._marks:
            raise PickleRefusal("it closes what it never opened")
        mark = self._marks.pop()
        self._cost += row.per_value * (self._height - mark)
        self._height = mark

    # -- opcodes that do more than move values

    def _mark(self, _code: int, _start: int, _end: int) -> None:
        self._marks.append(self._height)
        if len(self._marks) > MAX_MARKS:
            raise PickleRefusal("it nests too deep")

    def _put(self, code: int, start: int, end: int) -> None:
        index = len(self._memo) if code == _MEMOIZE else self._index(code, start, end)
        if index >= len(self.data):
            raise PickleRefusal(f"it sets memo {index}, and has {len(self.data)} bytes")
        if index not in self._memo:
            self._cost += _MEMO_COST
        self._memo[index] = self._last[1]

    def _get(self, code: int, start: int, end: int) -> None:
        index = self._index(code, start, end)
        if index not in self._memo:
            raise PickleRefusal(f"it uses memo {index} before it is set")
        self._last = (self._last[1], self._memo[index])

    def _index(self, code: int, start: int, end: int) -> int:
        raw = bytes(self.data[start:end])
        if code not in b"pg":
            return int.from_bytes(raw, "little")
        if not raw.isdigit() or len(raw) > 9:
            raise PickleRefusal(f"it has a memo number {raw!r:.40}")
        return int(raw)

    def _text(self, _code: int, start: int, end: int) -> None:
        text = None
        if end - start <= LINE:
            with suppress(UnicodeDecodeError):
                text = bytes(self.data[start:end]).decode()
        self._last = (self._last[1], text)

    def _name(self, _code: int, start: int, end: int) -> None:
        try:
            module, _, name = bytes(self.data[start:end]).decode().partition("\n")
        except UnicodeDecodeError:
            raise PickleRefusal("a global name is not UTF-8") from None
        self._found(module, name)

    def _stacked_name(self, _code: int, _start: int, _end: int) -> None:
        module, name = self._last
        if module is None or name is None:
            raise PickleRefusal("a global name does not stand right before it is used")
        self._last = _NO_TEXTS
        self._found(module, name)

    def _implied_name(self, code: int, _start: int, _end: int) -> None:
        self._found(*IMPLIED[code])

    def _found(self, module: str, name: str) -> None:
        self.names.setdefault((module, name), GlobalName(self.at, module, name))

    def _protocol(self, _code: int, start: int, _end: int) -> None:
        if not 2 <= self.data[start] <= 5:
            raise PickleRefusal(f"pickle protocol {self.data[start]} has no place in an archive")


_STOP: Final = ord(".")
_MEMOIZE: Final = 0x94
_MEMO_COST: Final = 100
_TEXTS: Final = (-1, -4, "line")
_ATOM: Final = Effect(0, 0, 1, 8)
_ROWS: Final[dict[int, Effect]] = {
    code[0]: row
    for code, row in {
        b"\x80": Effect(1), b"(": Effect(), b"N": _ATOM, b"\x88": _ATOM, b"\x89": _ATOM,
        b"K": Effect(1, 0, 1, 8), b"M": Effect(2, 0, 1, 36), b"J": Effect(4, 0, 1, 36), b"\x8a": Effect(-1, 0, 1, 40),
        b"G": Effect(8, 0, 1, 32), b"X": Effect(-4, 0, 1, 64), b"\x8c": Effect(-1, 0, 1, 64),
        b"T": Effect(-4, 0, 1, 64),
        b"U": Effect(-1, 0, 1, 64),
        b"I": Effect("line", 0, 1, 36), b"L": Effect("line", 0, 1, 36), b"F": Effect("line", 0, 1, 32),
        b"S": Effect("line", 0, 1, 64), b"V": Effect("line", 0, 1, 64),
        b")": _ATOM, b"\x85": Effect(0, 1, 1, 72), b"\x86": Effect(0, 2, 1, 80), b"\x87": Effect(0, 3, 1, 88),
        b"t": Effect(0, 0, 1, 64, True, 8), b"l": Effect(0, 0, 1, 64, True, 8), b"d": Effect(0, 0, 1, 72, True, 52),
        b"]": Effect(0, 0, 1, 64), b"a": Effect(0, 2, 1, 8), b"e": Effect(0, 1, 1, 0, True, 8),
        b"}": Effect(0, 0, 1, 72), b"s": Effect(0, 3, 1, 104), b"u": Effect(0, 1, 1, 0, True, 52),
        b"q": Effect(1, 1, 1), b"r": Effect(4, 1, 1), b"p": Effect("line", 1, 1), b"\x94": Effect(0, 1, 1),
        b"\x95": Effect(8),
        b"\x93": Effect(0, 2, 1, 8), b"\x8f": Effect(0, 0, 1, 400), b"C": Effect(-1, 0, 1, 400),
        b"B": Effect(-4, 0, 1, 400),
        b"h": Effect(1, 0, 1, 8), b"j": Effect(4, 0, 1, 8), b"g": Effect("line", 0, 1, 8),
        b"c": Effect("lines", 0, 1, 8), b"R": Effect(0, 2, 1, 400), b"\x81": Effect(0, 2, 1, 200),
        b"b": Effect(0, 2, 1, 8),
        b"Q": Effect(0, 1, 1, 200), b"0": Effect(0, 1), b"1": Effect(0, 0, 0, 0, True), b"2": Effect(0, 1, 2, 8),
    }.items()
}  # fmt: skip
"""Every opcode that may stand in a pickle; costs are a little more than what CPython takes."""
_SPECIAL: Final = {
    code: step
    for codes, step in (
        (b"(", Scan._mark), (b"qrp\x94", Scan._put), (b"hjg", Scan._get), (b"c", Scan._name),
        (b"X\x8c", Scan._text), (b"\x93", Scan._stacked_name), (b"CB\x8f", Scan._implied_name),
        (b"\x80", Scan._protocol),
    )
    for code in codes
}  # fmt: skip
_STEPS: Final = {
    code: (row, _SPECIAL.get(code), code in _KEEP_LAST, row.argument in _TEXTS, row.argument in ("line", "lines"))
    for code, row in _ROWS.items()
}
"""The facts of each opcode together: its row, its step, whether that looks after `Scan._last`, whether the argument is
a text, and a line."""
