"""Kernel IR: loops over typed, strided buffers, which every compiled computation goes through.

In: what a front door builds (`from_expression`, `from_loop`, `from_graph`, `from_scalar`).  Out: a `Kernel`, which
prints and parses (`kernel_text`), is verified (`kernel_verifier`), and becomes machine code (`to_llvm`) or Python,
which defines what it does (`to_numpy`).

    def chain(n: i64, x: f32[n], y: f32[n], out: Out[f32[n]]):
        for i in parallel(n):
            a = x[i] + y[i]
            out[i] = tanh(a) * a

Note [Vectors]
Where a loop's speed depends on which values stay in registers, it says so: `f32x8` is eight values of f32 in one
register.  They are the values of names and variables only; buffers hold elements, and `x[i:8]` is a load, or a store,
of the eight that follow one another from the i-th on.  `f32x8(a)` is a number in all places.

Note [Kernel IR]
Expressions have no effects and cannot fail; their types are explicit, and only `convert` changes them.  A name stands
for one value (`Let`, a loop's index, a parameter) or is declared as a variable (`Declare`), which `Assign` and
`Accumulate` write.  Indices are i64 and lie within the buffer's shape.  Buffers that are written share no memory with
other buffers.  Elements of `f16` and `bf16` are loaded, converted, selected and stored, never computed with.  A kernel
returns an i64: 0, or the code of what went wrong.  Arithmetic on whole numbers wraps; `quotient` and `rest` truncate,
and their divisor is neither zero nor, with the least number, -1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import inf
from typing import Final, Literal

from engine.lang.records import dataclass

FLOATS: Final = ("f32", "f64")
HALVES: Final = ("f16", "bf16")
"""Types of elements that are computed with in f32."""
WHOLE: Final = ("i64", "i32", "i16", "i8", "u8")
BOOL: Final = "bool"
TYPES: Final = (*FLOATS, *HALVES, *WHOLE, BOOL)
POINTER: Final = "ptr"
"""The type of `Address`, which only calls take."""
VECTORS: Final = {
    f"{type}x{lanes}": (type, lanes) for type, sizes in (("f32", (4, 8, 16)), ("f64", (2, 4, 8))) for lanes in sizes
}
"""Types of several values in one register -> the type of each, and how many.  See Note [Vectors]."""
SIZES: Final = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "u8": 1, "bool": 1}
"""The size of an element, in bytes."""


# ------------------------------------------------------------------ expressions


@dataclass(frozen=True, slots=True)
class Constant:
    """A number that is known; of the Python type that its type wants."""

    value: int | float | bool
    type: str


@dataclass(frozen=True, slots=True)
class Name:
    """The value of a scalar parameter, a let, a variable or a loop's index."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Load:
    """An element of a buffer, or, of the type of a vector, those that follow one another from there on."""

    buffer: str
    indices: tuple[Expression, ...]
    type: str


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of numbers (see `FUNCTIONS`)."""

    function: str
    operands: tuple[Expression, ...]
    type: str


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an element, as an operand of `Call`."""

    buffer: str
    indices: tuple[Expression, ...]
    type: str = POINTER


Expression = Constant | Name | Load | Apply | Address

# ------------------------------------------------------------------ functions


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """`operands`: how many; `types`: of its operands, which are alike; `result`: "" for the type of its operands.

    `select` takes a condition before two alike operands; `convert` takes any type to any.
    """

    operands: int
    types: tuple[str, ...]
    result: str = ""


