"""The law of the library's loops, and of calls that are recorded as another operator, in lists, or with more results.

Calls of random sizes, layouts and values.  What a stub takes equals the operator's definition in mode "off" (sums up to
100 units of the greatest term and the root of their number), with its dtypes, sizes and strides, and writes what that
writes; so do operators in place, which say that they have written.  Nodes have the names, plans, forms, edges and kept
values of those that Python makes; gradients, and gradients of gradients, are those of mode "off"; writes to what was
kept are refused.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.autograd.node import Saved
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.fuser.groups.fusion_group import DTYPES
from engine.fuser.library import serving
from engine.fuser.library.looped import LOOPS, PLACES
from engine.fuser.library.words import TYPES
from tests.table.library_samples import Missed, missed, same

ROUNDS = 60
Random = np.random.Generator
Make = Callable[[Random, Any], list[Any]]


@pytest.fixture(autouse=True)
def _served(library: None) -> None:
    """The library is there, and serves."""


def found(name: str) -> Op:
    op = table.find(name)
    assert op is not None
    return op


def stubs_of(op: Op) -> Callable[..., Any]:
    return serving._chained(op.name, serving._known(op, is_hooked=True), missed)


@contextmanager
def by_numpy() -> Iterator[None]:
    """Nothing but the definitions."""
    HOOKS.python_only = True
    try:
        yield
    finally:
        HOOKS.python_only = False


def defined(op: Op, given: Sequence[Any]) -> Any:
    """What the definition gives; arguments that are not given have their defaults."""
    with by_numpy():
        return op.compiled.run(*given, *(each.default for each in op.schema.arguments[len(given) :]))


def outcome(run: Callable[..., Any], given: Sequence[Any]) -> Any:
    """What a call gives, or its error."""
    try:
        return run(*given)
    except Exception as error:
        return error


# ------------------------------------------------------------------ arguments


@np.errstate(invalid="ignore")
def numbers(random: Random, type: Any, *sizes: int) -> np.ndarray[Any, Any]:
    """Of whole numbers only a few."""
    return random.integers(2, size=sizes).astype(type) if type == np.bool_ else random.normal(size=sizes).astype(type)


def of(random: Random, type: Any, *sizes: int) -> Tensor:
    """A tensor, whose last dimensions are exchanged in memory, or which has gaps, now and then."""
    array = numbers(random, type, *sizes)
    way = random.integers(8)
    if way == 0 and array.ndim > 1:
        return Tensor(np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2))
    if way == 1 and array.ndim:
        return Tensor(np.repeat(array, 2, -1)[..., ::2])
    return Tensor(array)


def perhaps(random: Random, *of_it: Any) -> Tensor | None:
    return of(random, *of_it) if random.random() < 0.6 else None


def some(random: Random, most: int = 6) -> int:
    return int(random.integers(1, most))


def spread(random: Random, type: Any, x: Tensor) -> Tensor:
    """A gradient of the tensor's sizes, now and then one number for all elements."""
    grad = of(random, type, *x.array.shape)
    return Tensor(np.broadcast_to(grad.array.ravel()[0], grad.array.shape)) if random.random() < 0.2 else grad


def positive(tensor: Tensor | None) -> Tensor | None:
    return tensor if tensor is None else Tensor(np.abs(tensor.array))


def rows(random: Random, type: Any) -> list[Any]:
    outer, shape = [some(random) for _ in range(random.integers(3))], [some(random, 12) for _ in range(some(random, 3))]
    weight, bias = perhaps(random, type, *shape), perhaps(random, type, *shape)
    return [of(random, type, *outer, *shape), shape, weight, bias, 1e-5]


def rows_back(random: Random, type: Any) -> list[Any]:
    x, shape, weight, _, eps = rows(random, type)
    return [spread(random, type, x), x, shape, weight, eps]


def channels(random: Random, type: Any) -> list[Any]:
    c, space = some(random), [some(random, 9) for _ in range(random.integers(4))]
    x = of(random, type, 1 + some(random), c, *space)
    vectors = [perhaps(random, type, c) for _ in range(4)]
    return [x, *vectors[:3], positive(vectors[3]), bool(random.integers(2)), 0.25, 1e-3]


