"""The law of the library's products, convolutions, pooling, joins and look-ups, and of its out forms.

Calls of random sizes, layouts and values; what a stub takes equals the operator's definition in mode "off" (products up
to 40 units of the greatest sum, what is moved exactly), with its dtype, sizes and strides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.fuser.library import rows, serving, words
from engine.fuser.library.moving import CONVERTING, MOVING, PAIRED
from engine.fuser.library.shaped import CALLS, WINDOWS
from tests.table import library_samples
from tests.table.kernel_samples import COMPLEX, agree
from tests.table.library_samples import Missed, fixed, missed

ROUNDS = 60
Array = np.ndarray[Any, np.dtype[Any]]
Random = np.random.Generator
Make = Callable[[Random, Any], list[Any]]


@pytest.fixture(autouse=True)
def _served(library: None) -> None:
    """The library is there, and serves."""


def of(random: Random, type: Any, *sizes: int) -> Tensor:
    parts = [random.normal(size=sizes) for _ in range(1 + (type in COMPLEX))]
    return Tensor((parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]).astype(type))


def few_or_many(random: Random) -> int:
    return int(random.integers(1, (6, 40, 150)[random.integers(3)]))


def few(random: Random, most: int = 5) -> int:
    return int(random.integers(1, most))


def perhaps_turned(random: Random, x: Tensor) -> Tensor:
    """The tensor, or one whose last two dimensions are exchanged in memory, or that has gaps."""
    way = random.integers(5)
    if way < 2:
        return Tensor(np.ascontiguousarray(x.array.swapaxes(-1, -2)).swapaxes(-1, -2))
    return Tensor(np.repeat(x.array, 2, -1)[..., ::2]) if way == 2 else x


def perhaps(random: Random, x: Tensor) -> Tensor | None:
    return x if random.random() < 0.5 else None


def linear(random: Random, type: Any) -> list[Any]:
    m, k, n = (few_or_many(random) for _ in range(3))
    leading = [few(random)] * int(random.integers(3))
    bias = perhaps(random, of(random, type, n))
    return [
        perhaps_turned(random, of(random, type, *leading, m, k)),
        perhaps_turned(random, of(random, type, n, k)),
        bias,
    ]


def matrices(random: Random, type: Any, outer: int = 0) -> list[Any]:
    m, k, n = (few_or_many(random) for _ in range(3))
    sizes = [few(random) for _ in range(outer)]
    one, other = of(random, type, *sizes, m, k), of(random, type, *sizes, k, n)
    return [perhaps_turned(random, one), perhaps_turned(random, other)]


def matmul(random: Random, type: Any) -> list[Any]:
    a, b = matrices(random, type, int(random.integers(3)))
    return (
        [a, b]
        if random.random() < 0.7
        else [of(random, type, 3, *a.array.shape[-2:]), Tensor(b.array.reshape(-1, *b.array.shape[-2:])[0])]
    )


def added(random: Random, type: Any) -> list[Any]:
    a, b = matrices(random, type)
    return [of(random, type, b.array.shape[1]), a, b, 1, 1 if random.random() < 0.9 else 2]


def convolution(rest: list[Any]) -> Make:
    def make(random: Random, type: Any) -> list[Any]:
        window, step, padding, gap = WINDOWS[random.integers(len(WINDOWS))]
        channels, results = few(random, 20), few(random, 40)
        image = of(random, type, few(random), channels, few(random, 20), few(random, 30))
        weight = of(random, type, results, channels, window, window)
        bias = perhaps(random, of(random, type, results))
        return [image, weight, bias, [step] * 2, [padding] * 2, [gap, gap if random.random() < 0.9 else 3], *rest]

    return make


def pool(rest: list[Any]) -> Make:
    def make(random: Random, type: Any) -> list[Any]:
        window, step, padding = ((2, 2, 0), (3, 2, 1))[random.integers(2)]
        image = of(random, type, few(random), few(random, 20), few(random, 20), few(random, 30))
        return [image, [window] * 2, [step] * 2, [padding] * 2, *rest]

    return make


def triangle(diagonals: Sequence[int]) -> Make:
    return lambda random, type: [of(random, type, few(random, 40), few(random, 40)), int(random.choice(diagonals))]


MADE: dict[str, Make] = {
    "aten::linear": linear, "aten::mm": matrices, "aten::addmm": added, "aten::matmul": matmul,
    "aten::bmm": lambda random, type: matrices(random, type, 1), "aten::conv2d": convolution([1]),
    "aten::convolution": convolution([False, [0, 0], 1]),
    "aten::_convolution": convolution([False, [0, 0], 1, False, True, False, True]),
    "aten::max_pool2d": pool([[1, 1], False]), "aten::avg_pool2d": pool([False, True, None]),
    "aten::adaptive_avg_pool2d": lambda random, type: [of(random, type, 2, few(random, 20), few(random, 9), 7), [1, 1]],
    "aten::tril": triangle([0, -1]), "aten::triu": triangle([0, 1]),
}  # fmt: skip
"""Arguments of each operator whose functions know sizes."""


def test_each_operator_is_tried() -> None:
    assert MADE.keys() == CALLS.keys()
    assert {*JOINS, *COPIES, *LOOKED_UP, "aten::gather", *PUT, "aten::contiguous"} == MOVING.keys()
    assert CONVERTED.keys() == CONVERTING.keys() and {*PAIRS} == PAIRED.keys()


def stubs_of(op: Op) -> Callable[..., Any]:
    return serving._chained(op.name, serving._known(op, is_hooked=True), missed)


def found(name: str) -> Op:
    op = table.find(name)
    assert op is not None
    return op


def defined(op: Op, given: list[Any]) -> Any:
    """The result by numpy alone, or the error."""
    HOOKS.python_only = True
    try:
        return op.compiled.run(*given)
    except Exception as error:
        return error
    finally:
        HOOKS.python_only = False


TRIED = [
    *((name, np.float32, np.float64) for name in MADE),
    *((f"aten::{name}", np.complex64, np.complex128) for name in ("linear", "mm", "addmm", "matmul", "bmm")),
]
"""The same with the dtype of most of their tensors, and that of the others."""


@pytest.mark.parametrize(("name", "most", "others"), TRIED)
def test_functions_of_any_size_give_what_the_definition_gives(name: str, most: Any, others: Any) -> None:
    op, random, served = found(name), np.random.default_rng(len(name)), 0
    stubs = stubs_of(op)
    for _ in range(ROUNDS):
        given = MADE[name](random, most if random.random() < 0.8 else others)
        try:
            result = stubs(*given)
        except Missed:
            continue
        served += 1
        wanted = defined(op, given)
        assert isinstance(wanted, Tensor), wanted
        a, b = result.array, wanted.array
        assert (a.dtype, a.shape, a.strides) == (b.dtype, b.shape, b.strides)
        assert np.abs(a - b).max() <= 40 * np.finfo(b.dtype).eps * max(1, np.abs(b).max())
    assert served > ROUNDS // 4


@pytest.mark.parametrize(("name", "most", "others"), TRIED)
def test_sizes_that_do_not_fit_are_left_to_python(name: str, most: Any, others: Any) -> None:
    op, random = found(name), np.random.default_rng(1)
    stubs = stubs_of(op)
    for _ in range(ROUNDS):
        given = MADE[name](random, most)
        place = [i for i, each in enumerate(given) if isinstance(each, Tensor)]
        i = place[random.integers(len(place))]
        array = given[i].array
        ways = (array[..., :0], array[..., None], array[0], np.concatenate([array, array]), array.astype(others))
        given[i] = Tensor(ways[random.integers(len(ways))])
        try:
            result = stubs(*given)
        except Missed:
            continue
        wanted = defined(op, given)
        assert isinstance(wanted, Tensor), wanted
        agree(result, wanted, np.full(wanted.array.shape, 1e-4))


RECORDED = [
    *((f"aten::{name}", np.float32) for name in ("convolution", "embedding", "gather")),
    *((f"aten::{name}", type) for name in ("linear", "mm", "addmm", "matmul", "bmm")
      for type in (np.float32, np.complex64)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "type"), RECORDED)
def test_calls_are_recorded_as_those_of_the_definition(name: str, type: Any) -> None:
    """Whichever tensors require grad, the node is the same, and so are gradients of gradients' sources."""
    op, random, served = found(name), np.random.default_rng(4), 0
    serving.record(op)
    stubs = stubs_of(op)
    for _ in range(ROUNDS):
        given = MADE[name](random, type) if name in MADE else PLACED[name](random)
        floats = [each for each in given if isinstance(each, Tensor) and each.array.dtype.kind in "fc"]
        for each in floats:
            each.requires_grad_(bool(random.integers(2)))
        try:
            result = stubs(*given)
        except Missed:
            continue
        served += 1
        wanted = op.compiled.run(*given)
        assert result.requires_grad == wanted.requires_grad == any(each.requires_grad for each in floats)
        if not result.requires_grad:
            continue
        mine, theirs = result.grad_fn, wanted.grad_fn
        assert (mine.name(), mine.plan, [*map(tuple, mine.outputs)]) == (
            theirs.name(),
            theirs.plan,
            [*map(tuple, theirs.outputs)],
        )
        assert [e and e[:2] for e in mine.edges] == [e and e[:2] for e in theirs.edges]
        for kept, other in zip(mine.kept, theirs.kept, strict=True):
            assert kept == other or (kept.held is other.held and kept.version == other.version)
        asked = [each for each in floats if each.requires_grad]
        pairs = (torch.autograd.grad(each.abs().sum(), asked, allow_unused=True) for each in (result, wanted))
        for a, b in zip(*pairs, strict=True):
            agree(a, b, np.full(b.array.shape, 1e-3))
    assert served > ROUNDS // 6


