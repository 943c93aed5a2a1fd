"""Typed scalar expressions as loops over contiguous memory, in LLVM's text.

In: a tree of `engine.fuser.expression`, and where a library has the functions whose roundings are its own.  Out: the
text of `void name(ptr out, ptr <each tensor>, i64 n, <each number>)`.

An expression becomes one loop, which LLVM vectorises.  A library's functions work on whole rows of elements, so what
they are applied to is computed into a buffer first, and what they make is read by a later loop; that goes block by
block, so the buffers stay small:

    sigmoid(x)  →  loop: a = -x;   exp: b = exp(a);   loop: out = 1 / (b + 1)

Nothing is contracted or reassociated: every operation rounds as it stands.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from engine.fuser.expression import FLOATS, LIBRARY, Apply, Element, Literal, Number, Unsupported, Value

BLOCK: Final = 512
"""Elements of a buffer."""
OUT: Final = "(out)"
"""The name of the result's buffer, which no argument has."""
LLVM_TYPES: Final = {
    "f32": "float", "f64": "double", "i64": "i64", "i32": "i32", "i1": "i1", "f16": "i16", "bf16": "i16",
}  # fmt: skip
SIZES: Final = {"f32": 4, "f64": 8, "i64": 8, "i32": 4, "i1": 1}
ALL_SIZES: Final = {**SIZES, "f16": 2, "bf16": 2}
"""Bytes of an element; those of `SIZES` are computed in themselves."""
_STORED: Final = {**LLVM_TYPES, "i1": "i8"}
_SUFFIX: Final = {"f32": "f32", "f64": "f64"}


class RowFunction(NamedTuple):
    """A function on rows as numpy's inner loops are: `void(char **rows, intptr *count, intptr *steps, void *data)`."""

    address: int
    data: int


Library = Callable[[str, str], RowFunction]
"""Finds the row function of a name of `LIBRARY` for a kind; raises Unsupported."""


class Loop(NamedTuple):
    """Computes `value` for each element and stores it."""

    target: str
    value: Value


class Row(NamedTuple):
    """A library's function on rows, from `sources` to `target`."""

    target: str
    function: str
    kind: str
    sources: tuple[str, ...]


def steps(value: Value) -> list[Loop | Row]:
    """The expression taken apart where it calls a library; the last step stores to `OUT`."""
    done: list[Loop | Row] = []
    made: dict[Value, Element] = {}

    def place(value: Value) -> str:
        if isinstance(value, Element):
            return value.name
        name = f"{len(done)}.row"
        done.append(Loop(name, value))
        return name

    def taken_apart(value: Value) -> Value:
        if not isinstance(value, Apply):
            return value
        operands = tuple(taken_apart(each) for each in value.operands)
        whole = Apply(value.function, operands, value.kind)
        if value.function not in LIBRARY:
            return whole
        if whole not in made:
            sources = tuple(place(each) for each in operands)
            made[whole] = Element(f"{len(done)}.row", value.kind)
            done.append(Row(made[whole].name, value.function, value.kind, sources))
        return made[whole]

    rest = taken_apart(value)
    last = done[-1] if done else None
    if isinstance(last, Row) and rest == Element(last.target, last.kind):
        done[-1] = last._replace(target=OUT)
    else:
        done.append(Loop(OUT, rest))
    return done


def function_text(
    name: str, value: Value, tensors: Mapping[str, str], numbers: Mapping[str, str], library: Library, in_place: bool
) -> str:
    """The definition; `tensors` and `numbers` tell the parameters' kinds.  In place, `out` is the first tensor."""
    plan = steps(value)
    first = next(iter(tensors))
    parameters = [] if in_place else [f"ptr noalias %{symbol(OUT)}"]
    parameters += [f"ptr %{symbol(each)}" for each in tensors] + ["i64 %n"]
    parameters += [f"{LLVM_TYPES[kind]} %{symbol(each)}" for each, kind in numbers.items()]
    rows = {step.target: _kind_of(step) for step in plan if step.target != OUT}
    writer = _Writer({**tensors, **rows, OUT: value.kind}, {OUT: first} if in_place else {}, library)
    lines = [
        f"define internal void @{name}({', '.join(parameters)}) noinline {{",
        "start:",
        *writer.buffers(plan, rows),
    ]
    lines += writer.blocks(plan) if rows else writer.once(plan, "%n", "start")
    return "\n".join([*lines, "  ret void", "}"])


def _kind_of(step: Loop | Row) -> str:
    return step.value.kind if isinstance(step, Loop) else step.kind