_NUMBERS: Final = (*FLOATS, *WHOLE)
_BITS: Final = (*WHOLE, BOOL)
_REAL: Final = (*FLOATS, *VECTORS)
FUNCTIONS: Final[dict[str, FunctionRow]] = {
    **dict.fromkeys("add sub mul minimum maximum".split(), FunctionRow(2, (*_NUMBERS, *VECTORS))),
    **dict.fromkeys("neg abs".split(), FunctionRow(1, _NUMBERS)),
    **dict.fromkeys("eq ne".split(), FunctionRow(2, (*_NUMBERS, BOOL), BOOL)),
    **dict.fromkeys("lt le gt ge".split(), FunctionRow(2, _NUMBERS, BOOL)),
    "div": FunctionRow(2, FLOATS),
    **dict.fromkeys("fma muladd".split(), FunctionRow(3, _REAL)),
    **dict.fromkeys("zip_low zip_high".split(), FunctionRow(2, (*VECTORS,))),
    **dict.fromkeys("quotient rest shift_left shift_right shift_right_logical".split(), FunctionRow(2, WHOLE)),
    **dict.fromkeys("bitand bitor bitxor".split(), FunctionRow(2, _BITS)),
    "bitnot": FunctionRow(1, _BITS),
    **dict.fromkeys("floor ceil trunc round sqrt".split(), FunctionRow(1, FLOATS)),
    "copysign": FunctionRow(2, FLOATS),
    "select": FunctionRow(3, TYPES),
    "convert": FunctionRow(1, TYPES),
    "bits_to_f32": FunctionRow(1, ("i32",), "f32"),
    "bits_of_f32": FunctionRow(1, ("f32",), "i32"),
    "bits_to_f64": FunctionRow(1, ("i64",), "f64"),
    "bits_of_f64": FunctionRow(1, ("f64",), "i64"),
    # what `math` defines in terms of the others
    **dict.fromkeys(
        "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf "
        "erfc lgamma".split(),
        FunctionRow(1, FLOATS),
    ),
    **dict.fromkeys("pow atan2 fmod".split(), FunctionRow(2, FLOATS)),
    **dict.fromkeys("floordiv mod".split(), FunctionRow(2, _NUMBERS)),
}
"""The functions of numbers.

`minimum` and `maximum` of floats give NaN if either operand is NaN.  `round` rounds half to even.  `convert` of a float
to whole numbers truncates, and gives 0 for NaN and the nearest end of the range for what is out of it; of whole
numbers to others it wraps; to `bool` it is `ne 0`; from and to halves it goes through f32.  `shift_*` take amounts from
0 to the number of bits less one.  `floordiv` and `mod` round down, as Python's; of whole numbers the divisor is not
zero, of floats x / 0 is what division gives.  `fma` is a * b + c rounded once, `muladd` as the processor does it in
fewest steps, rounded once or twice.  `zip_low` and `zip_high` take elements of two vectors by turns, from the first
halves and from the second.  Which of two zeros is the least, and the sign of a NaN, are not said.
`numeric_functions` has them in Python.
"""
ACCUMULATORS: Final = ("add", "mul", "minimum", "maximum", "bitand", "bitor")


# ------------------------------------------------------------------ statements


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """`line`: where it begins in the text of its kernel (`kernel_text.numbered`), from 1; 0 where nobody asked.

    What differs in lines only is the same.
    """

    line: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Let(Placed):
    """name = value, for the rest of the block."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Declare(Placed):
    """A variable and its first value, for the rest of the block."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Assign(Placed):
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Accumulate(Placed):
    """name = function(name, value) for one of `ACCUMULATORS`, where partial results may be combined in any order."""

    name: str
    function: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Store(Placed):
    buffer: str
    indices: tuple[Expression, ...]
    value: Expression


LoopKind = Literal["range", "vector", "parallel"]


@dataclass(frozen=True, slots=True)
class For(Placed):
    """The body for index = start, start + step, … < stop (> stop where the constant step is negative).

    "vector": iterations are independent but for `Accumulate`.  "parallel": that, and they may run in several threads;
    the body writes no variable from outside, and there is none of `Break`, `Return` and "parallel" in it; `step` is 1.
    """

    index: str
    start: Expression
    stop: Expression
    body: tuple[Statement, ...]
    step: Expression = Constant(1, "i64")
    kind: LoopKind = "range"


@dataclass(frozen=True, slots=True)
class While(Placed):
    """The body as long as the condition, computed anew each time, holds."""

    condition: Expression
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If(Placed):
    condition: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Break(Placed):
    """Leave the innermost loop."""


@dataclass(frozen=True, slots=True)
class Continue(Placed):
    """Begin the next iteration of the innermost loop."""


@dataclass(frozen=True, slots=True)
class Return(Placed):
    value: Expression


