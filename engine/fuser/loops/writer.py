"""The lines of a loop's function in LLVM's text: values, variables, elements of arrays.

In: what the trees of a loop ask for (`text`).  Out: lines.  Variables are stack slots, which LLVM makes
registers of; a variable has the kind of what is first assigned to it.  Raises `Unreadable` for what is no loop.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from engine.aten.stepwise.language import Loop


class Unreadable(Exception):
    """The function is not in the part of Python that loops are in."""


class Value(NamedTuple):
    """`kind` is i64, f32, f64, i1 or ptr; of a literal, which goes with any number, `literal` is the number; of a
    pointer, `element` says what it points to."""

    kind: str
    text: str
    literal: int | float | None = None
    element: str = ""


LLVM: Final = {"i64": "i64", "f32": "float", "f64": "double", "i1": "i1", "ptr": "ptr"}
ELEMENTS: Final = {
    "float32": ("f32", "float"), "float64": ("f64", "double"), "int64": ("i64", "i64"), "int32": ("i64", "i32"),
    "int16": ("i64", "i16"), "int8": ("i64", "i8"), "uint8": ("i64", "u8"), "bool": ("i1", "b8"),
    "float16": ("f32", "half"), "bfloat16": ("f32", "bf16"),
}  # fmt: skip
"""The computation type of an element, and its storage type."""
_STORED: Final = {"u8": "i8", "b8": "i8", "bf16": "i16"}
_SIZES: Final = {
    "float": 4, "double": 8, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "b8": 1, "half": 2, "bf16": 2
}  # fmt: skip
_ORDER: Final = ("i1", "i64", "f32", "f64")
_FLOATS: Final = (("f32", "float"), ("f64", "double"))
DECLARATIONS: Final = "\n".join(
    f"declare {result or type} @llvm.{name}.{kind}({type})"
    for kind, type in _FLOATS
    for name, result in (("fabs", ""), ("floor", ""), ("rint", ""), ("sqrt", ""), ("fptosi.sat.i64", "i64"))
)
"""Of the functions that loops call."""


class Writer:
    """One function: its lines so far, its stack slots, and what names stand for."""

    def __init__(
        self, loop: Loop, expressions: Mapping[type[ast.expr], Any], statements: Mapping[type[ast.stmt], Any]
    ) -> None:
        self.flags = "reassoc nsz contract " if loop.any_order else ""
        self.expressions = expressions
        self.statements = statements
        self.globals = loop.function.__globals__
        self.names: dict[str, Value] = {}
        """Arrays; and variables, whose text is their slot."""
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        self.exits: list[tuple[str, str]] = []
        """Of the loops around: where `break` and `continue` go."""

    # -------------------------------------------------------------- lines

    def new(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"l{self.count}"

    def put(self, line: str) -> None:
        self.lines.append(line)

    def make(self, kind: str, line: str) -> Value:
        name = self.new()
        self.put(f"{name} = {line}")
        return Value(kind, name)

    def begin(self, label: str) -> None:
        self.put(f"{label}:")

    # -------------------------------------------------------------- names

    def assign_name(self, name: str, value: Value) -> None:
        known = self.names.get(name)
        if known is None:
            slot = f"%s{len(self.slots)}"
            self.slots.append(f"{slot} = alloca {LLVM[value.kind]}")
            known = self.names[name] = Value(value.kind, slot)
        if known.kind == "ptr":
            raise Unreadable(f"{name} is an array")
        self.put(f"store {LLVM[known.kind]} {self.converted(value, known.kind).text}, ptr {known.text}")

    def read_name(self, name: str) -> Value:
        known = self.names.get(name)
        if known is None:
            constant = self.globals.get(name)
            if isinstance(constant, (int, float)):
                return self.number(constant)
            raise Unreadable(f"{name} has no value")
        return known if known.kind == "ptr" else self.make(known.kind, f"load {LLVM[known.kind]}, ptr {known.text}")

    def number(self, value: float) -> Value:
        if isinstance(value, bool):
            return Value("i1", str(int(value)))
        return Value("i64", str(value), value) if isinstance(value, int) else Value("f64", _hex(value), value)

    # -------------------------------------------------------------- numbers

    def converted(self, value: Value, kind: str, explicit: bool = False) -> Value:
        """The value in another kind; precision changes only where that is said, or for a literal."""
        if value.kind == kind:
            return value
        if value.literal is not None and kind in ("f32", "f64"):
            exact = float(np.float32(value.literal)) if kind == "f32" else float(value.literal)
            return Value(kind, _hex(exact))
        if kind in ("f32", "f64") and value.kind == "i64":
            return self.make(kind, f"sitofp i64 {value.text} to {LLVM[kind]}")
        if value.kind == "i1" and kind == "i64":
            return self.make(kind, f"zext i1 {value.text} to i64")
        if explicit and value.kind == "i1" and kind in ("f32", "f64"):
            return self.make(kind, f"uitofp i1 {value.text} to {LLVM[kind]}")
        if explicit and (value.kind, kind) == ("f32", "f64"):
            return self.make(kind, f"fpext float {value.text} to double")
        if explicit and (value.kind, kind) == ("f64", "f32"):
            return self.make(kind, f"fptrunc double {value.text} to float")
        if explicit and kind == "i1":
            return self.compare(ast.NotEq(), value, self.number(0))
        if explicit and kind == "i64":
            type = LLVM[value.kind]
            return self.make(kind, f"call i64 @llvm.fptosi.sat.i64.{value.kind}({type} {value.text})")
        raise Unreadable(f"{value.kind} is not converted to {kind} by itself")

    def alike(self, *values: Value) -> tuple[str, list[Value]]:
        """The values in the kind that all of them go with."""
        strong = [v.kind for v in values if v.literal is None]
        kinds = strong or [v.kind for v in values]
        kind = max(kinds, key=_ORDER.index)
        if kind == "i64" and any(v.kind in ("f32", "f64") for v in values):
            kind = "f64"
        return kind, [self.converted(v, kind) for v in values]

    def compare(self, how: ast.cmpop, a: Value, b: Value) -> Value:
        kind, (x, y) = self.alike(a, b)
        if type(how) not in _COMPARE:
            raise Unreadable(f"no {type(how).__name__} in loops")
        integer, real = _COMPARE[type(how)]
        if kind == "i1" and integer not in ("eq", "ne"):
            raise Unreadable("truth values have no order")
        asked = f"fcmp {real}" if kind in ("f32", "f64") else f"icmp {integer}"
        return self.make("i1", f"{asked} {LLVM[kind]} {x.text}, {y.text}")

    def truth(self, value: Value) -> Value:
        return value if value.kind == "i1" else self.compare(ast.NotEq(), value, self.number(0))

    def binary(self, how: ast.operator, a: Value, b: Value) -> Value:
        if type(how) is ast.Pow and b.literal in (2, 3):
            square = self.binary(ast.Mult(), a, a)
            return square if b.literal == 2 else self.binary(ast.Mult(), square, a)
        if type(how) not in _BINARY:
            raise Unreadable(f"no {type(how).__name__} in loops")
        if a.literal is not None and b.literal is not None and type(how) in _LITERALS:
            return self.number(_LITERALS[type(how)](a.literal, b.literal))
        kind, (x, y) = self.alike(a, b)
        if kind == "i1":
            kind, x, y = "i64", self.converted(x, "i64"), self.converted(y, "i64")
        if type(how) is ast.Div and kind == "i64":
            kind, x, y = "f64", self.converted(x, "f64"), self.converted(y, "f64")
        integer, real = _BINARY[type(how)]
        if kind != "i64":
            if not real:
                raise Unreadable(f"no {type(how).__name__} of floats")
            return self.make(kind, f"{real} {self.flags}{LLVM[kind]} {x.text}, {y.text}")
        return self.make(kind, f"{integer} i64 {x.text}, {y.text}")

    # -------------------------------------------------------------- elements

    def place(self, node: ast.Subscript) -> tuple[Value, str]:
        """The computation type, the storage type and the address of an element."""
        cells = self.value(node.value)
        if cells.kind != "ptr":
            raise Unreadable(f"{ast.unparse(node.value)} is no array")
        index = self.value(node.slice)
        if index.kind != "i64":
            raise Unreadable(f"{ast.unparse(node.slice)} is no whole number")
        kind, stored = ELEMENTS[cells.element]
        type = _STORED.get(stored, stored)
        address = self.make("ptr", f"getelementptr inbounds {type}, ptr {cells.text}, i64 {index.text}")
        return Value(kind, address.text), stored

    def load(self, node: ast.Subscript) -> Value:
        place, stored = self.place(node)
        type = _STORED.get(stored, stored)
        raw = self.make(place.kind, f"load {type}, ptr {place.text}, align {_SIZES[stored]}")
        if stored == "b8":
            return self.make("i1", f"icmp ne i8 {raw.text}, 0")
        if stored == "half":
            return self.make("f32", f"fpext half {raw.text} to float")
        if stored == "bf16":
            high = self.make("i32", f"shl i32 {self.make('i32', f'zext i16 {raw.text} to i32').text}, 16")
            return self.make("f32", f"bitcast i32 {high.text} to float")
        if place.kind == "i64" and type != "i64":
            return self.make("i64", f"{'zext' if stored == 'u8' else 'sext'} {type} {raw.text} to i64")
        return raw

    def store(self, node: ast.Subscript, value: Value) -> None:
        place, stored = self.place(node)
        type = _STORED.get(stored, stored)
        made = self.converted(value, place.kind)
        if stored == "b8":
            made = self.make("i8", f"zext i1 {made.text} to i8")
        elif stored == "half":
            made = self.make("half", f"fptrunc float {made.text} to half")
        elif stored == "bf16":
            made = _upper_half(self, made)
        elif place.kind == "i64" and type != "i64":
            made = self.make(type, f"trunc i64 {made.text} to {type}")
        self.put(f"store {type} {made.text}, ptr {place.text}, align {_SIZES[stored]}")

    # -------------------------------------------------------------- trees

    def value(self, node: ast.expr) -> Value:
        make: Callable[[Writer, Any], Value] | None = self.expressions.get(type(node))
        if make is None:
            raise Unreadable(f"no {type(node).__name__} in loops")
        return make(self, node)

    def block(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            make = self.statements.get(type(node))
            if make is None:
                raise Unreadable(f"no {type(node).__name__} in loops")
            make(self, node)

    def branch(self, condition: Value, yes: str, no: str) -> None:
        self.put(f"br i1 {condition.text}, label %{yes}, label %{no}")

    @contextmanager
    def around(self, broken: str, continued: str) -> Iterator[None]:
        self.exits.append((broken, continued))
        yield
        self.exits.pop()


def _upper_half(w: Writer, value: Value) -> Value:
    """A float rounded to its upper 16 bits, of two the even ones; NaN stays NaN."""
    bits = w.make("i32", f"bitcast float {value.text} to i32")
    odd = w.make("i32", f"and i32 {w.make('i32', f'lshr i32 {bits.text}, 16').text}, 1")
    added = w.make("i32", f"add i32 {w.make('i32', f'add i32 {bits.text}, 32767').text}, {odd.text}")
    is_nan = w.make("i1", f"fcmp uno float {value.text}, {value.text}")
    kept = w.make("i32", f"select i1 {is_nan.text}, i32 {0x7FC00000}, i32 {added.text}")
    return w.make("i16", f"trunc i32 {w.make('i32', f'lshr i32 {kept.text}, 16').text} to i16")


def _hex(value: float) -> str:
    """A float as LLVM reads it exactly, of single precision too."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


_COMPARE: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("slt", "olt"), ast.LtE: ("sle", "ole"), ast.Gt: ("sgt", "ogt"), ast.GtE: ("sge", "oge"),
    ast.Eq: ("eq", "oeq"), ast.NotEq: ("ne", "une"),
}  # fmt: skip
_BINARY: Final[dict[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("add", "fadd"), ast.Sub: ("sub", "fsub"), ast.Mult: ("mul", "fmul"), ast.Div: ("", "fdiv"),
    ast.FloorDiv: ("sdiv", ""), ast.Mod: ("srem", ""), ast.BitAnd: ("and", ""), ast.BitOr: ("or", ""),
    ast.BitXor: ("xor", ""), ast.LShift: ("shl", ""), ast.RShift: ("ashr", ""),
}  # fmt: skip
_LITERALS: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Div: lambda a, b: a / b,
    ast.LShift: lambda a, b: a << b,
}  # fmt: skip