def looked_up(random: Random) -> list[Any]:
    """A table and indices that it has."""
    weight = of(random, np.float32, few(random, 6), few(random, 6))
    indices = random.integers(0, weight.array.shape[0], [few(random), few(random)])
    return [weight, Tensor(indices), -1, False, False]


def gathered_floats(random: Random) -> list[Any]:
    """The same for a tensor of floats, all of which is as its operator wants it."""
    x = of(random, np.float32, few(random, 6), few(random, 6))
    return [x, 1, Tensor(random.integers(0, x.array.shape[1], (x.array.shape[0], few(random)))), False]


PLACED: dict[str, Callable[[Random], list[Any]]] = {"aten::embedding": looked_up, "aten::gather": gathered_floats}

# ------------------------------------------------------------------ what is copied

COPIES = ("aten::copy_", "aten::fill.Scalar", "aten::zero_", "aten::clone", "aten::full_like", "aten::zeros_like")


@pytest.mark.parametrize("name", [*COPIES, "aten::fill_.Scalar"])
def test_copies_are_those_of_the_definition(name: str) -> None:
    """Of all dtypes and layouts, into tensors that overlap with what is read, too."""
    op = found(name)
    form = serving._forms(op)[0]
    stubs, is_written = stubs_of(op), op.schema.arguments[0].is_write
    for type in sorted(form.entries):
        served = 0
        for call in library_samples.in_place(form, type) if is_written else library_samples.pointwise(form, type):
            one, other = library_samples.same(call), library_samples.same(call)
            try:
                result = stubs(*one)
            except Missed:
                continue
            served += 1
            wanted = op.compiled.run(*other)
            assert_copied(result, wanted)
            assert [each is result for each in one] == [each is wanted for each in other]
            for mine, theirs in zip(one, other, strict=True):
                if isinstance(mine, Tensor):
                    assert_copied(mine, theirs)
                    assert mine._version == theirs._version
        assert served > 3