@dataclass(frozen=True, slots=True)
class Allocate(Placed):
    """A contiguous buffer of undefined elements, for the rest of the block; its extents are not negative."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class View(Placed):
    """A buffer of unknown extent at an address, which is an i64, for the rest of the block.

    Views may share memory with one another, but not with other buffers.
    """

    buffer: Buffer
    address: Expression


@dataclass(frozen=True, slots=True)
class Call(Placed):
    """name = a function of these operands, or just its effect if there is no name.

    The function is one of the kernel's helpers, which gives an i64, or external (see `externals`).
    """

    function: str
    operands: tuple[Expression, ...]
    name: str = ""
    type: str = ""


Statement = (
    Let | Declare | Assign | Accumulate | Store | For | While | If | Break | Continue | Return | Allocate | View | Call
)

# ------------------------------------------------------------------ kernels


@dataclass(frozen=True, slots=True)
class Scalar:
    """A parameter that is a number."""

    name: str
    type: str


Access = Literal["in", "out", "inout"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A parameter that is the address of elements, or an allocated buffer.

    `shape` and `strides` (in elements) are i64 expressions over scalar parameters; no strides: contiguous; no shape:
    one index into memory of unknown extent.
    """

    name: str
    type: str
    shape: tuple[Expression, ...] | None
    strides: tuple[Expression, ...] | None = None
    access: Access = "in"

    @property
    def rank(self) -> int:
        return 1 if self.shape is None else len(self.shape)


Parameter = Scalar | Buffer


@dataclass(frozen=True, slots=True)
class Kernel(Placed):
    """`any_order`: sums may be reassociated and products contracted everywhere, not only in `Accumulate`.

    `helpers`: kernels that this one and its helpers call by their names; what they return may be any number.
    `is_separate`: a helper that works for long, and stays a function of its own; `is_rare`: likewise, as it is called
    seldom; `is_ahead`: likewise, and the library of operators has it under its name, which says what it does.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]
    any_order: bool = False
    helpers: tuple[Kernel, ...] = ()
    is_rare: bool = False
    is_separate: bool = False
    is_ahead: bool = False

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return tuple(each for each in self.parameters if isinstance(each, Buffer))

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return tuple(each for each in self.parameters if isinstance(each, Scalar))


@dataclass(frozen=True, slots=True)
class Function:
    """A function of numbers that is written in kernel IR, for kernels to apply: lets, and the result."""

    name: str
    parameters: tuple[Scalar, ...]
    body: tuple[Let, ...]
    result: Expression


# ------------------------------------------------------------------ building


def constant(value: float, type: str) -> Constant:
    """The number as that type holds it; whole numbers wrap."""
    if type in WHOLE:
        return Constant(wrapped(int(value), type), type)
    return Constant(bool(value) if type == BOOL else float(value), type)


def wrapped(value: int, type: str) -> int:
    """The whole number of that type which differs from this one by a multiple of two to the number of its bits."""
    count = 1 << 8 * SIZES[type]
    least = 0 if type == "u8" else -count // 2
    return (value - least) % count + least


def element_of(type: str) -> str:
    """The type of a vector's elements; of a number its own."""
    return VECTORS[type][0] if type in VECTORS else type


def lanes_of(type: str) -> int:
    """The number of elements of a value of this type."""
    return VECTORS[type][1] if type in VECTORS else 1


def least(type: str) -> float:
    """The least number of a type, but for bool."""
    if type in FLOATS:
        return -inf
    return 0 if type == "u8" else -(2 ** (8 * SIZES[type] - 1))


def most(type: str) -> float:
    """The greatest number of a type, but for bool."""
    if type in FLOATS:
        return inf
    return 255 if type == "u8" else -least(type) - 1


def index(value: int) -> Constant:
    return Constant(value, "i64")


def apply(function: str, *operands: Expression) -> Apply:
    """The function of these operands; raises KeyError for none of `FUNCTIONS`."""
    return Apply(function, operands, FUNCTIONS[function].result or operands[-1].type)


def convert(value: Expression, type: str) -> Expression:
    return value if value.type == type else Apply("convert", (value,), type)


def add(a: Expression, b: Expression) -> Expression:
    """a + b of whole numbers, simplified: what indices are made of."""
    match a, b:
        case Constant(value=x), Constant(value=y):
            return constant(x + y, a.type)
        case Constant(value=0), _:
            return b
        case _, Constant(value=0):
            return a
    return apply("add", a, b)