def channels_back(random: Random, type: Any) -> list[Any]:
    x, weight, _, mean, variance, training, _, eps = channels(random, type)
    return [spread(random, type, x), x, weight, mean, variance, training, eps]


def groups(random: Random, type: Any) -> list[Any]:
    g, members = some(random, 4), some(random, 4)
    x = of(random, type, some(random), g * members, *[some(random, 9) for _ in range(random.integers(3))])
    return [x, g, perhaps(random, type, g * members), perhaps(random, type, g * members), 1e-5]


def groups_back(random: Random, type: Any) -> list[Any]:
    x, g, weight, _, eps = groups(random, type)
    return [spread(random, type, x), x, weight, g, eps]


def windows(random: Random) -> list[Any]:
    """Sizes of windows, steps (or none, which are the windows'), and paddings."""
    window = [some(random, 4), some(random, 4)]
    step = [[], [2], [1, 3], [2, 2]][random.integers(4)]
    return [window, step, [int(random.integers(each // 2 + 1)) for each in window]]


def images(random: Random, type: Any) -> Tensor:
    return of(
        random, type, *[some(random, 4) for _ in range(some(random, 3))], 2 + some(random, 9), 2 + some(random, 9)
    )


def greatest(random: Random, type: Any) -> list[Any]:
    x = images(random, type)
    if random.random() < 0.3:
        x.array[..., 0, 0], x.array[..., -1, -1] = np.nan, -np.inf
    return [x, *windows(random), [[1], [1, 1], [2, 1]][random.integers(3)], bool(random.integers(2))]


def put_back(random: Random, type: Any) -> list[Any]:
    x, wide = images(random, type), some(random, 5)
    lead, size = x.array.shape[:-2], x.array.shape[-1] * x.array.shape[-2]
    places = random.integers(0, size, [*lead, wide, 3])
    return [spread(random, type, Tensor(places)), x, Tensor(places), 2]


def averages(random: Random, type: Any) -> list[Any]:
    flags = bool(random.integers(2)), bool(random.integers(2))
    return [images(random, type), *windows(random), *flags, None if random.random() < 0.8 else 3]


def averages_back(random: Random, type: Any) -> list[Any]:
    x, *rest = averages(random, type)
    result = outcome(found("aten::avg_pool2d").compiled.run, [x, *rest])
    return [x if isinstance(result, Exception) else spread(random, type, result), x, *rest]


def padded(random: Random, type: Any) -> list[Any]:
    x = of(random, type, *[some(random) for _ in range(some(random, 5))])
    pads = [int(random.integers(-2, 4)) for _ in range(2 * some(random, 4))]
    return [x, pads, [0, 1.5, -2][random.integers(3)]]


def scattered(random: Random, type: Any) -> list[Any]:
    x = of(random, type, *[some(random) for _ in range(some(random, 4))])
    dim = int(random.integers(-x.array.ndim, x.array.ndim))
    sizes = [*x.array.shape]
    sizes[dim] = some(random)
    index = Tensor(random.integers(0, x.array.shape[dim], sizes))
    return [x, dim, index, spread(random, type, index)]


def added(random: Random, type: Any) -> list[Any]:
    x = of(random, type, *[some(random) for _ in range(some(random, 4))])
    dim = int(random.integers(-x.array.ndim, x.array.ndim))
    sizes = [*x.array.shape]
    sizes[dim] = some(random)
    index = Tensor(random.integers(0, x.array.shape[dim], sizes[dim]))
    return [x, dim, index, of(random, type, *sizes), 1 if random.random() < 0.8 else 2]


def put(random: Random, type: Any) -> list[Any]:
    x = of(random, type, *[some(random) for _ in range(some(random, 4))])
    size = x.array.shape[0]
    index = Tensor(random.integers(-size, size, [some(random) for _ in range(random.integers(3))]))
    return [x, [index], of(random, type, *index.array.shape, *x.array.shape[1:]), random.random() < 0.6]


def scattered_number(random: Random, type: Any) -> list[Any]:
    return [*scattered(random, type)[:3], (0, 1, -2, 1.5, 300)[random.integers(5)]]


def scattered_by(random: Random, type: Any) -> list[Any]:
    return [*scattered(random, type), ("add", "multiply")[random.integers(2)]]


def reduced(random: Random, type: Any) -> list[Any]:
    x, dim, index, source = scattered(random, type)
    if random.random() < 0.3 and np.dtype(type).kind == "f":
        source = Tensor(np.where(source.array > 1, np.nan, source.array))
    return [x, dim, index, source, ("sum", "prod", "mean", "amax", "amin")[random.integers(5)], random.random() < 0.5]


def copied_rows(random: Random, type: Any) -> list[Any]:
    return added(random, type)[:4]


def filled_rows(random: Random, type: Any) -> list[Any]:
    x, dim, index, _ = copied_rows(random, type)
    size = x.array.shape[dim]
    return [x, dim, Tensor(index.array - size * random.integers(2, size=index.array.shape)), 3]


def by_mask(random: Random, type: Any) -> list[Any]:
    x = of(random, type, *[some(random) for _ in range(some(random, 4))])
    mask = of(random, np.bool_, *x.array.shape)
    return [x, mask, of(random, type, some(random), x.array.size if random.random() < 0.8 else 1)]


def planes(rest: Sequence[Any], more: Sequence[Any] = ()) -> Make:
    """Arguments of convolutions with a kernel for each channel."""

    def make(random: Random, type: Any) -> list[Any]:
        channels, kernel = some(random), [some(random, 5), some(random, 5)]
        x = of(random, type, some(random, 4), channels, *(int(random.integers(4, 20)) for _ in range(2)))
        settings = [[some(random, 4), some(random, 4)], [int(random.integers(3))] * some(random, 3), [some(random, 3)]]
        weight, bias = of(random, type, channels, 1, *kernel), perhaps(random, type, channels)
        return [x, weight, bias, *settings, *rest, channels if random.random() < 0.9 else 1, *more]

    return make


def losses(random: Random, type: Any) -> list[Any]:
    """Of scores, of targets of which some do not count."""
    classes, samples, space = some(random), some(random), [some(random) for _ in range(random.integers(3))]
    sizes = [samples, *space] if random.random() < 0.8 else []
    scores = of(random, type, *sizes[:1], classes, *sizes[1:])
    targets = random.integers(0, classes, sizes)
    ignored = int(random.integers(-1, classes)) if random.random() < 0.5 else -100
    weight = of(random, type, classes) if random.random() < 0.2 else None
    return [scores, Tensor(targets), weight, int(random.integers(3)), ignored]


def losses_back(random: Random, type: Any) -> list[Any]:
    scores, targets, weight, reduction, ignored = losses(random, type)
    grad = spread(random, type, targets if reduction == 0 else Tensor(np.zeros(())))
    return [grad, scores, targets, weight, reduction, ignored]


def lines(random: Random, type: Any) -> list[Any]:
    """Rows, many of whose numbers are equal, or are none, now and then; and a dimension."""
    sizes = [some(random, 4) for _ in range(some(random, 4))]
    dim = int(random.integers(-len(sizes), len(sizes)))
    sizes[dim] = (some(random, 9), some(random, 200), 1000 + some(random, 200))[random.choice(3, p=(0.5, 0.4, 0.1))]
    array = numbers(random, type, *sizes)
    if array.dtype.kind == "f":
        array = array.round(int(random.integers(4)))
        if random.random() < 0.3:
            array.ravel()[:: some(random, 9)] = np.nan
    else:
        array = array * random.integers(1, 50, size=sizes)
    return [Tensor(array) if random.random() < 0.8 else Tensor(np.repeat(array, 2, -1)[..., ::2]), dim]


def in_order(random: Random, type: Any) -> list[Any]:
    return [*lines(random, type), bool(random.integers(2))][: some(random, 4)]


def stably(random: Random, type: Any) -> list[Any]:
    x, *rest = in_order(random, type)
    return [x, True, *rest]


def firsts(random: Random, type: Any) -> list[Any]:
    x, dim = lines(random, type)
    k = int(random.integers(1, 1 + min(x.array.shape[dim], (3, 20, 200)[random.integers(3)])))
    return [x, k, dim, bool(random.integers(2)), bool(random.integers(2))]


def kth(random: Random, type: Any) -> list[Any]:
    return [*firsts(random, type)[:3], bool(random.integers(2))]


def middle(random: Random, type: Any) -> list[Any]:
    return [*lines(random, type), bool(random.integers(2))]


def table_back(random: Random, type: Any) -> list[Any]:
    size, places = some(random), [some(random) for _ in range(random.integers(3))]
    index = Tensor(random.integers(0, size, places))
    grad = spread(random, type, Tensor(np.zeros([*places, some(random, 9)])))
    return [grad, index, size, int(random.integers(-1, size)), random.random() < 0.2]


MADE: dict[str, Make] = {
    "aten::native_layer_norm": rows, "aten::_layer_norm_backward": rows_back, "aten::native_batch_norm": channels,
    "aten::_batch_norm_backward": channels_back, "aten::_group_norm": groups, "aten::_group_norm_backward": groups_back,
    "aten::max_pool2d_with_indices": greatest, "aten::_put_back": put_back, "aten::avg_pool2d": averages,
    "aten::avg_pool2d_backward": averages_back, "aten::constant_pad_nd": padded, "aten::scatter_add": scattered,
    "aten::scatter.src": scattered, "aten::scatter.value": scattered_number, "aten::scatter.reduce": scattered_by,
    "aten::scatter_reduce.two": reduced, "aten::index_add": added, "aten::index_copy": copied_rows,
    "aten::index_fill.int_Scalar": filled_rows, "aten::index_put": put, "aten::masked_scatter": by_mask,
    "aten::_nll_loss": losses, "aten::_nll_loss_backward": losses_back, "aten::conv2d": planes([]),
    "aten::convolution": planes([False, [0, 0]]), "aten::_convolution": planes([False, [0, 0]], [False] * 4),
    "aten::sort": in_order, "aten::sort.stable": stably, "aten::argsort": in_order, "aten::argsort.stable": stably,
    "aten::topk": firsts, "aten::kthvalue": kth, "aten::median.dim": middle,
    "aten::median": lambda random, type: lines(random, type)[:1], "aten::_embedding_backward": table_back,
}  # fmt: skip
"""Arguments of each operator that loops compute."""
SERVED: list[tuple[str, Any]] = [
    (name, DTYPES[type]) for name in MADE for type in TYPES if any(row.type_of(type) for row in LOOPS[name])
]
"""Each operator, and the dtypes that it has loops for."""
IN_PLACE: list[tuple[str, Any]] = [(name, type) for name, type in SERVED if any(row.changes for row in LOOPS[name])]


def test_each_operator_is_tried() -> None:
    assert MADE.keys() == LOOPS.keys()


# ------------------------------------------------------------------ values


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors of a result, or of arguments."""
    listed = value if isinstance(value, (tuple, list)) else [value]
    return [each for one in listed for each in (one if isinstance(one, list) else [one]) if isinstance(each, Tensor)]


def assert_near(mine: Tensor, theirs: Tensor, given: Sequence[Any]) -> None:
    a, b = mine.array, theirs.array
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.size < 2 or a.strides == b.strides, (a.shape, a.strides, b.strides)
    if b.dtype.kind != "f":
        np.testing.assert_array_equal(a, b)
        return
    terms = max(each.array.size for each in tensors_in(given)) ** 0.5
    finite = np.abs(b[np.isfinite(b)])
    unit = float(np.finfo(b.dtype).eps) * max(1.0, float(finite.max(initial=0.0)))
    np.testing.assert_allclose(a, b, rtol=0, atol=100 * terms * unit)


@torch.no_grad()
@np.errstate(all="ignore")
@pytest.mark.parametrize(("name", "type"), SERVED, ids=str)
def test_loops_give_what_the_definition_gives(name: str, type: Any) -> None:
    """And write what it writes; other calls are left as they are."""
    op, random, served = found(name), np.random.default_rng(len(name)), 0
    stubs = stubs_of(op)
    for _ in range(ROUNDS):
        given = MADE[name](random, type)
        one, other = same(given), same(given)
        try:
            result = stubs(*one)
        except Missed:
            for mine, theirs in zip(tensors_in(one), tensors_in(given), strict=True):
                np.testing.assert_array_equal(mine.array, theirs.array)
            continue
        served += 1
        wanted = defined(op, other)
        for mine, theirs in zip(tensors_in(result), tensors_in(wanted), strict=True):
            assert_near(mine, theirs, given)
        for mine, theirs in zip(tensors_in(one), tensors_in(other), strict=True):
            np.testing.assert_allclose(mine.array, theirs.array, rtol=1e-5, atol=1e-6)
            assert mine._version == theirs._version == 0
    assert served > ROUNDS // 6


@torch.no_grad()
@np.errstate(all="ignore")
@pytest.mark.parametrize(("name", "type"), IN_PLACE, ids=str)
def test_operators_in_place_write_what_the_definition_writes(name: str, type: Any) -> None:
    """And nothing else, where other tensors share their memory, too; what they do not take they leave as it is."""
    first, dot, overload = name.partition(".")
    op, random, served = found(f"{first}_{dot}{overload}"), np.random.default_rng(len(name)), 0
    stubs = stubs_of(op)
    for _ in range(ROUNDS):
        given = MADE[name](random, type)
        one, other = same(given), same(given)
        try:
            result = stubs(*one)
        except Missed:
            for mine, theirs in zip(tensors_in(one), tensors_in(given), strict=True):
                np.testing.assert_array_equal(mine.array, theirs.array)
            continue
        served += 1
        defined(op, other)
        assert result is one[0] and (result._version, other[0]._version) == (1, 1)
        for mine, theirs in zip(tensors_in(one), tensors_in(other), strict=True):
            assert_near(mine, theirs, given)
        alike = [i for i, each in enumerate(given) if isinstance(each, Tensor) and each.dtype == given[0].dtype]
        for i in alike[1:]:
            given[i] = given[0]
            assert isinstance(outcome(stubs, given), Missed)
    assert served > ROUNDS // 6


@pytest.mark.parametrize("name", MADE)
def test_sizes_that_do_not_fit_are_left_to_python(name: str) -> None:
    """A tensor less: other sizes, dimensions, dtypes, or nothing in it."""
    op, random = found(name), np.random.default_rng(1)
    stubs = stubs_of(op)
    for _ in range(ROUNDS):
        given = MADE[name](random, np.float32)
        places = [i for i, each in enumerate(given) if isinstance(each, Tensor)]
        i = places[random.integers(len(places))]
        array = given[i].array
        ways = [array[None], array.astype(np.float16), np.concatenate([array.ravel(), array.ravel()])]
        ways += [array[..., :0], array[0]] if array.ndim else []
        given[i] = Tensor(ways[random.integers(len(ways))])
        one, other = same(given), same(given)
        result = outcome(stubs, one)
        if isinstance(result, Missed):
            continue
        wanted = outcome(defined, [op, other])
        assert not isinstance(wanted, Exception), (wanted, given)
        for mine, theirs in zip(tensors_in(result), tensors_in(wanted), strict=True):
            assert_near(mine, theirs, given)


@pytest.mark.parametrize("name", [name for name, rows in LOOPS.items() if PLACES in rows[0].given])
def test_places_that_there_are_not_are_left_to_python(name: str) -> None:
    """Also by operators in place, which have written nothing then."""
    random, (first, dot, overload) = np.random.default_rng(3), name.partition(".")
    names = [name, f"{first}_{dot}{overload}"] if LOOPS[name][0].changes else [name]
    for op, wrong in itertools.product(map(found, names), (-1 if "fill" not in name else -7, 10**6)):
        given = MADE[name](random, np.float32)
        index = next(each for each in given if isinstance(each, Tensor) and each.array.dtype == np.int64)
        index.array.flat[-1] = wrong
        before = [np.copy(each.array) for each in tensors_in(given)]
        with pytest.raises(Missed):
            stubs_of(op)(*given)
        for each, was in zip(tensors_in(given), before, strict=True):
            np.testing.assert_array_equal(each.array, was)
            assert each._version == 0


def test_running_statistics_that_share_memory_are_left_to_python() -> None:
    op, x, both = found("aten::native_batch_norm"), torch.ones(2, 3, 4), torch.ones(3)
    for mean, variance in ((both, both), (torch.ones(6)[:3], torch.ones(6)[::2])):
        with pytest.raises(Missed):
            stubs_of(op)(x, None, None, mean, variance, True, 0.1, 1e-5)


# ------------------------------------------------------------------ what is recorded


def joined(random: Random, type: Any) -> list[Any]:
    x, count = of(random, type, some(random), some(random)), some(random, 4)
    return [[Tensor(random.normal(size=x.array.shape).astype(type)) for _ in range(count)], int(random.integers(2))]


def layer_norm(random: Random, type: Any) -> list[Any]:
    return [*rows(random, type), True]


def batch_norm(random: Random, type: Any) -> list[Any]:
    return [*channels(random, type), True]


def group_norm(random: Random, type: Any) -> list[Any]:
    return [*groups(random, type), True]


def indexed(random: Random, type: Any) -> list[Any]:
    return put(random, type)[:2]


RECORDED: dict[str, Make] = {
    "aten::cat": joined, "aten::stack": joined, "aten::layer_norm": layer_norm, "aten::native_layer_norm": rows,
    "aten::batch_norm": batch_norm, "aten::native_batch_norm": channels, "aten::group_norm": group_norm,
    "aten::max_pool2d": greatest, "aten::max_pool2d_with_indices": greatest, "aten::avg_pool2d": averages,
    "aten::scatter_add": scattered, "aten::index_add": added, "aten::index_put": put, "aten::index.Tensor": indexed,
    "aten::constant_pad_nd": padded, "aten::scatter.src": scattered, "aten::scatter.value": scattered_number,
    "aten::scatter_reduce.two": reduced, "aten::index_copy": copied_rows, "aten::index_fill.int_Scalar": filled_rows,
    "aten::masked_scatter": by_mask, "aten::sort": in_order, "aten::sort.stable": stably, "aten::topk": firsts,
    "aten::kthvalue": kth, "aten::median.dim": middle, "aten::median": MADE["aten::median"],
    "aten::convolution": MADE["aten::convolution"], "aten::_nll_loss": losses, "aten::nll_loss_nd": losses,
    "aten::nll_loss": losses,
}  # fmt: skip
"""Arguments of operators that are recorded in these ways."""


def kept_of(value: Any) -> Any:
    """What is kept as it can be compared."""
    if isinstance(value, Saved):
        held = value.held.array if value.output < 0 else value.held
        return held.tobytes() if held.dtype.kind == "i" else held.shape, value.version, value.output
    return [kept_of(each) for each in value] if isinstance(value, list) else value


def floats(given: Sequence[Any]) -> list[Tensor]:
    return [each for each in tensors_in(given) if each.array.dtype.kind == "f"]


def recorded(name: str) -> Iterator[tuple[list[Any], Any, Any]]:
    """Calls of which some tensors require grad, with what stubs and Python give for the same arguments."""
    op, random = found(name), np.random.default_rng(5)
    serving.record(op)
    if op.recorded_as:
        serving.record(found(f"aten::{op.recorded_as}"))
    stubs = stubs_of(op)
    for _ in range(ROUNDS):
        given = RECORDED[name](random, np.float64)
        flows = {a.name for a in op.schema.arguments} - {"running_mean", "running_var"}
        for argument, each in zip(op.schema.arguments, given, strict=False):
            for tensor in floats([each]) if argument.name in flows else []:
                tensor.requires_grad_(bool(random.integers(2)))
        written = [np.copy(each.array) for each in floats(given)]
        if HOOKS.rebased:  # views that Python made where nothing is recorded, which are watched while they live
            gc.collect()
        result = outcome(stubs, given)
        if isinstance(result, Missed):
            continue
        for each, before in zip(floats(given), written, strict=True):
            if each.array.flags.writeable:
                each.array[...] = before
        yield given, result, defined(op, given)


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", RECORDED)
def test_nodes_are_those_of_python(name: str) -> None:
    served = 0
    for given, result, wanted in recorded(name):
        for mine, theirs in zip(tensors_in(result), tensors_in(wanted), strict=True):
            assert (mine.requires_grad, mine.output_nr) == (theirs.requires_grad, theirs.output_nr)
            one, other = mine.grad_fn, theirs.grad_fn
            assert (one is None) == (other is None)
            if one is None:
                continue
            served += 1
            assert (one.name(), one.plan) == (other.name(), other.plan)
            assert [*map(tuple, one.outputs)] == [*map(tuple, other.outputs)]
            assert [e and e[:2] for e in one.edges] == [e and e[:2] for e in other.edges]
            assert kept_of([*one.kept]) == kept_of([*other.kept])
        del given
    assert served > 5


def gradients(result: Any, leaves: Sequence[Tensor], twice: bool) -> list[Any]:
    """Of the sum of squares, and of the sum of these gradients' squares."""
    (first, *_) = tensors_in(result)
    found = torch.autograd.grad((first * first).sum(), leaves, create_graph=twice, allow_unused=True)
    if not twice:
        return [*found]
    total = sum((each * each).sum() for each in found if each is not None)
    again: Any = [None] * len(leaves)
    if isinstance(total, Tensor) and total.requires_grad:
        again = torch.autograd.grad(total, leaves, allow_unused=True)
    return [*found, *again]


def assert_same_gradients(result: Any, wanted: Any, leaves: Sequence[Tensor], twice: bool) -> None:
    found = gradients(result, leaves, twice)
    with by_numpy():
        other = gradients(wanted, leaves, twice)
    for mine, theirs in zip(found, other, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            scale = max(1.0, float(np.abs(theirs.array).max()))
            np.testing.assert_allclose(mine.array, theirs.array, rtol=1e-7, atol=1e-8 * scale)


@np.errstate(all="ignore")
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("name", RECORDED)
def test_gradients_are_those_of_the_definition(name: str, twice: bool) -> None:
    served = 0
    for given, result, wanted in recorded(name):
        leaves = [each for each in floats(given) if each.requires_grad]
        if not leaves or not all(np.isfinite(each.array).all() for each in floats(given)):
            continue
        served += 1
        HOOKS.python_only = False
        assert_same_gradients(result, wanted, leaves, twice)
    assert served > 5


@pytest.mark.parametrize("name", RECORDED)
def test_writes_to_what_was_kept_are_noticed(name: str) -> None:
    """Of each tensor that is kept: the error is that of Python's node."""
    noticed = 0
    for given, result, wanted in recorded(name):
        leaves = [each for each in floats(given) if each.requires_grad]
        (mine, *_), (theirs, *_) = tensors_in(result), tensors_in(wanted)
        if not leaves or mine.grad_fn is None:
            continue
        HOOKS.python_only = False
        changed = next((each for each in mine.grad_fn.kept if isinstance(each, Saved) and each.output < 0), None)
        if changed is None:
            continue
        changed.held.detach().zero_()
        errors = [outcome(each.sum().backward, []) for each in (mine, theirs)]
        assert str(errors[0]) == str(errors[1]) and "modified by an inplace operation" in str(errors[0])
        noticed += 1
    assert noticed > 3 or name in KEEPS_NO_TENSORS


KEEPS_NO_TENSORS = {
    "aten::cat", "aten::stack", "aten::index.Tensor", "aten::index_put", "aten::constant_pad_nd", "aten::sort",
    "aten::sort.stable", "aten::topk", "aten::kthvalue", "aten::median.dim",
}  # fmt: skip
"""Operators whose nodes keep forms, lists of indices, or results."""


def test_hooks_of_nodes_see_the_gradients_of_all_results() -> None:
    for one in (lambda x: torch.layer_norm(x, [4]), lambda x: torch.max_pool2d(x, 2)):
        seen: list[Any] = []
        x = torch.rand(2, 4, 4).requires_grad_()
        one(x)
        y = one(x)
        y.grad_fn.register_prehook(lambda given, seen=seen: seen.append([each is None for each in given]))
        y.grad_fn.register_hook(lambda found, given, seen=seen: seen.append((len(found), len(given))))
        y.sum().backward()
        others = len(y.grad_fn.outputs) - 1
        assert seen == [[False, *[True] * others], (1, 1 + others)]