def to_dtype(x: Tensor, other: Tensor) -> list[Any]:
    return [x, other.dtype.number, False, False, None]


CONVERTED: dict[str, Callable[[Tensor, Tensor], list[Any]]] = {
    "aten::to.dtype": to_dtype, "aten::to.prim_dtype": lambda x, other: to_dtype(x, other)[:-1],
    "aten::to.other": lambda x, other: [x, other, False, False, None], "aten::type_as": lambda x, other: [x, other],
    "aten::copy_": lambda x, other: [other, x, False],
}  # fmt: skip
"""Arguments to convert a tensor to the dtype of another one."""


@np.errstate(all="ignore")
@pytest.mark.parametrize("source", words.TYPES)
@pytest.mark.parametrize("name", CONVERTED)
def test_conversions_are_those_of_the_definition(name: str, source: str) -> None:
    """Between all types, of all layouts; into tensors of all layouts, that fit or do not, or overlap; the tensor itself
    where nothing changes."""
    op = found(name)
    stubs, makes = stubs_of(op), name != "aten::copy_"
    for target in words.TYPES if makes else {*words.TYPES} - {source}:
        served = 0
        for pair in library_samples.converted(source, target):
            one, other = (CONVERTED[name](*library_samples.same(pair)) for _ in range(2))
            before = one[0].array.tobytes()
            try:
                result = stubs(*one)
            except Missed:
                assert one[0].array.tobytes() == before and one[0]._version == 0
                mine, theirs = outcome(op.run, one), defined(op, other)
                assert isinstance(mine, Tensor) or (type(mine), str(mine)) == (type(theirs), str(theirs))
                if isinstance(mine, Tensor):
                    assert_converted(mine, theirs)
                continue
            served += 1
            wanted = defined(op, other)
            assert_converted(result, wanted)
            assert (result is one[0], result._version, result._base) == (wanted is other[0], wanted._version, None)
        assert served > 30


