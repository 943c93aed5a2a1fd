"""Shape rules: the sizes of an operator's result, from those of its arguments; sizes may be unknown one by one.

In: what is known of a call's arguments, by name.  Out: the sizes of its (first) result, or None where the rank is not
known.  Rows name one of these functions as their `shape`, or the argument whose sizes the result has; pointwise rows
need neither.  Sizes that do not fit give None: the error is the operator's own, when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from engine.lang.types import TensorType

Sizes = tuple[int | None, ...]


class Arguments(Protocol):
    """The arguments of one call, by the names of the schema, as far as they are known."""

    def __contains__(self, name: str, /) -> bool:
        """True if the operator has such an argument."""

    def sizes(self, name: str) -> Sizes | None:
        """The sizes of a tensor."""

    def tensors(self) -> list[TensorType]:
        """The types of all tensors, those in lists excluded."""

    def elements(self, name: str) -> list[TensorType] | None:
        """The types of the tensors in a list, or None when its length is unknown."""

    def value(self, name: str) -> Any:
        """The value of an argument, or an object of no such type when it is unknown."""

    def flag(self, name: str) -> bool | None:
        """The value of a bool, or None when it is unknown; False if there is no such argument."""

    def integer(self, name: str) -> int | None:
        """The value of an int, or None when it is unknown."""

    def integers(self, name: str) -> list[int | None] | None:
        """The numbers of a list, None for those that are unknown; None when its length is unknown."""


Rule = Callable[[Arguments], Sizes | None]


def normalized_index(index: int, length: int) -> int | None:
    """The index counted from the start, or None outside."""
    index += length if index < 0 else 0
    return index if 0 <= index < length else None


def broadcast(shapes: Sequence[Sizes | None]) -> Sizes | None:
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


def pointwise(known: Arguments) -> Sizes | None:
    """All tensors broadcast together."""
    return broadcast([type.sizes for type in known.tensors()])


def product(first: str, second: str) -> Rule:
    """The matrix product of two arguments."""
    return lambda known: _product(known.sizes(first), known.sizes(second))


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


def linear(known: Arguments) -> Sizes | None:
    """The last dimension of `input` becomes that of the result's features."""
    given, weight = known.sizes("input"), known.sizes("weight")
    if not given or not weight or len(weight) > 2:
        return None
    return (*given[:-1], *weight[:-1])


def reduced(known: Arguments) -> Sizes | None:
    """Without the dimensions `dim`, all where there are none, or with 1 in their places for `keepdim`."""
    sizes, keepdim = known.sizes("self"), known.flag("keepdim")
    dims = None if sizes is None or keepdim is None else _dims(known, len(sizes))
    if sizes is None or dims is None:
        return None
    if keepdim:
        return tuple(1 if at in dims else size for at, size in enumerate(sizes))
    return tuple(size for at, size in enumerate(sizes) if at not in dims)


def _dims(known: Arguments, rank: int) -> set[int] | None:
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


def t(known: Arguments) -> Sizes | None:
    """Up to two dimensions, reversed."""
    sizes = known.sizes("self")
    return None if sizes is None or len(sizes) > 2 else sizes[::-1]


def transpose(known: Arguments) -> Sizes | None:
    """`dim0` and `dim1` swapped."""
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


def permute(known: Arguments) -> Sizes | None:
    """The dimensions in the order `dims`."""
    sizes, dims = known.sizes("self"), known.integers("dims")
    if sizes is None or dims is None or len(dims) != len(sizes):
        return None
    places = [None if dim is None else normalized_index(dim, len(sizes)) for dim in dims]
    return tuple(None if at is None else sizes[at] for at in places)


def unsqueeze(known: Arguments) -> Sizes | None:
    """A 1 inserted at `dim`."""
    sizes, dim = known.sizes("self"), known.integer("dim")
    at = None if sizes is None or dim is None else normalized_index(dim, len(sizes) + 1)
    return None if at is None or sizes is None else (*sizes[:at], 1, *sizes[at:])


