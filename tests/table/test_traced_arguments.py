"""Laws of traces over the operator table: a size of an argument is followed wherever an operator takes a number or a
list of them, or a warning tells that it is not; truth values are numbers, also in an archive."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.dispatch.calls import call
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor, tensor
from engine.frontend.tracing.position import TracerWarning
from engine.lang.errors import EngineError
from engine.lang.schema import Argument
from engine.lang.types import FLOAT, INT, NUMBER, ListType, OptionalType, TensorType, Type
from tests.table.gradient_samples import gradient_arguments_for
from tests.table.samples import copied

COUNTS = (2, 1, 3, 0, 4, 5, 6)
"""Sizes to try for a number, the usual ones first."""
FIXED = ("chunk", "split", "unbind", "hsplit", "vsplit", "dsplit")
"""Operators, by a part of their names, whose results a trace counts: another number of them is refused when it runs."""
OF_PROGRAMS = frozenset(
    "aten::tensor.float aten::tensor.int aten::as_tensor.float aten::as_tensor.int aten::norm.ScalarOpt_dim_dtype "
    "aten::norm.ScalarOpt_dtype".split()
)
"""Python calls functions of its own instead: makers of tensors warn, norms are others."""

Place = tuple[int, int | None]
"""The number of an argument, and of the element in it if it is a list; -1 for a number that stands for the list."""


@pytest.fixture(autouse=True)
def _off(without_machine_code: None) -> None:
    """What runs is the interpreter, so that a difference is the trace's."""


def is_of_tensors(op: Op) -> bool:
    types = [r.type.element if isinstance(r.type, ListType) else r.type for r in op.schema.returns]
    is_plain = op.functional is None and not (op.nondeterministic or op.schema.is_mutable)
    return is_plain and op.name.startswith("aten::") and any(isinstance(type, TensorType) for type in types)


OPERATORS = [op for op in table.entries() if is_of_tensors(op) and op.qualified_name not in OF_PROGRAMS]
PARTS = range(12)


def part_of(number: int) -> Any:
    return pytest.param(number, marks=pytest.mark.slow if number else ())


def sample(op: Op) -> list[Any] | None:
    try:
        return [copied(value) for value in gradient_arguments_for(op)]
    except (KeyError, TypeError):
        return None


def plain(argument: Argument) -> Type:
    return argument.type.element if isinstance(argument.type, OptionalType) else argument.type


def places(op: Op, base: Sequence[Any]) -> Iterator[Place]:
    for i, argument in enumerate(op.schema.arguments):
        type = plain(argument)
        if argument.declared.rstrip("?") in ("ScalarType", "Layout", "MemoryFormat"):
            continue
        if type in (NUMBER, FLOAT, INT):
            yield i, None
        if isinstance(type, ListType) and type.element in (INT, FLOAT):
            yield from ((i, place) for place in range(len(base[i] or [])))
            if argument.broadcast and not isinstance(argument.type, OptionalType):
                yield i, -1


def with_number(base: Sequence[Any], place: Place, number: Any, count: int | None = None) -> list[Any]:
    """The arguments with the number there; `count` times where it stands for a list that operators take."""
    made, (i, inside) = [*base], place
    if inside is None or inside == -1:
        made[i] = [number] * count if inside == -1 and count else number
    else:
        made[i] = [number if k == inside else each for k, each in enumerate(base[i])]
    return made


def flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from flat(each)
    else:
        yield value


def are_same(found: Any, wanted: Any) -> bool:
    pairs = [*flat(found)], [*flat(wanted)]
    return len(pairs[0]) == len(pairs[1]) and all(map(_is_same, *pairs))


def _is_same(a: Any, b: Any) -> bool:
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return bool(a == b)
    x, y = a.array, b.array
    return (x.dtype, x.shape) == (y.dtype, y.shape) and np.allclose(x, y, rtol=1e-4, atol=1e-5, equal_nan=True)


def result(op: Op, args: Sequence[Any]) -> Any:
    """What the operator gives; None where it refuses the arguments."""
    with np.errstate(all="ignore"):
        try:
            return op.compiled.run(*map(copied, args))
        except Exception:
            return None