def assert_converted(result: Any, wanted: Any) -> None:
    """The same numbers, dtypes and strides, zeros with their signs, NaN whatever its bits."""
    assert isinstance(wanted, Tensor), wanted
    a, b = result.array, wanted.array
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.strides == b.strides or a.size < 2, (a.strides, b.strides)
    if a.dtype.kind in "fVc":
        a, b = (each.astype(np.complex128).view(np.float64) for each in (a.ravel(), b.ravel()))
        np.testing.assert_array_equal(np.signbit(a) & (a == 0), np.signbit(b) & (b == 0))
    np.testing.assert_array_equal(a, b)


def test_conversions_are_recorded() -> None:
    """Between floats; to whole numbers nothing flows, and to the same dtype the tensor is handed on."""
    op = found("aten::to.dtype")
    serving.record(op)
    stubs, x = stubs_of(op), torch.arange(6.0).view(2, 3).requires_grad_()
    result = stubs(x, torch.float64.number, False, False, None)
    wanted = op.compiled.run(x, torch.float64.number, False, False, None)
    assert (result.grad_fn.name(), result.grad_fn.plan) == (wanted.grad_fn.name(), wanted.grad_fn.plan)
    (result * 3).sum().backward()
    assert x.grad.dtype is torch.float32 and x.grad.tolist() == [[3] * 3] * 2
    assert x.float() is x and x.to(torch.float32) is x and x.type_as(x) is x
    assert not x.long().requires_grad and x.half().requires_grad and (x * 2).double().requires_grad
    leaf = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.copy_(torch.ones(3))
    y = leaf * 2
    y.copy_(x[0])
    y.sum().backward()
    assert leaf.grad.tolist() == [0, 0, 0] and x.grad.tolist() == [[4] * 3, [3] * 3]


def test_methods_name_dtypes_and_operators_number_them() -> None:
    x = torch.ones(3)
    assert x.to(torch.int64).dtype is torch.ops.aten.to.dtype(x, torch.int64).dtype is torch.int64
    for wrong in (lambda: x.to(4), lambda: x.to(1.0), lambda: x.to("no device")):
        with pytest.raises((RuntimeError, TypeError)):
            wrong()
    assert x.to(torch.float32, copy=True) is not x and x.to("cpu") is x
    assert x.to(torch.ones(1).double()).dtype is torch.float64
    assert x.bool().dtype is torch.bool and x.half().to(torch.bfloat16).float().tolist() == [1, 1, 1]


def assert_copied(result: Tensor, wanted: Tensor) -> None:
    """The same bits, NaN's included, in the same order in memory."""
    a, b = result.array, wanted.array
    assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    assert a.strides == b.strides or a.size < 2


def test_copies_that_do_not_fit_are_refused_as_ever() -> None:
    x = torch.zeros(3, 4)
    with pytest.raises(RuntimeError, match="size"):
        x.copy_(torch.ones(5))
    with pytest.raises(RuntimeError, match="single memory location"):
        x[:1].expand(3, 4).copy_(torch.ones(3, 4))
    assert x.copy_(torch.ones(4, dtype=torch.float64)).tolist() == [[1] * 4] * 3
    assert x.fill_(True).tolist() == [[1] * 4] * 3 and x._version == 2
    leaf = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.zero_()
    y = leaf * 2
    y.copy_(leaf * 3)
    y[0].fill_(0.0)
    y.sum().backward()
    assert leaf.grad.tolist() == [0, 3, 3]


# ------------------------------------------------------------------ what is moved

JOINS = ("aten::cat", "aten::concat", "aten::concatenate", "aten::stack")
TYPES = (np.float32, np.float32, np.complex128, np.int64, np.bool_, np.complex64, np.float16)


