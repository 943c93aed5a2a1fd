"""Functions along a dimension: sums, extremes, softmaxes, norms and what turns it round, as kernel IR.

In: operators of the table that groups lower by a handler of their own.  Out: the forms of their calls, and the
functions that serve them, `i64 FUNCTION(i64 *words)`: the sizes before, along and after the dimension, numbers, and the
addresses of tensors, last that of the result (`words.NUMBERS_AT`, `PLACES_AT`).  All tensors are contiguous.

The kernel is the one that a group of this operator alone has (`groups.from_graph`), for one, two or three dimensions of
any sizes, of which the last, or the second, is gone along; a result of 0 says that it was done.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.scalar import is_tensor
from engine.aten.kernels.row_normalization import SHORT
from engine.aten.values.tensor import Tensor
from engine.fuser.groups.from_graph import NotFused, has_kernel, is_pointwise
from engine.fuser.groups.fusion_group import DTYPES
from engine.fuser.groups.reductions import REDUCTIONS
from engine.fuser.groups.scans import SCANS
from engine.fuser.ir.kernel import (
    Kernel,
    Let,
    Statement,
    apply,
    index,
)
from engine.fuser.library import complex_along
from engine.fuser.library.forms import Entry, Form, Given, fewest
from engine.fuser.library.functions import WORDS, alone, calling, guards, left_below, lies_in_order, tensor_at, word
from engine.fuser.library.moving import PAIRED
from engine.fuser.library.words import COMPLEX, NUMBERS_AT, OPERANDS, PLACES_AT
from engine.fuser.stubs.binding import Binding, NoneArgument, NumberArgument, Result, TensorArgument, size
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Value
from engine.lang.errors import EngineError
from engine.lang.records import dataclass
from engine.lang.schema import Argument
from engine.lang.types import BOOL, FLOAT, INT, NUMBER, ListType, OptionalType, unwrap_optional

_SIZES: Final = (5, 67, 35)
"""Sizes of examples, which are no one's."""
_SHAPES: Final = {"ROWS": _SIZES[1:2], "PLANES": _SIZES[:2], "SOLIDS": _SIZES}
"""Shapes of examples by what descriptors call the functions for such."""


@dataclass(frozen=True, slots=True)
class AlongCall:
    """A call of an operator whose arguments are these, along one dimension."""

    op: Op
    given: tuple[Given, ...]

    @property
    def fixed_axis(self) -> int:
        """The dimension that operators of channels go along; -1 for all others."""
        return 1 if self.op.schema.index_of("running_mean") is not None else -1

    @property
    def is_last(self) -> bool:
        """True if it is the last dimensions that are gone along."""
        return any(each.kind == "LASTSIZES" for each in self.given)

    @property
    def shapes(self) -> tuple[str, ...]:
        """The numbers of dimensions that there are functions for."""
        if self.fixed_axis >= 0:
            return ("PLANES", "SOLIDS")
        if not any(each.kind in ("AXIS", "AXES", "LASTSIZES") for each in self.given):
            return ("ROWS",)
        return ("PLANES",) if self.is_last else ("PLANES", "SOLIDS")


def along_of(op: Op, types: Sequence[str]) -> tuple[list[Form], dict[str, Kernel]]:
    """The forms of an operator for tensors of these types, and its functions by their symbols."""
    forms, kernels = list[Form](), dict[str, Kernel]()
    for call in _calls(op):
        entries = dict[str, Entry]()
        is_reduced: Sequence[bool] = (False,)
        # of what has several results there are functions for the type that programs have most
        served = [type for type in types if type == "f32" or len(op.schema.returns) == 1]
        for type, shape in itertools.product(served, call.shapes):
            found = _function(call, type, shape)
            if found is not None:
                symbol, result, is_reduced = found.name, found.result, found.is_reduced
                kernels[symbol] = found.kernel
                entries[f"{shape} {type}"] = Entry(symbol, result, found.work)
        if entries:
            least = fewest(op, call.given)
            try:
                may_copy = lies_in_order(op, _samples(call))
            except EngineError:  # its tensors have to fit otherwise than along one dimension
                continue
            form = Form(call.given, least, (), entries, "serve_along", call.fixed_axis, is_reduced, may_copy=may_copy)
            forms.append(form)
    return forms, kernels


# ------------------------------------------------------------------ calls


