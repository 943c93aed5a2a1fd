"""Which forms of an operator native code has, and which methods of tensors run them.

In: a `Watched` operator, kinds of element.  Out: its `Form` with a typed expression for each of the
kinds that the Python function computes in themselves; `Method`s over such forms.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Final

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.scalar import is_tensor
from engine.aten.python import binding
from engine.aten.values.tensor import Tensor
from engine.fuser import machine
from engine.fuser.entries import samples
from engine.fuser.entries.entry import Form, Method, Try, Work
from engine.fuser.entries.joining import JOINING, Joining
from engine.fuser.entries.making import MAKING, Making
from engine.fuser.entries.pointwise import REAL, Parameter, Pointwise, library_calls
from engine.fuser.entries.process import layout, row_function
from engine.fuser.entries.products import PRODUCTS, Product
from engine.fuser.entries.row_entry import Rows
from engine.fuser.entries.row_table import ROWS
from engine.fuser.expression import HALVES, KINDS, Unsupported, Value, typed
from engine.lang.schema import Argument
from engine.lang.types import NUMBER, OptionalType, TensorType


@dataclass(eq=False, slots=True)
class Watched:
    """An operator whose calls are counted, or done by native code."""

    op: Op
    plain: Callable[..., Any]
    """The operator in Python."""
    body: Callable[..., Any]
    """The same without a look at the hooks."""
    patience: int
    """After so many calls that native code leaves to Python one is looked at."""
    note: Callable[[Watched, tuple[Any, ...]], bool]
    """Asks for native code for a call with such arguments."""
    kinds: set[str] = field(default_factory=set)
    """The kinds of element that calls have brought up."""
    native: Callable[..., Any] | None = None
    """The native entry without a look at the hooks."""

    def noting(self, *args: Any) -> Any:
        """The operator in Python, after a look at the arguments."""
        self.note(self, args)
        return self.plain(*args)


# ------------------------------------------------------------------ which operators

_LIMITS: Final = {"min": "least", "max": "most"}
_MASKS: Final = frozenset({"condition", "mask"})
_FIXED: Final = {"approximate": sys.intern("none")}
"""Arguments that have to be this text where the operator has its expression from here."""
EXPRESSIONS: Final[dict[str, str]] = {
    "aten::clamp": "minimum(maximum(self, min), max)", "aten::clamp_min": "maximum(self, min)",
    "aten::clamp_max": "minimum(self, max)", "aten::abs": "abs(self)",
    "aten::where.self": "where(condition, self, other)", "aten::where.ScalarOther": "where(condition, self, other)",
    "aten::where.ScalarSelf": "where(condition, self, other)", "aten::masked_fill.Scalar": "where(mask, value, self)",
    "aten::gelu": "(erf(self * 0.7071067811865476) + 1) * self * 0.5",
    **{f"aten::__{name}__.Tensor": f"bitwise_{name}(self, other)" for name in ("and", "or", "xor")},
    **{f"aten::__{name}__.Scalar": f"bitwise_{name}(self, other)" for name in ("and", "or", "xor")},
}  # fmt: skip
"""Operators whose kernels do, for the kinds of element that native code has, what an expression says."""


WORKS: Final[dict[str, Rows | Joining | Making | Product]] = {**ROWS, **JOINING, **MAKING, **PRODUCTS}
"""Forms of other operators, by qualified name."""


def has_form(op: Op) -> bool:
    """True if there can be native code for the operator."""
    return is_pointwise(op) or op.qualified_name in WORKS


def is_pointwise(op: Op) -> bool:
    """True if the operator has a scalar expression, does not write to `out`, and takes any numbers."""
    source = op.functional or op
    if _expression(source) is None or any(a.is_write and a.kwarg_only for a in op.schema.arguments):
        return False
    checked = op.check is not None or source.check is not None
    return not checked or source.name in _CHECK_DTYPES


_CHECK_DTYPES: Final = frozenset(f"aten::{name}" for name in "sub subtract rsub neg negative addcdiv".split())
"""Operators that refuse some arguments, but for their dtypes, not for the values of numbers."""


def _expression(op: Op) -> str | None:
    return op.scalar if op.scalar is not None else EXPRESSIONS.get(op.qualified_name)


def form_of(watched: Watched, kinds: Collection[str]) -> Form | None:
    """The native form of an overload, or None."""
    op = watched.op
    known = WORKS.get(op.qualified_name)
    work: Work = _pointwise(watched, kinds) if known is None else _for_kinds(known, kinds)
    if not work.kinds:
        return None
    count = len(op.schema.arguments)
    return Form(op.qualified_name, count, work, watched.plain, watched.noting, watched.patience, watched.body)


def kind_taken(op: Op, args: Sequence[Any]) -> str | None:
    """The kind of element for which an entry does the work for such arguments; None where Python has to."""
    known = WORKS.get(op.qualified_name)
    return Pointwise((), {}, in_place=False).takes(args) if known is None else known.takes(args)


def kind_of_call(op: Op, args: Sequence[Any]) -> str | None:
    """The kind of element that a call is about, if native code may know it."""
    if op.qualified_name in MAKING:
        return "f32"  # of all kinds together
    tensors = next((a for a in args if isinstance(a, list)), ()) if op.qualified_name in JOINING else args
    kinds = [samples.kind_of(a.array) for a in tensors if isinstance(a, Tensor)]
    if op.qualified_name in EXPRESSIONS:  # masks do not count
        kinds = [kind for kind in kinds if kind != "i1"] or kinds
    return kinds[0] if kinds else None


def rows_given(op: Op) -> int | None:
    """The place of the argument whose rows the operator goes over, if it does."""
    rows = ROWS.get(op.qualified_name)
    return None if rows is None else rows.roles.index("x")


def _for_kinds(work: Rows | Joining | Making | Product, kinds: Collection[str]) -> Work:
    if isinstance(work, Product) and not layout().products:
        return dataclasses.replace(work, kinds=())
    there = work.kinds if machine.converts_halves() else tuple(kind for kind in work.kinds if kind != "f16")
    return dataclasses.replace(work, kinds=tuple(kind for kind in there if kind in kinds))


def _pointwise(watched: Watched, kinds: Collection[str]) -> Pointwise:
    op = watched.op
    source = op.functional or op
    text = _expression(source)
    assert text is not None
    parameters = tuple(Parameter(a.name, _role(a), _objects(a)) for a in op.schema.arguments)
    work = Pointwise(parameters, {}, op is not source)
    values = {kind: _value(text, work, kind, watched.body) for kind in _kinds(source) if kind in kinds}
    return dataclasses.replace(work, bodies={kind: value for kind, value in values.items() if value is not None})


def _objects(argument: Argument) -> tuple[object, ...]:
    """A fixed argument: the text as programs write it, and the default."""
    return (_FIXED[argument.name], argument.default) if argument.name in _FIXED else ()


def _role(argument: Argument) -> str:
    if argument.name in _MASKS:
        return "mask"
    if argument.name in _FIXED:
        return "fixed"
    if is_tensor(argument):
        return "tensor" if isinstance(argument.type, TensorType) else "ignored"
    if isinstance(argument.type, OptionalType) and argument.type.element == NUMBER:
        return _LIMITS.get(argument.name, "ignored")
    return "number" if argument.type == NUMBER else "ignored"


def _kinds(op: Op) -> Sequence[str]:
    """The kinds of element that the operator may compute in themselves."""
    rule = str(op.dtype or "promote").partition(":")[0].strip()
    return REAL if rule == "float" else (*KINDS, *HALVES)


def _value(text: str, work: Pointwise, kind: str, body: Any) -> Value | None:
    tensors, numbers = ([work.parameters[i].name for i in places] for places in (work.tensors, work.numbers))
    if kind == "f16" and not machine.converts_halves():
        return None
    try:
        value = typed(text, tensors, numbers, kind, work.masks)
        for function, row_kind in library_calls(value):
            row_function(function, row_kind)
    except Unsupported:
        return None
    is_fit = not work.in_place or value.kind == kind
    whole = dataclasses.replace(work, bodies={kind: value})
    return value if is_fit and samples.expected_kind(whole, kind, body) == value.kind else None


# ------------------------------------------------------------------ methods

_OPERATORS: Final[dict[str, tuple[str, ...]]] = {
    "add": ("__add__", "__radd__"), "sub": ("__sub__",), "rsub": ("__rsub__",), "mul": ("__mul__", "__rmul__"),
    "div": ("__truediv__",), "floor_divide": ("__floordiv__",), "remainder": ("__mod__",),
    "eq": ("__eq__",), "ne": ("__ne__",), "lt": ("__lt__",), "le": ("__le__",), "gt": ("__gt__",), "ge": ("__ge__",),
    "neg": ("__neg__",), "matmul": ("__matmul__",), "add_": ("__iadd__",), "sub_": ("__isub__",),
    "mul_": ("__imul__",), "div_": ("__itruediv__",),
}  # fmt: skip
"""Python's operators that are nothing but an operator of the table."""