@pytest.mark.parametrize("name", JOINS)
def test_joins_are_those_of_the_definition(name: str) -> None:
    op, random, served = found(name), np.random.default_rng(2), 0
    stubs = stubs_of(op)
    for _ in range(20 * ROUNDS):
        given = joined(random, is_new=name == "aten::stack")
        try:
            result = stubs(*given)
        except Missed:
            continue
        served += 1
        assert_same(result, defined(op, given))
    assert served > ROUNDS


def joined(random: Random, *, is_new: bool) -> list[Any]:
    """Tensors that mostly fit beside one another, and a dimension that mostly is there."""
    rank = int(random.integers(0, 4))
    sizes, axis = random.integers(0 if random.random() < 0.1 else 1, 4, rank), int(random.integers(-rank - 2, rank + 2))
    tensors = []
    for _ in range(random.integers(1, 5)):
        own = [*map(int, sizes)]
        if not is_new and -rank <= axis < rank:
            own[axis] = int(random.integers(0, 4))
        if random.random() < 0.05:
            own.append(1)
        type = TYPES[0] if random.random() < 0.9 else TYPES[random.integers(len(TYPES))]
        array = random.integers(0, 9, own).astype(type)
        tensors.append(Tensor(np.asfortranarray(array) if random.random() < 0.1 else array))
    return [tensors, axis]


def test_rows_are_those_that_indices_name() -> None:
    op, random, served = found("aten::embedding"), np.random.default_rng(3), 0
    stubs = stubs_of(op)
    for _ in range(20 * ROUNDS):
        weight = of(random, TYPES[0], *random.integers(1, 5, 2 if random.random() < 0.9 else random.integers(1, 4)))
        count, beyond = weight.array.shape[0], random.random() < 0.1
        shape = random.integers(0 if random.random() < 0.1 else 1, 4, random.integers(0, 3))
        indices = np.asarray(
            random.integers(-beyond, count + beyond, shape), np.int64 if random.random() < 0.9 else np.int32
        )
        given = [weight, Tensor(indices), -1, False, False]
        try:
            result = stubs(*given)
        except Missed:
            continue
        served += 1
        assert_same(result, defined(op, given))
    assert served > ROUNDS


LOOKED_UP = ("aten::embedding", "aten::index_select", "aten::index.Tensor")


@pytest.mark.parametrize("name", LOOKED_UP[1:])
def test_parts_are_those_that_indices_name(name: str) -> None:
    """Along any dimension, from the end where the operator counts so, and with indices that are refused."""
    op, random, served = found(name), np.random.default_rng(8), 0
    stubs = stubs_of(op)
    for _ in range(20 * ROUNDS):
        x = Tensor(
            random.integers(0, 99, random.integers(1, 5, random.integers(0, 4))).astype(TYPES[random.integers(7)])
        )
        rank = max(x.array.ndim, 1)
        dim = int(random.integers(-rank, rank + (random.random() < 0.1))) if name == LOOKED_UP[1] else 0
        size = ([*x.array.shape] or [1])[dim % rank]
        beyond = int(random.random() < 0.1)
        shape = random.integers(0 if random.random() < 0.1 else 1, 4, random.integers(0, 3))
        indices = random.integers(-size - beyond if random.random() < 0.3 else 0, size + beyond, shape)
        index = Tensor(np.asarray(indices, np.int64 if random.random() < 0.9 else np.int32))
        given = [x, dim, index] if name == LOOKED_UP[1] else [x, [index, None] if random.random() < 0.05 else [index]]
        try:
            result = stubs(*given)
        except Missed:
            result = outcome(op.run, given)
            wanted = defined(op, given)
            assert (type(result), str(result)) == (type(wanted), str(wanted)) or isinstance(result, Tensor)
            continue
        served += 1
        assert_same(result, defined(op, given))
    assert served > ROUNDS