def multiply(a: Expression, b: Expression) -> Expression:
    """a * b of whole numbers, simplified."""
    match a, b:
        case Constant(value=x), Constant(value=y):
            return constant(x * y, a.type)
        case (Constant(value=0) as zero, _) | (_, Constant(value=0) as zero):
            return zero
        case Constant(value=1), _:
            return b
        case _, Constant(value=1):
            return a
    return apply("mul", a, b)


def allocate(name: str, type: str, *extents: Expression) -> Allocate:
    """The statement that makes a buffer of these extents."""
    return Allocate(Buffer(name, type, extents, access="inout"))


def product(extents: Sequence[Expression]) -> Expression:
    """The product of i64 expressions."""
    total: Expression = index(1)
    for extent in extents:
        total = multiply(total, extent)
    return total


def strides_of(buffer: Buffer) -> tuple[Expression, ...]:
    """The strides in elements, those of a contiguous buffer included."""
    if buffer.strides is not None:
        return buffer.strides
    if buffer.shape is None:
        return (index(1),)
    return tuple(product(buffer.shape[i + 1 :]) for i in range(len(buffer.shape)))


# ------------------------------------------------------------------ walking


def parts(of: Expression | Statement) -> tuple[Expression, ...]:
    """The expressions directly inside."""
    match of:
        case Apply(operands=found) | Call(operands=found) | Load(indices=found) | Address(indices=found):
            return found
        case Let(value=value) | Declare(value=value) | Assign(value=value) | Accumulate(value=value):
            return (value,)
        case View(address=value):
            return (value,)
        case Return(value=value) | While(condition=value) | If(condition=value):
            return (value,)
        case Store(indices=indices, value=value):
            return (*indices, value)
        case For(start=start, stop=stop, step=step):
            return (start, stop, step)
        case Allocate(buffer=buffer):
            return buffer.shape or ()
    return ()


def bodies(of: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The blocks directly inside."""
    match of:
        case For(body=body) | While(body=body):
            return (body,)
        case If(body=body, orelse=orelse):
            return (body, orelse)
    return ()


def calling(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    """The kernel, which calls helpers by these names for theirs."""

    def changed(body: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(map(statement, body))

    def statement(of: Statement) -> Statement:
        match of:
            case Call(function=function):
                return replace(of, function=names.get(function, function))
            case For() | While():
                return replace(of, body=changed(of.body))
            case If():
                return replace(of, body=changed(of.body), orelse=changed(of.orelse))
        return of

    return replace(kernel, body=changed(kernel.body)) if any(old != new for old, new in names.items()) else kernel


def told_apart(kernel: Kernel, known: dict[str, Kernel]) -> Kernel:
    """The kernel, whose helpers have names of their own unless they are the same as those of kernels before."""
    names = dict[str, str]()
    helpers = list[Kernel]()
    for helper in kernel.helpers:
        found = calling(helper, names)
        name, count = helper.name, 2
        while name in known and replace(known[name], name=found.name) != found:
            name, count = f"{helper.name}_{count}", count + 1
        names[helper.name] = name
        known[name] = replace(found, name=name)
        helpers.append(known[name])
    return replace(calling(kernel, names), helpers=tuple(helpers))


def all_statements(body: Sequence[Statement]) -> Iterator[Statement]:
    """Every statement, outer before inner."""
    for statement in body:
        yield statement
        for inner in bodies(statement):
            yield from all_statements(inner)


def all_expressions(of: Expression) -> Iterator[Expression]:
    """The expression and those inside, outer before inner."""
    yield of
    for part in parts(of):
        yield from all_expressions(part)


def rewritten(of: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with each part changed, innermost first."""
    match of:
        case Apply(function=function, operands=found, type=type):
            of = Apply(function, tuple([rewritten(each, change) for each in found]), type)
        case Load(buffer=buffer, indices=found, type=type):
            of = Load(buffer, tuple([rewritten(each, change) for each in found]), type)
        case Address(buffer=buffer, indices=found, type=type):
            of = Address(buffer, tuple([rewritten(each, change) for each in found]), type)
    return change(of)