def _calls(op: Op) -> Iterator[AlongCall]:
    """The calls of an operator that may have functions."""
    is_along = op.functional is None and (op.name in _NAMES or _is_along(op))
    if not is_along or is_pointwise(op) or not has_kernel(op):
        return
    first = next(a.name for a in op.schema.arguments if is_tensor(a))
    choices = [[*_choices(op, a, a.name == first)] for a in op.schema.arguments]
    for argument, of in zip(op.schema.arguments, choices, strict=True):
        if op.checks_numbers or argument.name in _ORDERS:  # functions are then for numbers that are known
            of[:] = [each for each in of if each.kind != "REALS"]
    for given in itertools.product(*choices):
        if sum(each.kind in ("WHOLES", "VECTORS") for each in given) < OPERANDS:
            yield AlongCall(op, given)


def _choices(op: Op, argument: Argument, is_first: bool) -> Iterator[Given]:
    """The kinds of values that an argument may have."""
    name, type = argument.name, unwrap_optional(argument.type)
    if is_tensor(argument):
        yield Given("WHOLES" if is_first or name == "target" else "VECTORS")
    elif name in ("dim", "dims") and type in (INT, ListType(INT)):
        yield Given("AXES" if isinstance(type, ListType) else "AXIS")
    elif name == "normalized_shape":
        yield Given("LASTSIZES")
    elif name == "keepdim":
        yield Given("KEEPS")
    elif type is BOOL:
        yield from (Given("SAME", flag) for flag in (False, True))
    elif name == "reduction":
        yield from (Given("SAME", way) for way in (1, 2, 0))
    elif type in (FLOAT, NUMBER):
        yield Given("REALS")
        if isinstance(argument.default, (int, float)):
            yield Given("EQUAL", argument.default)
    elif argument.has_default and not isinstance(argument.default, list):
        yield Given("SAME", argument.default)
        return
    if isinstance(argument.type, OptionalType):
        yield Given("SAME", None)


# ------------------------------------------------------------------ functions


@dataclass(frozen=True, slots=True)
class _Found:
    """A function: `is_reduced` for each of its results, which have one type, that is without the dimension."""

    name: str
    result: str
    is_reduced: Sequence[bool]
    work: int
    kernel: Kernel


def _function(call: AlongCall, type: str, shape: str) -> _Found | None:
    """The function of a call for tensors of a type and number of dimensions; None where there is none."""
    if type in COMPLEX:
        return _of_complex(call, type)
    try:
        found = _lowered(call, type, _SHAPES[shape])
    except (NotFused, EngineError, TypeError, ValueError, ArithmeticError, KeyError):
        return None
    results = [each for each in found.results if isinstance(each, Result)]
    is_reduced = [reduced for each in results if (reduced := _is_reduced(each, len(_SHAPES[shape]))) is not None]
    if len(is_reduced) < len(found.results):
        return None
    kernel = _wrapped(call.op, found, _SHAPES[shape])
    return _Found(kernel.name, results[0].type, is_reduced, _WORK, kernel)


def _of_complex(call: AlongCall, type: str) -> _Found | None:
    """The function for complex elements, which is one for any dimensions."""
    if call.op.name not in complex_along.WAYS:
        return None
    kernel = complex_along.function(complex_along.WAYS[call.op.name], type)
    return _Found(kernel.name, type, [True], _WORK, kernel)


def _is_reduced(result: Result, rank: int) -> bool | None:
    """True for a result without the dimension, None for one that is not contiguous or has other dimensions."""
    if result.shape is None or result.order is not None:
        return None
    if len(result.shape) == rank:
        return result.shape[-1] == index(1)
    return True if len(result.shape) == rank - 1 else None


_WORK: Final = 512
"""Nanoseconds for 1024 elements, roughly."""