def methods_of(name: str, ops: Sequence[Op], forms: Sequence[Form]) -> Iterator[Method]:
    """The methods of tensors that run these forms."""
    short = name.removeprefix("aten::")
    if not name.startswith("aten::"):
        return
    pairs = list(zip(ops, forms, strict=True))
    named = [pair for pair in pairs if "method" in pair[0].variants]
    for method, runs in ((short, named), *((special, pairs) for special in _OPERATORS.get(short, ()))):
        if runs and (found := _method(method, runs)) is not None:
            yield found


def _method(name: str, runs: Sequence[tuple[Op, Form]]) -> Method | None:
    """None where somebody has put another kind of thing there."""
    present = binding.member(name)
    if not isinstance(present, FunctionType):
        return None
    single = [(op.schema.arguments, form) for op, form in runs if len(op.schema.returns) == 1]
    most = max((sum(not a.kwarg_only for a in arguments) for arguments, _ in single), default=0)
    tries = [(given, tuple(_tries(single, given))) for given in range(most)]
    tries = [each for each in tries if each[1]]
    return Method(name, tuple(tries), present) if tries else None


def _tries(runs: Sequence[tuple[Sequence[Argument], Form]], given: int) -> Iterator[Try]:
    """The forms that take so many arguments after the tensor, with the defaults of the others."""
    for arguments, form in runs:
        rest = arguments[given + 1 :]
        if given < sum(not a.kwarg_only for a in arguments) and all(a.has_default for a in rest):
            yield Try(form, tuple(a.default for a in rest))
