"""Tensors that are more than numbers in rows: quantized, sparse, nested ones, and those without any numbers.

In: the arguments of the functions that PyTorch's pickles name for them.  Out: a `TensorEntry` with a note on what its
integers stand for, or `TensorParts`, the plain tensors that it is made of, by name:

    coo.indices        int64    2 × 2      of a sparse_coo tensor of 2 × 3
    coo.values         float32  2          of a sparse_coo tensor of 2 × 3
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from engine.lang import scalars
from engine.lang.records import dataclass
from engine.serialize.pickling.entries import StorageEntry, StorageKind, TensorEntry, checked, size_of
from engine.serialize.pickling.scan import PickleRefusal, expect_tuple

RAW_DTYPES: Final = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}
"""Dtype of a quantized tensor -> that of the integers in its memory."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorParts:
    """Plain tensors by the name that each has inside; "" is the tensor's own."""

    entries: tuple[tuple[str, TensorEntry], ...]


def _damaged() -> PickleRefusal:
    return PickleRefusal("a tensor's description is damaged")


def _parts(names: str, found: tuple[Any, ...], note: str) -> TensorParts:
    """The tensors under these names, each with the note."""
    if not all(isinstance(each, TensorEntry) for each in found):
        raise _damaged()
    named = zip(names.split(), found, strict=True)
    return TensorParts(tuple((name, replace(each, note=note)) for name, each in named))


def _shown(sizes: Any) -> str:
    return " × ".join(map(str, size_of(sizes))) or "no dimensions"


def quantized(
    storage: Any, offset: Any, size: Any, stride: Any, quantizer: Any, *_rest: Any
) -> TensorEntry | TensorParts:
    """`_rebuild_qtensor`: integers, and how they become numbers."""
    kind = storage.kind.dtype if isinstance(storage, StorageEntry) else None
    if kind is None or len(expect_tuple(quantizer, "how a tensor is quantized")) < 3:
        raise _damaged()
    entry = checked(storage, kind, storage.count, offset, size, stride)
    _, scale, zero, *axis = quantizer
    if isinstance(scale, TensorEntry) and isinstance(zero, TensorEntry):
        note = f"quantized by channels of dimension {axis[0] if axis else 0}"
        of_it = f"of a {kind.name} tensor of {_shown(entry.shape)}"
        parts = _parts("scales zero_points", (scale, zero), of_it).entries
        return TensorParts((("", replace(entry, note=note)), *parts))
    if not all(isinstance(each, (int, float)) for each in (scale, zero)):
        raise _damaged()
    return replace(entry, note=f"quantized: {scale} × (number − {zero})")


def sparse(layout: Any, *described: Any) -> TensorParts:
    """`_rebuild_sparse_tensor`, of every layout.

    torch.save gives its name and `(indices, values, size)`, torch.jit.save its number, size, requires_grad and parts.
    """
    arguments = getattr(layout, "arguments", None)
    number = layout if type(layout) is int else -1
    name = str(arguments[0]).removeprefix("torch.") if arguments else _BY_NUMBER.get(number, "")
    if name not in _SPARSE or not described:
        raise _damaged()
    count = len(_SPARSE[name].split())
    data = (*described[2 : 2 + count], described[0]) if type(layout) is int else described[0]
    if len(expect_tuple(data, "what a tensor is made of")) <= count:
        raise _damaged()
    return _parts(_SPARSE[name], data[:count], f"of a {name} tensor of {_shown(data[count])}")


_BY_NUMBER: Final = {each.number: name for name, each in scalars.LAYOUT_BY_NAME.items()}
_SPARSE: Final = {
    "sparse_coo": "indices values",
    **dict.fromkeys(("sparse_csr", "sparse_bsr"), "crow_indices col_indices values"),
    **dict.fromkeys(("sparse_csc", "sparse_bsc"), "ccol_indices row_indices values"),
}  # fmt: skip


def nested(*data: Any) -> TensorParts:
    """`_rebuild_nested_tensor`."""
    if len(data) != 4:
        raise _damaged()
    return _parts("buffer sizes strides offsets", data, "of a nested tensor")


def without_numbers(dtype: Any, size: Any, stride: Any, *_rest: Any) -> TensorEntry:
    """`_rebuild_meta_tensor_no_storage`: a tensor on the device `meta`."""
    sizes = size_of(size)
    if not isinstance(dtype, scalars.dtype) or any(n < 0 for n in sizes):
        raise _damaged()
    storage = StorageEntry("", StorageKind(dtype), "meta", 0)
    return TensorEntry(storage, dtype, 0, sizes, (0,) * len(sizes), note="on meta: without numbers")
