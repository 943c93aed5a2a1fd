"""The law of the library's views: the same elements in the same memory as the definition's, with the same history.

Calls of random tensors (any layout, backwards, repeated, without elements, without dimensions) with arguments that
mostly fit.  What a stub takes equals the operator's definition in place, sizes, strides, flags, base, memory and
version; what it does not take is Python's, which refuses as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.size import Size
from engine.aten.values.storage import owner_of
from engine.aten.values.tensor import Tensor
from engine.fuser.library import serving
from engine.fuser.library.viewing import VIEWS
from tests.table.library_samples import Missed, layouts, missed

ROUNDS = 600
Random = np.random.Generator
TYPES = (np.float32, np.float32, np.float64, np.int64, np.bool_, np.float16, np.complex64)


@pytest.fixture(autouse=True)
def _served(library: None) -> None:
    """The library is there, and serves."""


# ------------------------------------------------------------------ arguments


def shape_of(random: Random, least: int = 1) -> list[int]:
    smallest = 0 if random.random() < 0.1 else least
    return [int(random.integers(smallest, 4)) for _ in range(random.integers(0, 5))]


def source(random: Random, type: Any = None) -> Tensor:
    """A tensor of any layout, mostly dense; a view of another one at times."""
    array = random.normal(0, 9, shape_of(random)).astype(type or TYPES[random.integers(len(TYPES))])
    if random.random() < 0.5:
        ways = [*layouts(array)]
        array = ways[random.integers(len(ways))]
    made = Tensor(array)
    if random.random() < 0.3:
        made.bump_version()
    shown: Tensor = found("aten::alias").compiled.run(made) if random.random() < 0.3 else made
    return shown


def axis(random: Random, rank: int) -> int:
    return int(random.integers(-rank - (random.random() < 0.1), rank + 1 if random.random() < 0.1 else max(rank, 1)))


def as_sizes(random: Random, sizes: list[int]) -> Any:
    return (list, tuple, Size)[random.integers(3)](sizes)


def regrouped(random: Random, x: Tensor) -> list[int]:
    """Other sizes for as many elements, one of which may be left open."""
    left, sizes = int(x.array.size), list[int]()
    while left > 1 and len(sizes) < 5:
        factor = int(random.choice([f for f in (2, 3, 4, 6, left) if left % f == 0] or [left]))
        sizes.append(factor)
        left //= factor
    sizes.insert(int(random.integers(0, len(sizes) + 1)), left)
    if random.random() < 0.3:
        sizes[random.integers(len(sizes))] = int(random.choice([-1, -1, -1, -2, 0, 5]))
    return [*x.array.shape] if random.random() < 0.2 else sizes


def repeated(random: Random, x: Tensor) -> list[int]:
    sizes = [-1 if random.random() < 0.2 else n if n != 1 else int(random.integers(0, 4)) for n in x.array.shape]
    if sizes and random.random() < 0.1:
        sizes[random.integers(len(sizes))] = int(random.integers(-2, 5))
    return [int(random.integers(-1 if random.random() < 0.1 else 1, 3)) for _ in range(random.integers(0, 3))] + sizes


def order(random: Random, x: Tensor) -> list[int]:
    rank = x.array.ndim
    dims = [int(d) - rank * int(random.integers(2)) for d in random.permutation(rank)]
    if dims and random.random() < 0.1:
        dims[0] = dims[-1] if random.random() < 0.5 else rank
    return dims


def place(random: Random) -> Any:
    return (int(random.integers(-5, 6)), None, 2**63 - 1, -(2**63))[random.choice(4, p=(0.7, 0.1, 0.1, 0.1))]


def like(random: Random, sizes: list[int]) -> Tensor:
    return Tensor(np.empty([max(n, 0) for n in sizes], np.int8))


def cut(random: Random, x: Tensor) -> list[Any]:
    """Sizes that mostly add up to that of a dimension."""
    d = axis(random, x.array.ndim)
    size = x.array.shape[d] if -x.array.ndim <= d < x.array.ndim else 3
    first = int(random.integers(0, size + 1))
    return [[first, size - first, *([0] if random.random() < 0.2 else [])] if random.random() < 0.9 else [1, 1], d]


MADE: dict[str, Callable[[Random, Tensor], list[Any]]] = {
    "aten::view": lambda r, x: [as_sizes(r, regrouped(r, x))],
    "aten::reshape": lambda r, x: [as_sizes(r, regrouped(r, x))],
    "aten::view_as": lambda r, x: [like(r, regrouped(r, x))],
    "aten::reshape_as": lambda r, x: [like(r, regrouped(r, x))],
    "aten::flatten.using_ints": lambda r, x: [axis(r, x.array.ndim), axis(r, x.array.ndim)][: r.integers(0, 3)],
    "aten::expand": lambda r, x: [as_sizes(r, repeated(r, x)), False][: r.integers(1, 3)],
    "aten::broadcast_to": lambda r, x: [as_sizes(r, repeated(r, x))],
    "aten::expand_as": lambda r, x: [like(r, repeated(r, x))],
    "aten::t": lambda r, x: [],
    "aten::transpose.int": lambda r, x: [axis(r, x.array.ndim), axis(r, x.array.ndim)],
    "aten::permute": lambda r, x: [as_sizes(r, order(r, x))],
    "aten::unsqueeze": lambda r, x: [axis(r, x.array.ndim + 1)],
    "aten::squeeze": lambda r, x: [],
    "aten::squeeze.dim": lambda r, x: [axis(r, x.array.ndim)],
    "aten::select.int": lambda r, x: [axis(r, x.array.ndim), axis(r, 3)],
    "aten::slice.Tensor": lambda r, x: [axis(r, x.array.ndim), place(r), place(r), int(r.integers(-1, 4))],
    "aten::narrow": lambda r, x: [axis(r, x.array.ndim), axis(r, 3), int(r.integers(-1 if r.random() < 0.1 else 0, 3))],
    "aten::contiguous": lambda r, x: [[], [0], [int(r.integers(0, 4))]][r.integers(3)],
    "aten::split.Tensor": lambda r, x: [int(r.integers(0, 4)), axis(r, x.array.ndim)],
    "aten::chunk": lambda r, x: [int(r.integers(0, 4)), axis(r, x.array.ndim)],
    "aten::unbind.int": lambda r, x: [axis(r, x.array.ndim)],
    "aten::split": lambda r, x: cut(r, x), "aten::split.sizes": lambda r, x: cut(r, x),
    "aten::split_with_sizes": lambda r, x: cut(r, x),
}  # fmt: skip
"""The arguments after the tensor."""
COPYING = ("aten::contiguous", "aten::reshape", "aten::reshape_as", "aten::flatten.using_ints")
"""Those that copy what cannot be shown so."""
SEVERAL = ("aten::split.Tensor", "aten::chunk", "aten::unbind.int", "aten::split", "aten::split.sizes",
           "aten::split_with_sizes")  # fmt: skip
"""Those that give several views, which Python records."""
ONE = [name for name in MADE if name not in SEVERAL]


def test_each_view_is_tried() -> None:
    assert MADE.keys() == VIEWS.keys()


# ------------------------------------------------------------------ what they give


def found(name: str) -> Op:
    op = table.find(name)
    assert op is not None
    return op


def stubs_of(op: Op, *, is_hooked: bool = True) -> Callable[..., Any]:
    return serving._chained(op.name, serving._known(op, is_hooked=is_hooked), missed)


def with_defaults(op: Op, given: list[Any]) -> list[Any]:
    return [*given, *(a.default for a in op.schema.arguments[len(given) :])]


def outcome(run: Callable[..., Any], given: list[Any]) -> Any:
    try:
        return run(*given)
    except Missed:
        raise
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("is_hooked", [True, False])
@pytest.mark.parametrize("name", MADE)
def test_views_are_those_of_the_definition(name: str, *, is_hooked: bool) -> None:
    op, random, served = found(name), np.random.default_rng(len(name)), 0
    stubs = stubs_of(op, is_hooked=is_hooked)
    for _ in range(ROUNDS):
        x = source(random)
        given = [x, *MADE[name](random, x)]
        try:
            result = stubs(*given)
        except Missed:
            continue
        served += 1
        wanted = op.compiled.run(*with_defaults(op, given))
        if isinstance(wanted, Tensor) and wanted._base is None and wanted is not x:  # a copy
            assert name in COPYING
            assert result._base is None
            np.testing.assert_array_equal(result.array, wanted.array)
            assert result.array.flags.c_contiguous
            continue
        assert type(result) is type(wanted)
        pairs = [(result, wanted)] if isinstance(wanted, Tensor) else zip(result, wanted, strict=True)
        for mine, theirs in pairs:
            assert_same(mine, theirs, x)
    assert served > ROUNDS // 6


def assert_same(result: Any, wanted: Any, x: Tensor) -> None:
    assert type(result) is Tensor
    assert (result is x) == (wanted is x)
    a, b = result.array, wanted.array
    assert (a.dtype, a.shape, a.flags.num) == (b.dtype, b.shape, b.flags.num)
    assert owner_of(a) is owner_of(b)
    assert a.strides == b.strides or a.size < 2
    assert a.ctypes.data == b.ctypes.data or not a.size
    assert result._base is wanted._base and result.memory is wanted.memory is x.memory
    assert result is x or result._seen == wanted._seen == x._version
    assert (result._view_kind, result.output_nr) == (wanted._view_kind, wanted.output_nr)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ONE)
def test_calls_that_do_not_fit_are_refused_as_ever(name: str) -> None:
    op, random = found(name), np.random.default_rng(3)
    for _ in range(ROUNDS):
        x = source(random)
        given = with_defaults(op, [x, *MADE[name](random, x)])
        result, wanted = (outcome(run, given) for run in (op.run, op.compiled.run))
        if isinstance(wanted, Tensor):
            assert (result.array.shape, result._base is x) == (wanted.array.shape, wanted._base is x)
            assert result.array.strides == wanted.array.strides or result.array.size < 2
        else:
            assert result == wanted


# ------------------------------------------------------------------ what they record


@pytest.mark.parametrize("name", ONE)
def test_views_record_what_the_definition_records(name: str) -> None:
    op, random, served = found(name), np.random.default_rng(5), 0
    serving.record(op)
    stubs = stubs_of(op)
    for _ in range(ROUNDS):
        x = source(random, (np.float32, np.float64, np.int64)[random.integers(3)])
        if x.array.dtype != np.int64:
            x = x.requires_grad_() if random.random() < 0.5 else x.detach().requires_grad_() * 1
        given = [x, *MADE[name](random, x)]
        try:
            result = stubs(*given)
        except Missed:
            continue
        served += 1
        wanted = op.compiled.run(*with_defaults(op, given))
        assert result.requires_grad == wanted.requires_grad == (x.array.dtype != np.int64)
        if result is x or not result.requires_grad:
            continue
        mine, theirs = result.grad_fn, wanted.grad_fn
        assert (mine.name(), mine.plan) == (theirs.name(), theirs.plan)
        assert [as_list(each) for each in mine.kept] == [as_list(each) for each in theirs.kept]
        assert [e and (e[0], e[1]) for e in mine.edges] == [e and (e[0], e[1]) for e in theirs.edges]
        assert [*map(tuple, mine.outputs)] == [*map(tuple, theirs.outputs)]
    assert served > ROUNDS // 10


def as_list(kept: Any) -> Any:
    return [*kept] if isinstance(kept, (list, tuple)) else kept


@pytest.mark.parametrize("name", ONE)
def test_gradients_flow_through_views(name: str) -> None:
    op, random, served = found(name), np.random.default_rng(6), 0
    for _ in range(ROUNDS // 4):
        x = Tensor(random.normal(0, 1, shape_of(random)), requires_grad=True)
        given = with_defaults(op, [x, *MADE[name](random, x)])
        result, wanted = (outcome(run, given) for run in (op.run, op.compiled.run))
        if not isinstance(wanted, Tensor):
            continue
        served += 1
        weights = Tensor(random.normal(0, 1, result.array.shape))
        mine, theirs = (torch.autograd.grad((each * weights).sum(), x)[0] for each in (result, wanted))
        np.testing.assert_array_equal(mine.array, theirs.array)
    assert served > ROUNDS // 20


def test_writes_to_a_view_change_the_history_of_its_base() -> None:
    x = torch.ones(3, 4, requires_grad=True)
    y = x * 2
    y.transpose(0, 1)[1].view(3).mul_(5)
    assert "AsStrided" in y.grad_fn.name() or "CopySlices" in y.grad_fn.name()
    y.sum().backward()
    assert x.grad.tolist() == [[2, 10, 2, 2]] * 3
    before = y.view(12)
    y.mul_(3)
    assert before.array.tolist() == y.array.reshape(12).tolist()
    assert before._version == y._version and before.requires_grad


def test_leaves_that_require_grad_have_views_that_are_not_written() -> None:
    x = torch.ones(3, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x.view(12).add_(1)
    with torch.no_grad():
        y = x.view(12)
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="no_grad"):
        y.mul_(x.view(12))


@pytest.mark.parametrize("name", SEVERAL)
def test_several_views_are_refused_and_recorded_as_ever(name: str) -> None:
    op, random = found(name), np.random.default_rng(7)
    for _ in range(ROUNDS):
        x = source(random)
        if x.array.dtype == np.float32 and random.random() < 0.5:
            x = x.requires_grad_()
        given = with_defaults(op, [x, *MADE[name](random, x)])
        result, wanted = (outcome(run, given) for run in (op.run, op.compiled.run))
        if not isinstance(wanted, list):
            assert result == wanted
            continue
        for mine, theirs in zip(result, wanted, strict=True):
            np.testing.assert_array_equal(mine.array, theirs.array)
            assert (mine.requires_grad, mine.output_nr) == (theirs.requires_grad, theirs.output_nr)


def test_one_of_several_views_is_not_written_where_gradients_flow() -> None:
    x = torch.ones(4, 3)
    for parts in (x.chunk(2), x.split(2), x.split([1, 3]), x.unbind(0)):
        assert type(parts) is tuple and all(each._base is x for each in parts)
    with pytest.raises(RuntimeError, match="multiple views"):
        x.unbind(0)[0].mul_(torch.ones(3, requires_grad=True))


# ------------------------------------------------------------------ how methods are called


def test_methods_take_sizes_one_by_one() -> None:
    x = torch.arange(24).view(2, 3, 4)
    assert (
        x.view(6, 4).shape == x.view([6, 4]).shape == x.view((6, 4)).shape == x.view(torch.Size([6, 4])).shape == (6, 4)
    )
    assert x.view(-1).shape == x.reshape(24).shape == x.flatten().shape == (24,)
    assert x.permute(2, 0, 1).shape == x.permute((2, 0, 1)).shape == x.permute(*[-1, 0, 1]).shape == (4, 2, 3)
    assert x[:, :1].expand(2, 3, -1).stride() == (12, 0, 1)
    for wrong in (lambda: x.view(5, 5), lambda: x.view([6, 4], 1), lambda: x.permute(0, 1), lambda: x.view(2.0, 12)):
        with pytest.raises((RuntimeError, TypeError)):
            wrong()
    y = torch.ones(2, 3, requires_grad=True)
    y.permute(1, 0).mul(torch.arange(6.0).view(3, 2)).sum().backward()
    assert y.grad.tolist() == [[0, 2, 4], [1, 3, 5]]


def test_views_outlive_what_they_show() -> None:
    shown = torch.arange(100_000).view(10, -1).transpose(0, 1)[7]
    torch.zeros(100_000)
    assert shown.tolist() == [7 + 10_000 * i for i in range(10)]