def test_what_is_gathered_lies_where_the_index_says() -> None:
    """Along any dimension, by indices as large as the tensor or smaller, with those that are refused."""
    op, random, served = found("aten::gather"), np.random.default_rng(10), 0
    stubs = stubs_of(op)
    for _ in range(40 * ROUNDS):
        given = gathered(random)
        try:
            result = stubs(*given)
        except Missed:
            result, wanted = outcome(op.run, given), defined(op, given)
            assert (type(result), str(result)) == (type(wanted), str(wanted)) or isinstance(result, Tensor)
            continue
        served += 1
        assert_same(result, defined(op, given))
    assert served > 10 * ROUNDS
    large = Tensor(random.normal(size=(40, 300, 30)).astype(np.float32))
    for dim in range(3):
        given = [large, dim, Tensor(random.integers(0, large.array.shape[dim], (40, 290, 30))), False]
        assert_same(stubs(*given), defined(op, given))


def gathered(random: Random) -> list[Any]:
    """A tensor, a dimension that mostly is there, and an index that mostly fits."""
    array = random.integers(0, 99, random.integers(1, 5, random.integers(0, 5))).astype(TYPES[random.integers(7)])
    rank = array.ndim
    dim = int(random.integers(-max(rank, 1), max(rank, 1) + (random.random() < 0.1)))
    sizes = [
        n if random.random() < 0.7 else int(random.integers(0 if random.random() < 0.1 else 1, n + 1))
        for n in array.shape
    ]
    if rank:
        sizes[dim % rank] = int(random.integers(1, 7))
    if random.random() < 0.1:
        sizes = [*sizes, 1] if random.random() < 0.5 else [n + 1 for n in sizes]
    beyond, most = int(random.random() < 0.1), ([*array.shape] or [1])[dim % max(rank, 1)]
    index = np.asarray(random.integers(-beyond, most + beyond, sizes), np.int64 if random.random() < 0.9 else np.int32)
    ways = [*library_samples.layouts(array)], [*library_samples.layouts(index)]
    array, index = (way[0 if random.random() < 0.8 else random.integers(len(way))] for way in ways)
    return [Tensor(array), dim, Tensor(index), random.random() < 0.05]


PUT = ("aten::index_put_", "aten::index_put_.hacked_twin")


@pytest.mark.parametrize("name", PUT)
def test_what_is_put_lies_where_the_definition_puts_it(name: str) -> None:
    """By indices, from the end too, and masks; one number for all places, or one for each; with what is refused."""
    op, random = found(name), np.random.default_rng(9)
    stubs, served, masks = stubs_of(op), 0, 0
    for _ in range(40 * ROUNDS):
        one = put(random)
        other = library_samples.same([*one[:1], *one[1], *one[2:]])
        other = [other[0], [other[1]], *other[2:]]
        before = one[0].array.tobytes()
        try:
            result = stubs(*one)
        except Missed:
            assert one[0].array.tobytes() == before and one[0]._version == 0
            continue
        wanted = op.compiled.run(*other)
        served, masks = served + 1, masks + (one[1][0].array.dtype == np.bool_)
        assert result is one[0] and wanted is other[0] and result._version == wanted._version == 1
        assert_copied(result, wanted)
    assert min(masks, served - masks) > ROUNDS


def put(random: Random) -> list[Any]:
    """A tensor, an index or a mask, and numbers that mostly fit, some of which lie in the tensor's own memory."""
    x = random.integers(0, 99, random.integers(1, 4, random.integers(1, 4))).astype(TYPES[random.integers(7)])
    if random.random() < 0.1:
        x = np.asfortranarray(x)
    if random.random() < 0.5:
        count = 0 if random.random() < 0.1 else int(random.integers(1, x.ndim + 1))
        index = random.random(x.shape[:count]) < 0.6
        sizes = [int(index.sum()), *x.shape[count:]]
    else:
        beyond = int(random.random() < 0.1)
        shape = random.integers(0 if random.random() < 0.1 else 1, 4, random.integers(0, 3))
        index = np.asarray(random.integers(-x.shape[0] - beyond, x.shape[0] + beyond, shape))
        sizes = [*map(int, shape), *x.shape[1:]]
    way = random.random()
    if way < 0.3:
        sizes = [1] * int(random.integers(0, len(sizes) + 1))
    elif way < 0.4:
        sizes = [*sizes, 2]
    values = random.integers(0, 99, sizes).astype(x.dtype)
    if random.random() < 0.1 and values.size == x.size:
        values = x.reshape(values.shape)
    return [Tensor(x), [Tensor(index)], Tensor(values), random.random() < 0.05]


def outcome(run: Callable[..., Any], given: list[Any]) -> Any:
    try:
        return run(*given)
    except Exception as error:
        return error


