"""The sizes of what operators give, from those of what they take; sizes may be unknown one by one.

In: what is known of a node's arguments.  Out: the sizes of its results, or None where the rank is not known.  One row
for each operator whose result need not be computed to know its sizes; pointwise operators and views need no row.
A row that cannot hold (sizes that do not fit) gives None: what is wrong is the program's to meet when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.ir.constants import NOT_CONSTANT
from engine.ir.facts.tensors import Known, Sizes
from engine.ir.match import normalized_index

Rule = Callable[[Known], Sizes | None]


def broadcast(shapes: list[Sizes | None]) -> Sizes | None:
    """The sizes that tensors of these sizes are brought to."""
    known = [sizes for sizes in shapes if sizes is not None]
    if len(known) != len(shapes) or not known:
        return None
    rank = max(map(len, known))
    padded = [(1,) * (rank - len(sizes)) + sizes for sizes in known]
    result = tuple(map(_broadcast_size, zip(*padded, strict=True)))
    return None if -1 in result else result


def _broadcast_size(sizes: tuple[int | None, ...]) -> int | None:
    """-1 where they do not fit."""
    numbers = {size for size in sizes if size is not None and size != 1}
    if len(numbers) > 1:
        return -1
    if numbers:
        return numbers.pop()
    return None if None in sizes else 1


def pointwise(known: Known) -> Sizes | None:
    return broadcast([type.sizes for type in known.tensors()])


def _same(name: str) -> Rule:
    return lambda known: known.sizes(name)


def _mm(known: Known) -> Sizes | None:
    return _product(known.sizes("self"), known.sizes("mat2"))


def _product(a: Sizes | None, b: Sizes | None) -> Sizes | None:
    if a is None or b is None or not a or not b:
        return None
    if len(a) == 1 and len(b) == 1:
        return ()
    if len(b) == 1:
        return a[:-1]
    if len(a) == 1:
        return (*b[:-2], b[-1])
    batch = broadcast([a[:-2], b[:-2]])
    return None if batch is None else (*batch, a[-2], b[-1])


def _matmul(known: Known) -> Sizes | None:
    return _product(known.sizes("self"), known.sizes("other"))


def _bmm(known: Known) -> Sizes | None:
    return _product(known.sizes("self"), known.sizes("mat2"))


def _addmm(known: Known) -> Sizes | None:
    return _product(known.sizes("mat1"), known.sizes("mat2"))


def _mv(known: Known) -> Sizes | None:
    return _product(known.sizes("self"), known.sizes("vec"))


def _linear(known: Known) -> Sizes | None:
    given, weight = known.sizes("input"), known.sizes("weight")
    if not given or not weight or len(weight) > 2:
        return None
    return (*given[:-1], *weight[:-1])


def _reduction(known: Known) -> Sizes | None:
    sizes = known.sizes("self")
    if sizes is None or ("keepdim" in known and known.value("keepdim") is NOT_CONSTANT):
        return None
    dims = _dims(known, len(sizes))
    if dims is None:
        return None
    if "keepdim" in known and known.value("keepdim"):
        return tuple(1 if at in dims else size for at, size in enumerate(sizes))
    return tuple(size for at, size in enumerate(sizes) if at not in dims)


def _extreme(known: Known) -> Sizes | None:
    return pointwise(known) if "other" in known else _reduction(known)


def _dims(known: Known, rank: int) -> set[int] | None:
    """The dimensions that are reduced; all where none is named."""
    if "dim" not in known:
        return set(range(rank))
    dims = known.value("dim")
    if dims is None or dims == []:
        return set(range(rank))
    wanted = [dims] if isinstance(dims, int) else dims
    if not isinstance(wanted, list) or not all(isinstance(dim, int) for dim in wanted):
        return None
    found = {normalized_index(dim, max(rank, 1)) for dim in wanted}
    return None if None in found else {dim for dim in found if dim is not None}


def _t(known: Known) -> Sizes | None:
    sizes = known.sizes("self")
    return None if sizes is None or len(sizes) > 2 else sizes[::-1]


def _transpose(known: Known) -> Sizes | None:
    sizes = known.sizes("self")
    first, second = known.integer("dim0"), known.integer("dim1")
    if not sizes or first is None or second is None:
        return None
    a, b = normalized_index(first, len(sizes)), normalized_index(second, len(sizes))
    if a is None or b is None:
        return None
    swapped = list(sizes)
    swapped[a], swapped[b] = swapped[b], swapped[a]
    return tuple(swapped)


def _permute(known: Known) -> Sizes | None:
    sizes, dims = known.sizes("self"), known.integers("dims")
    if sizes is None or dims is None or len(dims) != len(sizes):
        return None
    places = [None if dim is None else normalized_index(dim, len(sizes)) for dim in dims]
    return tuple(None if at is None else sizes[at] for at in places)


def _unsqueeze(known: Known) -> Sizes | None:
    sizes, dim = known.sizes("self"), known.integer("dim")
    at = None if sizes is None or dim is None else normalized_index(dim, len(sizes) + 1)
    return None if at is None or sizes is None else (*sizes[:at], 1, *sizes[at:])


def _select(known: Known) -> Sizes | None:
    sizes, dim = known.sizes("self"), known.integer("dim")
    at = None if sizes is None or dim is None else normalized_index(dim, len(sizes))
    return None if at is None or sizes is None else (*sizes[:at], *sizes[at + 1 :])


def _reshape(name: str) -> Rule:
    def rule(known: Known) -> Sizes | None:
        wanted = known.integers(name)
        if wanted is None:
            return None
        return _worked_out(known.sizes("self"), wanted)

    return rule


def _worked_out(sizes: Sizes | None, wanted: list[int | None]) -> Sizes | None:
    """The wanted sizes with their -1 worked out, where that can be."""
    if -1 not in wanted:
        return tuple(wanted)
    unknown = sizes is None or None in sizes or None in wanted
    have, used = 1, 1
    for size in () if unknown else sizes or ():
        have *= size or 0
    for size in wanted:
        used *= abs(size or 0)
    rest = None if unknown or used == 0 or have % used else have // used
    return tuple(rest if size == -1 else size for size in wanted)


def _flatten(known: Known) -> Sizes | None:
    sizes, start, end = known.sizes("self"), known.integer("start_dim"), known.integer("end_dim")
    if sizes is None or start is None or end is None:
        return None
    first, last = normalized_index(start, max(len(sizes), 1)), normalized_index(end, max(len(sizes), 1))
    if first is None or last is None or first > last:
        return None
    merged: int | None = 1
    for size in sizes[first : last + 1]:
        merged = None if size is None or merged is None else merged * size
    return (*sizes[:first], merged, *sizes[last + 1 :])


def _cat(known: Known) -> Sizes | None:
    tensors, dim = known.elements("tensors"), known.integer("dim")
    shapes = [type.sizes for type in tensors or ()]
    first = next((sizes for sizes in shapes if sizes is not None), None)
    if first is None or dim is None or any(sizes is None or len(sizes) != len(first) for sizes in shapes):
        return None
    at = normalized_index(dim, len(first))
    if at is None:
        return None
    columns = list(zip(*(sizes for sizes in shapes if sizes is not None), strict=True))
    total = None if None in columns[at] else sum(size or 0 for size in columns[at])
    others = [next((size for size in column if size is not None), None) for column in columns]
    return (*others[:at], total, *others[at + 1 :])


def _stack(known: Known) -> Sizes | None:
    tensors, dim = known.elements("tensors"), known.integer("dim")
    shapes = [type.sizes for type in tensors or () if type.sizes is not None]
    at = None if not shapes or dim is None else normalized_index(dim, len(shapes[0]) + 1)
    return None if at is None or tensors is None else (*shapes[0][:at], len(tensors), *shapes[0][at:])


def _created(known: Known) -> Sizes | None:
    sizes = known.integers("size")
    return None if sizes is None else tuple(sizes)


def _embedding(known: Known) -> Sizes | None:
    weight, indices = known.sizes("weight"), known.sizes("indices")
    return None if not weight or indices is None else (*indices, *weight[1:])


def _convolution(known: Known) -> Sizes | None:
    given, weight = known.sizes("input"), known.sizes("weight")
    transposed = known.value("transposed") if "transposed" in known else False
    if given is None or weight is None or transposed is not False or len(given) not in (len(weight) - 1, len(weight)):
        return None
    places = len(weight) - 2
    spatial = _windows(known, given[len(given) - places :], weight[2:], ceil=False)
    return None if spatial is None else (*given[: len(given) - places - 1], weight[0], *spatial)


def _pool(places: int) -> Rule:
    def rule(known: Known) -> Sizes | None:
        given, kernel = known.sizes("self"), known.integers("kernel_size")
        ceil = known.value("ceil_mode")
        if given is None or kernel is None or not isinstance(ceil, bool) or len(given) < places:
            return None
        kernel = kernel * places if len(kernel) == 1 else kernel
        spatial = _windows(known, given[len(given) - places :], tuple(kernel), ceil=ceil)
        return None if spatial is None else (*given[: len(given) - places], *spatial)

    return rule


def _windows(known: Known, sizes: Sizes, kernel: Sizes, *, ceil: bool) -> Sizes | None:
    """The number of window positions in each dimension."""
    count = len(sizes)
    stride = _each(known, "stride", count) if known.value("stride") != [] else list(kernel)
    padding, dilation = _each(known, "padding", count), _each(known, "dilation", count)
    if stride is None or padding is None or dilation is None or len(kernel) != count:
        return None
    rows = zip(sizes, kernel, stride, padding, dilation, strict=True)
    return tuple(None if None in row else _window(*row, ceil) for row in rows)  # type: ignore[arg-type]


def _each(known: Known, name: str, count: int) -> list[int | None] | None:
    if name not in known:
        return [1] * count
    given = known.integers(name)
    return given * count if given is not None and len(given) == 1 else given


def _window(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> int | None:
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    if room < 0 or stride <= 0:
        return None
    places = (room + (stride - 1 if ceil else 0)) // stride + 1
    return places - 1 if ceil and (places - 1) * stride >= size + padding else places


def _adaptive(places: int) -> Rule:
    def rule(known: Known) -> Sizes | None:
        given, wanted = known.sizes("self"), known.integers("output_size")
        if given is None or wanted is None or len(given) < places:
            return None
        return (*given[: len(given) - places], *(wanted * places if len(wanted) == 1 else wanted))

    return rule


def _rows(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys((f"aten::{name}" for name in names.split()), rule)


_SELF: Final = (
    "softmax log_softmax _softmax _log_softmax cumsum cumprod clone contiguous detach to type_as float double "
    "half int zeros_like ones_like empty_like full_like rand_like randn_like bernoulli triu tril flip roll relu "
    "relu6 gelu hardtanh leaky_relu elu selu softplus hardsigmoid hardswish silu mish logsigmoid fill zero "
    "alias cpu cuda sigmoid tanh argsort index_add index_copy index_fill scatter scatter_add"
)
_INPUT: Final = (
    "dropout feature_dropout alpha_dropout feature_alpha_dropout batch_norm layer_norm group_norm instance_norm"
)
_REDUCTIONS: Final = (
    "sum mean prod var std argmax argmin amax amin all any logsumexp norm nansum nanmean count_nonzero median"
)
SIZE_RULES: Final[dict[str, Rule]] = {
    **_rows(_SELF, _same("self")),
    **_rows(_INPUT, _same("input")),
    **_rows(_REDUCTIONS, _reduction),
    **_rows("max min", _extreme),
    **_rows("where masked_fill", pointwise),
    **_rows("zeros ones empty full rand randn randint", _created),
    **_rows("mm", _mm),
    **_rows("bmm", _bmm),
    **_rows("matmul dot", _matmul),
    **_rows("addmm", _addmm),
    **_rows("mv", _mv),
    **_rows("linear", _linear),
    **_rows("t", _t),
    **_rows("transpose", _transpose),
    **_rows("permute", _permute),
    **_rows("unsqueeze", _unsqueeze),
    **_rows("select", _select),
    **_rows("view _unsafe_view", _reshape("size")),
    **_rows("reshape", _reshape("shape")),
    **_rows("flatten", _flatten),
    **_rows("cat", _cat),
    **_rows("stack", _stack),
    **_rows("gather", _same("index")),
    **_rows("embedding", _embedding),
    **_rows("conv1d conv2d conv3d convolution _convolution", _convolution),
    **_rows("max_pool1d avg_pool1d", _pool(1)),
    **_rows("max_pool2d avg_pool2d", _pool(2)),
    **_rows("max_pool3d avg_pool3d", _pool(3)),
    **_rows("adaptive_avg_pool1d", _adaptive(1)),
    **_rows("adaptive_avg_pool2d", _adaptive(2)),
    **_rows("adaptive_avg_pool3d", _adaptive(3)),
}