def select(known: Arguments) -> Sizes | None:
    """Without the dimension `dim`."""
    sizes, dim = known.sizes("self"), known.integer("dim")
    at = None if sizes is None or dim is None else normalized_index(dim, len(sizes))
    return None if at is None or sizes is None else (*sizes[:at], *sizes[at + 1 :])


def reshaped(name: str) -> Rule:
    """The sizes asked for as the argument `name`, with -1 inferred."""

    def rule(known: Arguments) -> Sizes | None:
        wanted = known.integers(name)
        if wanted is None:
            return None
        return _worked_out(known.sizes("self"), wanted)

    return rule


def _worked_out(sizes: Sizes | None, wanted: list[int | None]) -> Sizes | None:
    """The wanted sizes with -1 inferred, where that is possible."""
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


def flatten(known: Arguments) -> Sizes | None:
    """`start_dim` to `end_dim` merged."""
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


def cat(known: Arguments) -> Sizes | None:
    """The lengths along `dim` added up."""
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


def stack(known: Arguments) -> Sizes | None:
    """The number of tensors inserted at `dim`."""
    tensors, dim = known.elements("tensors"), known.integer("dim")
    shapes = [type.sizes for type in tensors or () if type.sizes is not None]
    at = None if not shapes or dim is None else normalized_index(dim, len(shapes[0]) + 1)
    return None if at is None or tensors is None else (*shapes[0][:at], len(tensors), *shapes[0][at:])


def created(known: Arguments) -> Sizes | None:
    """Those asked for as `size`."""
    sizes = known.integers("size")
    return None if sizes is None else tuple(sizes)


def embedding(known: Arguments) -> Sizes | None:
    """One row of `weight` for each index."""
    weight, indices = known.sizes("weight"), known.sizes("indices")
    return None if not weight or indices is None else (*indices, *weight[1:])


def convolution(known: Arguments) -> Sizes | None:
    """Channels and windows of `weight` over `input`; as many dimensions as that has, where nothing else is known."""
    given, weight = known.sizes("input"), known.sizes("weight")
    if given is None or weight is None or known.flag("transposed") is not False:
        return None if given is None else (None,) * len(given)
    if len(given) not in (len(weight) - 1, len(weight)):
        return None
    places = len(weight) - 2
    spatial = _windows(known, given[len(given) - places :], weight[2:], ceil=False)
    return None if spatial is None else (*given[: len(given) - places - 1], weight[0], *spatial)


def pooled(places: int) -> Rule:
    """Windows over the last `places` dimensions."""

    def rule(known: Arguments) -> Sizes | None:
        given, kernel = known.sizes("self"), known.integers("kernel_size")
        ceil = known.flag("ceil_mode")
        if given is None or kernel is None or ceil is None or len(given) < places:
            return None
        kernel = kernel * places if len(kernel) == 1 else kernel
        spatial = _windows(known, given[len(given) - places :], tuple(kernel), ceil=ceil)
        return None if spatial is None else (*given[: len(given) - places], *spatial)

    return rule


def _windows(known: Arguments, sizes: Sizes, kernel: Sizes, *, ceil: bool) -> Sizes | None:
    """The number of positions of a window in each dimension."""
    count = len(sizes)
    stride = _each(known, "stride", count) if known.value("stride") != [] else list(kernel)
    padding, dilation = _each(known, "padding", count), _each(known, "dilation", count)
    if stride is None or padding is None or dilation is None or len(kernel) != count:
        return None
    rows = zip(sizes, kernel, stride, padding, dilation, strict=True)
    return tuple(None if None in row else _window(*row, ceil) for row in rows)  # type: ignore[arg-type]


def _each(known: Arguments, name: str, count: int) -> list[int | None] | None:
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


def adaptive(places: int) -> Rule:
    """`output_size` in place of the last `places` dimensions."""

    def rule(known: Arguments) -> Sizes | None:
        given, wanted = known.sizes("self"), known.integers("output_size")
        if given is None or wanted is None or len(given) < places:
            return None
        return (*given[: len(given) - places], *(wanted * places if len(wanted) == 1 else wanted))

    return rule


def of_unknown_length(known: Arguments) -> Sizes:
    """One dimension, as long as the elements decide."""
    return (None,)