def _lowered(call: AlongCall, type: str, shape: Sequence[int]) -> Binding:
    """The kernel of a graph of the operator alone."""
    graph, examples = Graph(), list[Any]()
    along = 0 if len(shape) == 1 else 1
    inputs = list[Value]()
    whole: Value | None = None
    for argument, given in zip(call.op.schema.arguments, call.given, strict=True):
        match given.kind:
            case "WHOLES" | "VECTORS":
                sizes = tuple(shape) if given.kind == "WHOLES" else (shape[along],)
                examples.append(Tensor(np.ones(sizes, DTYPES[type])))
                inputs.append(graph.add_input(argument.name, argument.type))
                whole = whole if whole is not None else inputs[-1]
            case "REALS":
                examples.append(0.75)
                inputs.append(graph.add_input(argument.name, FLOAT))
            case "AXIS" | "AXES":
                is_list = isinstance(unwrap_optional(argument.type), ListType)
                inputs.append(insert_constant(graph, [along] if is_list else along))
            case "LASTSIZES":
                assert whole is not None
                extent = graph.append("aten::size", [whole, insert_constant(graph, along)], [INT])
                inputs.append(graph.append("prim::ListConstruct", [extent.output], [ListType(INT)]).output)
            case "KEEPS":
                inputs.append(insert_constant(graph, False))
            case _:
                inputs.append(insert_constant(graph, given.value))
    return alone(call.op, graph, inputs, examples)


def _samples(call: AlongCall) -> list[Any]:
    """Arguments of the call, of four dimensions, or of two where it goes along the last ones."""
    return [
        _sample(call, argument, given) for argument, given in zip(call.op.schema.arguments, call.given, strict=True)
    ]


def _sample(call: AlongCall, argument: Argument, given: Given) -> Any:
    shape = _SIZES[:2] if call.is_last else (*_SIZES, 2)
    match given.kind:
        case "WHOLES":
            return Tensor(np.ones(shape, np.float32))
        case "VECTORS":
            is_along = any(each.kind in ("AXIS", "AXES", "LASTSIZES") for each in call.given) or call.fixed_axis >= 0
            return Tensor(np.ones(shape[1:2] if is_along else shape, np.float32))
        case "REALS":
            return 0.75
        case "AXIS" | "AXES":
            return [1] if isinstance(unwrap_optional(argument.type), ListType) else 1
        case "LASTSIZES":
            return [*shape[1:]]
        case "KEEPS":
            return False
    return given.value


def _wrapped(op: Op, found: Binding, shape: Sequence[int]) -> Kernel:
    """A function of words that calls the kernel."""
    along = 0 if len(shape) == 1 else 1
    names, places, numbers = list[Statement](), list[Statement](), 0
    tensors = 0
    for argument in found.arguments:
        if isinstance(argument, NumberArgument):
            bits = word(NUMBERS_AT + numbers)
            names.append(Let(argument.name, apply("bits_to_f64", bits) if argument.type == "f64" else bits))
            numbers += 1
        elif isinstance(argument, TensorArgument):
            which = range(len(shape)) if argument.rank == len(shape) else (along,)
            for d, at in enumerate(which):
                # of one dimension the size is the second word, as of those that are gone along
                names.append(Let(size(argument.name, d).name, word(at if len(shape) > 1 else 1)))
            places.append(tensor_at(argument.name, argument.type, PLACES_AT + tensors))
            tensors += 1
        else:
            assert isinstance(argument, NoneArgument)
    for r, result in enumerate(found.results):
        assert isinstance(result, Result)
        places.append(tensor_at(result.name, result.type, PLACES_AT + tensors + r))
    guarded = [*guards(found), *left_below(SHORTEST.get(op.name, 0), word(1))]
    return calling(found.kernel, "along", ["words_"], (WORDS, *names, *guarded, *places))


_ORDERS: Final = frozenset({"p", "ord"})
"""Orders of norms: the roots of unusual ones multiply errors."""
SHORTEST: Final[Mapping[str, int]] = {"aten::native_layer_norm": SHORT}
"""Elements along the dimension from which on there is a function: the definition sums shorter rows in another order,
as PyTorch does, and a gradient that cancels tells."""
_NAMES: Final = frozenset({*REDUCTIONS, *SCANS, "aten::flip"})


def _is_along(op: Op) -> bool:
    """True for what is made of others and goes along a dimension, or along all.  Gradients are of what did, pairs of
    results come of two functions, and classes are a dimension that no argument names."""
    names = {each.name for each in op.schema.arguments}
    is_along = not names.isdisjoint({"dim", "normalized_shape", "running_mean", "reduction"})
    is_other = not names.isdisjoint({"grad", "ignore_index"}) or op.name in _PAIRED | _LIES_OTHERWISE
    return op.composite is not None and is_along and not is_other


_LIES_OTHERWISE: Final = frozenset({"aten::poisson_nll_loss"})
"""Losses that keep strides of operands where a size is 1."""
_PAIRED: Final = frozenset(name.partition(".")[0] for name in PAIRED)