def called(op: Op, args: Sequence[Any]) -> Any:
    """As a program calls it, by whichever overload that is."""
    pairs = [*zip(op.schema.arguments, args, strict=True)]
    made = call(
        op.name.removeprefix("aten::"), tuple(v for a, v in pairs if not a.kwarg_only),
        {a.name: v for a, v in pairs if a.kwarg_only},
    )  # fmt: skip
    return tuple(made) if isinstance(made, list) else made


def of_size(number: int) -> Tensor:
    return tensor(np.zeros(number, np.float32))


def traced(function: Callable[..., Any], *args: Tensor) -> tuple[Any, bool]:
    """The trace, and whether it warned that it may not hold."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = torch.jit.trace(function, args, check_trace=False)
    return made, any(issubclass(each.category, TracerWarning) for each in told)


def two_that_differ(op: Op, base: Sequence[Any], place: Place) -> tuple[int, int, Any] | None:
    """Two numbers that make a difference there, and the result of the second; None if there are none."""
    count = op.schema.arguments[place[0]].broadcast
    known = [(n, found) for n in COUNTS if (found := result(op, with_number(base, place, n, count))) is not None]
    pairs = ((a, b, wanted) for a, first in known for b, wanted in known if a != b and not are_same(first, wanted))
    return next(pairs, None)


def follows(op: Op, base: list[Any], place: Place) -> bool:
    """Check one number of one operator; false where nothing can be told."""
    found = two_that_differ(op, base, place)
    if found is None:
        return False
    first, other, wanted = found
    tensors = [value for value in base if isinstance(value, Tensor)]

    def program(sized: Tensor, *given: Tensor) -> Any:
        values = iter(given)
        args = [next(values) if isinstance(value, Tensor) else value for value in base]
        return called(op, with_number(args, place, sized.shape[0]))

    try:
        program(of_size(first), *tensors)
    except EngineError:  # Python has no such call
        return False
    made, warned = traced(program, of_size(first), *tensors)
    where = op.qualified_name, op.schema.arguments[place[0]].name, first, other
    try:
        result = made(of_size(other), *tensors)
    except EngineError:
        assert warned or any(part in op.name for part in FIXED), where
        return True
    assert warned or are_same(result, wanted), where
    return True


@pytest.mark.parametrize("part", [*map(part_of, PARTS)])
@pytest.mark.filterwarnings("ignore")
def test_sizes_are_followed_or_warned_of(part: int) -> None:
    tried = 0
    for op in OPERATORS[part :: len(PARTS)]:
        base = sample(op)
        for place in places(op, base) if base is not None else ():
            tried += follows(op, base or [], place)
    assert tried > 30


def truths(op: Op) -> Iterator[list[Any]]:
    """Calls in which a truth value is given for a number, of tensors of the dtypes that take one."""
    base = sample(op)
    numbers = [i for i, a in enumerate(op.schema.arguments) if plain(a) == NUMBER]
    for dtype in (np.float32, np.int64, np.bool_) if base is not None and numbers else ():
        given = [Tensor(v.array.astype(dtype)) if isinstance(v, Tensor) and v.array.dtype == np.float32 else v
                 for v in base or []]  # fmt: skip
        for i in numbers:
            yield from (with_number(given, (i, None), truth) for truth in (True, False))


def keeps(op: Op, args: list[Any]) -> bool:
    """Check a call with a truth value, traced, and traced, saved and loaded; false where it is refused anyway."""
    tensors = [value for value in args if isinstance(value, Tensor)]

    def program(first: Tensor, *given: Tensor) -> Any:
        values = iter(given)
        return called(op, [next(values) if isinstance(value, Tensor) else value for value in args])

    try:
        wanted = program(of_size(1), *tensors)
    except EngineError:
        return False
    if wanted is None:
        return False
    made, _ = traced(program, of_size(1), *tensors)
    file = io.BytesIO()
    torch.jit.save(made, file)
    file.seek(0)
    for each in (made, torch.jit.load(file)):
        assert are_same(each(of_size(1), *tensors), wanted), (op.qualified_name, args)
    return True


@pytest.mark.parametrize("part", [*map(part_of, PARTS)])
@pytest.mark.filterwarnings("ignore")
def test_truth_values_are_numbers_of_traces_and_archives(part: int) -> None:
    found = [op for op in OPERATORS if any(plain(a) == NUMBER for a in op.schema.arguments)]
    assert sum(keeps(op, args) for op in found[part :: len(PARTS)] for args in truths(op)) > 20