PAIRS = (
    "aten::max.dim", "aten::min.dim", "aten::var_mean", "aten::var_mean.dim", "aten::std_mean", "aten::std_mean.dim",
)  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_both_results_are_those_of_the_definition(name: str) -> None:
    op, is_extreme = found(name), name.startswith("aten::m")
    for form, type in itertools.product(serving._forms(op), ("f32", "f64", "bf16", *["i64"] * is_extreme)):
        served, stub = 0, serving._chained(op.name, serving._described(op, [form], is_hooked=True), missed)
        for call in library_samples.along(form, type):
            try:
                result = stub(*call)
            except Missed:
                continue
            served += 1
            wanted = defined(op, call)
            assert len(result) == len(wanted) == 2
            for mine, theirs in zip(result, wanted, strict=True):
                agree(mine, theirs, 0.0 if is_extreme else 1e-5)
                assert mine.array.strides == theirs.array.strides or mine.array.size < 2
        assert served > 9
    largest = torch.tensor([[1.0, 3.0], [5.0, 2.0]], requires_grad=True).max(1)
    assert largest.values.tolist() == [3, 5] and largest.indices.tolist() == [1, 0]
    assert largest.values.requires_grad and not largest.indices.requires_grad


def test_both_results_are_recorded_by_one_node() -> None:
    """Also where the operators that give them are recorded by stubs."""
    x = torch.tensor([[1.0, 1.0], [0.0, 2.0]], requires_grad=True)
    for each in (x.amax(1), x.var(1), x.mean(1)):
        each.sum().backward()
    variance, mean = torch.var_mean(x, 1)
    assert variance.grad_fn is mean.grad_fn and variance.grad_fn.name() == "VarMeanBackward0"
    assert x.max(1).values.grad_fn.name() == "MaxBackward0"


def assert_same(result: Any, wanted: Any) -> None:
    assert isinstance(wanted, Tensor), wanted
    a, b = result.array, wanted.array
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.strides == b.strides or a.size < 2
    np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------ results that are written to a tensor

OUT = [
    op for op in table.entries()
    if op.functional is not None and op.schema.arguments[-1].kwarg_only and op.schema.arguments[-1].is_write
    and next(rows.calls_of(op.functional), None) is not None
]  # fmt: skip


@pytest.mark.parametrize("op", [op for place, op in enumerate(OUT) if place % 7 == 0], ids=lambda op: op.qualified_name)
def test_out_forms_write_what_the_definition_writes(op: Op) -> None:
    """Into tensors that fit, lie otherwise, overlap with an operand, have to be resized, or are refused."""
    assert op.functional is not None
    served = 0
    for form in serving._forms(op):
        type, number = (np.float32, 1.5) if "f32" in form.entries else (np.int64, 3)
        x, y = (np.random.default_rng(i).normal(0, 9, (4, 6)).astype(type) for i in range(2))
        stub = serving._chained(op.name, serving._described(op, [form], is_hooked=True), missed)
        for place in range(6):
            given = [_operand(each, x if i % 2 else y, number) for i, each in enumerate(form.given[:-1])]
            result = op.functional.compiled.run(*given)
            target = _target(place, result.array, next(each for each in given if isinstance(each, Tensor)))
            other = Tensor(target.array.copy("K"))
            before = target.array
            try:
                assert stub(*given, target) is target
            except Missed:
                continue
            served += 1
            assert target.array is before and target._version == 1
            op.compiled.run(*given, other)
            agree(target, other, np.full(other.array.shape, 1e-5))
    assert served


def _operand(given: Any, array: Array, number: Any) -> Any:
    match given.kind:
        case "TENSORS":
            return Tensor(np.abs(array))
        case "POINTS":
            return Tensor(np.abs(array[0, 0]))
        case "TRUTHS":
            return Tensor(array > 0)
        case "NUMBERS" | "SETTINGS":
            return number
    return fixed(given)


def _target(place: int, result: Array, operand: Tensor) -> Tensor:
    made: tuple[Callable[[], Array], ...] = (
        lambda: np.empty_like(result), lambda: np.empty(result.shape[::-1], result.dtype).T,
        lambda: np.empty((4, 12), result.dtype)[:, ::2], lambda: operand.array[::-1],
        lambda: np.empty((2, 3), result.dtype), lambda: np.empty(result.shape, np.int8),
    )  # fmt: skip
    return Tensor(made[place]())