_ROW_ARGUMENTS: Final = ("  %rows = alloca [3 x ptr]", "  %steps = alloca [3 x i64]", "  %count = alloca i64")
"""Where the arguments of a library's functions are put."""


def symbol(name: str) -> str:
    """A value of a function by the name that an operator's schema or a step gives it, apart from the function's own."""
    return f'"of {name}"'


@dataclass(slots=True)
class _Writer:
    kinds: Mapping[str, str]
    aliases: Mapping[str, str]
    library: Library
    count: int = 0
    bases: dict[str, str] = field(default_factory=dict)
    """The LLVM value of a tensor's memory in a block."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    """Numbers that go by another name than their symbol."""
    prefix: str = ""
    """The prefix of value names."""

    def fresh(self) -> str:
        self.count += 1
        return f"{self.prefix}v{self.count}"

    def memory(self, name: str) -> str:
        name = self.aliases.get(name, name)
        return self.bases.get(name, f"%{symbol(name)}")

    def buffers(self, plan: Sequence[Loop | Row], rows: Mapping[str, str]) -> Iterator[str]:
        for name, kind in rows.items():
            yield f"  %{symbol(name)} = alloca [{BLOCK} x {_STORED[kind]}], align 64"
        if any(isinstance(step, Row) for step in plan):
            yield from _ROW_ARGUMENTS

    def blocks(self, plan: Sequence[Loop | Row]) -> Iterator[str]:
        """The steps for block after block."""
        outer = [name for name in self.kinds if not name.endswith(".row") and name not in self.aliases]
        yield from (
            "  br label %block",
            "block:",
            "  %base = phi i64 [0, %start], [%further, %blockend]",
            "  %left = sub i64 %n, %base",
            f"  %short = icmp ult i64 %left, {BLOCK}",
            f"  %m = select i1 %short, i64 %left, i64 {BLOCK}",
        )
        for name in outer:
            at = f"%{self.fresh()}"
            yield f"  {at} = getelementptr {_STORED[self.kinds[name]]}, ptr {self.memory(name)}, i64 %base"
            self.bases[name] = at
        yield from self.once(plan, "%m", "block")
        yield from (
            "  br label %blockend",
            "blockend:",
            f"  %further = add nuw i64 %base, {BLOCK}",
            "  %more = icmp ult i64 %further, %n",
            "  br i1 %more, label %block, label %end",
            "end:",
        )

    def once(self, plan: Sequence[Loop | Row], count: str, before: str) -> Iterator[str]:
        """The steps over `count` elements, entered from the basic block `before`."""
        for step in plan:
            if isinstance(step, Row):
                yield from self.row(step, count)
            else:
                label = self.fresh()
                yield from self.loop(step, count, before, label)
                before = f"{label}.end"

    def loop(self, step: Loop, count: str, before: str, label: str) -> Iterator[str]:
        i = f"%{label}.i"
        yield f"  br label %{label}"
        yield f"{label}:"
        yield f"  {i} = phi i64 [0, %{before}], [{i}.next, %{label}]"
        body = _Body(self, i)
        result = body.value(step.value)
        yield from body.lines
        kind = step.value.kind
        at = f"%{self.fresh()}"
        if kind == "i1":
            yield f"  {at}.b = zext i1 {result} to i8"
            result = f"{at}.b"
        yield f"  {at} = getelementptr {_STORED[kind]}, ptr {self.memory(step.target)}, i64 {i}"
        yield f"  store {_STORED[kind]} {result}, ptr {at}"
        yield f"  {i}.next = add nuw i64 {i}, 1"
        yield f"  {i}.more = icmp ult i64 {i}.next, {count}"
        yield f"  br i1 {i}.more, label %{label}, label %{label}.end"
        yield f"{label}.end:"

    def row(self, step: Row, count: str) -> Iterator[str]:
        found = self.library(step.function, step.kind)
        yield f"  store i64 {count}, ptr %count"
        for i, name in enumerate((*step.sources, step.target)):
            at = self.fresh()
            yield f"  %{at} = getelementptr ptr, ptr %rows, i64 {i}"
            yield f"  store ptr {self.memory(name)}, ptr %{at}"
            yield f"  %{at}.s = getelementptr i64, ptr %steps, i64 {i}"
            yield f"  store i64 {SIZES[step.kind]}, ptr %{at}.s"
        address, data = (f"ptr inttoptr (i64 {each} to ptr)" for each in found)
        yield f"  call void {address[4:]}(ptr %rows, ptr %count, ptr %steps, {data})"


# ------------------------------------------------------------------ no rows


def scalar_lines(value: Value, numbers: Mapping[str, str], label: str) -> tuple[list[str], str]:
    """An expression of numbers, which go by these names: lines, and where the result is.

    It calls the functions of a library that `one_element` gives.
    """
    writer = _Writer({}, {}, _no_library, numbers=numbers, prefix=f"{label}.")
    body = _Body(writer, "0")
    result = body.value(value)
    return body.lines, result


def _no_library(name: str, kind: str) -> RowFunction:
    raise Unsupported(f"{name} of {kind} on no row")


def one_element(value: Value, library: Library) -> Iterator[str]:
    """The functions of a library that an expression calls, as functions of one element each."""
    if not isinstance(value, Apply):
        return
    for each in value.operands:
        yield from one_element(each, library)
    if value.function in LIBRARY:
        yield _one_element(value.function, len(value.operands), value.kind, library)


def _one_element(function: str, count: int, kind: str, library: Library) -> str:
    names = [f"{i}" for i in range(count)]
    writer = _Writer(dict.fromkeys([*names, OUT], kind), {}, library)
    type = LLVM_TYPES[kind]
    lines = [
        f"define internal {type} @one.{function}.{kind}({', '.join(f'{type} %x{name}' for name in names)}) noinline {{",
        *(f"  %{symbol(name)} = alloca {type}" for name in (*names, OUT)),
        *_ROW_ARGUMENTS,
        *(f"  store {type} %x{name}, ptr %{symbol(name)}" for name in names),
        *writer.row(Row(OUT, function, kind, tuple(names)), "1"),
        f"  %result = load {type}, ptr %{symbol(OUT)}",
        f"  ret {type} %result",
        "}",
    ]
    return "\n".join(lines)


# ------------------------------------------------------------------ one element

_FLOAT_RELATIONS: Final = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_WHOLE_RELATIONS: Final = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_FLOAT_ARITHMETIC: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_WHOLE_ARITHMETIC: Final = {
    "add": "add", "sub": "sub", "mul": "mul", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
}  # fmt: skip
_INTRINSICS: Final = {
    "sqrt": "llvm.sqrt", "abs": "llvm.fabs", "floor": "llvm.floor", "ceil": "llvm.ceil", "trunc": "llvm.trunc",
    "round": "llvm.rint",
}  # fmt: skip
_LOGIC: Final = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}
_CONVERSIONS: Final = {("f64", "f32"): "fptrunc", ("f32", "f64"): "fpext", ("i64", "i32"): "trunc"}
DECLARATIONS: Final = "\n".join(
    f"declare {LLVM_TYPES[kind]} @{name}.{kind}({LLVM_TYPES[kind]})" for name in _INTRINSICS.values() for kind in FLOATS
)
"""The declarations that a module with these functions needs."""


@dataclass(slots=True)
class _Body:
    """Straight-line code for the element number `index`; equal parts are computed once."""

    writer: _Writer
    index: str
    lines: list[str] = field(default_factory=list)
    known: dict[Value, str] = field(default_factory=dict)

    def line(self, text: str) -> str:
        name = f"%{self.writer.fresh()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def value(self, value: Value) -> str:
        if value not in self.known:
            self.known[value] = self._computed(value)
        return self.known[value]

    def _computed(self, value: Value) -> str:
        match value:
            case Literal():
                return literal_text(value)
            case Number(name):
                return self.writer.numbers.get(name, f"%{symbol(name)}")
            case Element(name, kind):
                at = self.line(f"getelementptr {_STORED[kind]}, ptr {self.writer.memory(name)}, i64 {self.index}")
                read = self.line(f"load {_STORED[kind]}, ptr {at}")
                return self.line(f"icmp ne i8 {read}, 0") if kind == "i1" else read
        operands = [self.value(each) for each in value.operands]
        return self._applied(value.function, value.operands[-1].kind, value.kind, operands)

    def _applied(self, function: str, kind: str, result: str, operands: list[str]) -> str:
        """A function of operands of one kind (of the last two, for `where`)."""
        type, is_float = LLVM_TYPES[kind], kind in FLOATS
        first, last = operands[0], operands[-1]
        arithmetic = _FLOAT_ARITHMETIC if is_float else _WHOLE_ARITHMETIC
        if function in arithmetic:
            return self.line(f"{arithmetic[function]} {type} {first}, {last}")
        if function in _FLOAT_RELATIONS:
            return self._compared(function, kind, first, last)
        if function in _INTRINSICS:
            return self.line(f"call {type} @{_INTRINSICS[function]}.{_SUFFIX[kind]}({type} {first})")
        if function in _LOGIC:
            truths = [self._compared("ne", kind, each, _zero(kind)) for each in operands]
            return self.line(f"{_LOGIC[function]} i1 {truths[0]}, {truths[1]}")
        if function in LIBRARY:
            given = ", ".join(f"{type} {each}" for each in operands)
            return self.line(f"call {type} @one.{function}.{kind}({given})")
        match function:
            case "where":
                return self.line(f"select i1 {first}, {type} {operands[1]}, {type} {last}")
            case "convert":
                return self.line(f"{_CONVERSIONS[kind, result]} {type} {first} to {LLVM_TYPES[result]}")
            case "widen":
                return self._widened(kind, first)
            case "narrow":
                return self._narrowed(result, first)
            case "neg":
                return self.line(f"fneg {type} {first}" if is_float else f"sub {type} 0, {first}")
            case "logical_not":
                return self._compared("eq", kind, first, _zero(kind))
            case "isnan":
                return self.line(f"fcmp uno {type} {first}, {first}")
            case "isinf" | "isfinite":
                size = self._applied("abs", kind, kind, operands)
                relation = "oeq" if function == "isinf" else "one"
                return self.line(f"fcmp {relation} {type} {size}, {literal_text(Literal(float('inf'), kind))}")
            case "maximum" | "minimum":
                return self._extreme("gt" if function == "maximum" else "lt", kind, first, last)
            case "sign":
                return self._sign(kind, first)
        raise Unsupported(f"{function} of {kind}")

    def _compared(self, relation: str, kind: str, a: str, b: str) -> str:
        code, names = ("fcmp", _FLOAT_RELATIONS) if kind in FLOATS else ("icmp", _WHOLE_RELATIONS)
        return self.line(f"{code} {names[relation]} {LLVM_TYPES[kind]} {a}, {b}")

    def _extreme(self, relation: str, kind: str, a: str, b: str) -> str:
        """The greater or smaller one, the second of equal ones; NaN if either is."""
        type, is_first = LLVM_TYPES[kind], self._compared(relation, kind, a, b)
        if kind in FLOATS:
            is_first = self.line(f"or i1 {is_first}, {self.line(f'fcmp uno {type} {a}, {a}')}")
        return self.line(f"select i1 {is_first}, {type} {a}, {type} {b}")

    def _widened(self, kind: str, x: str) -> str:
        """A half in single precision."""
        if kind == "f16":
            return self.line(f"fpext half {self.line(f'bitcast i16 {x} to half')} to float")
        wide = self.line(f"zext i16 {x} to i32")
        return self.line(f"bitcast i32 {self.line(f'shl i32 {wide}, 16')} to float")

    def _narrowed(self, kind: str, x: str) -> str:
        """Rounded to a half, of two to the even one."""
        if kind == "f16":
            return self.line(f"bitcast half {self.line(f'fptrunc float {x} to half')} to i16")
        bits = self.line(f"bitcast float {x} to i32")
        above = self.line(f"lshr i32 {bits}, 16")
        more = self.line(f"add i32 {self.line(f'and i32 {above}, 1')}, 32767")
        kept = self.line(f"lshr i32 {self.line(f'add i32 {bits}, {more}')}, 16")
        quiet = self.line(f"or i32 {self.line(f'and i32 {above}, 32768')}, 32704")
        is_nan = self.line(f"fcmp uno float {x}, {x}")
        return self.line(f"trunc i32 {self.line(f'select i1 {is_nan}, i32 {quiet}, i32 {kept}')} to i16")

    def _sign(self, kind: str, x: str) -> str:
        type, zero = LLVM_TYPES[kind], _zero(kind)
        one, less = (literal_text(Literal(each, kind)) for each in (1, -1))
        is_above, is_below = self._compared("gt", kind, x, zero), self._compared("lt", kind, x, zero)
        lower = self.line(f"select i1 {is_below}, {type} {less}, {type} {zero}")
        return self.line(f"select i1 {is_above}, {type} {one}, {type} {lower}")


def _zero(kind: str) -> str:
    return literal_text(Literal(0, kind))


def literal_text(literal: Literal) -> str:
    """A number as LLVM spells one of that kind: floats by their bits, those of float32 as the double of that value."""
    if literal.kind in FLOATS:
        with np.errstate(over="ignore"):
            value = float(np.float32(literal.value)) if literal.kind == "f32" else float(literal.value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    bits = 64 if literal.kind == "i64" else 32 if literal.kind == "i32" else 1
    wrapped = int(literal.value) & ((1 << bits) - 1)
    return str(wrapped - (1 << bits) if bits > 1 and wrapped >> (bits - 1) else wrapped)
