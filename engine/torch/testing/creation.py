"""`make_tensor`: random tensors of any dtype for tests.  In: shape, dtype, bounds.  Out: a tensor."""

from __future__ import annotations

from typing import Any, Final

from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Size, Tensor
from engine.lang import scalars

_BOUNDS: Final[dict[str, tuple[float, float]]] = {"bool": (0, 2), "int": (-9, 10), "float": (-9, 9), "complex": (-9, 9)}
"""Category -> the range of values; the upper bound is not reached."""


def make_tensor(
    *shape: Any,
    dtype: scalars.dtype,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Values drawn evenly from `[low, high)`; `noncontiguous` leaves gaps between the elements of a row.

    Raises ValueError for an empty range, or when tensors of whole numbers shall require grad.
    """
    sizes = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple, Size)) else list(shape)
    start, stop = (0, 10) if dtype is scalars.uint8 else _BOUNDS[dtype.category]
    start, stop = start if low is None else low, stop if high is None else high
    if start >= stop:
        raise ValueError(f"make_tensor: low must be weakly less than high, but got {start} and {stop}")
    if requires_grad and dtype.category in ("bool", "int"):
        raise ValueError(f"make_tensor: requires_grad must be False for integral dtype {dtype}")
    if noncontiguous and sizes:
        made = _drawn([*sizes[:-1], 2 * sizes[-1]], dtype, start, stop)[..., 1::2]
    else:
        made = _drawn(sizes, dtype, start, stop)
    if exclude_zero:
        made = made.masked_fill(made == 0, 1)
    return made.requires_grad_(requires_grad)  # type: ignore[no-any-return]


def _drawn(sizes: list[int], dtype: scalars.dtype, low: float, high: float) -> Tensor:
    if dtype.is_complex:
        pairs = call("empty", ([*sizes, 2],), {"dtype": dtype.to_real()}).uniform_(low, high)
        complex_: Tensor = call("view_as_complex", (pairs,), {})
        return complex_
    if dtype.is_floating_point:
        floats: Tensor = call("empty", (sizes,), {"dtype": dtype}).uniform_(low, high)
        return floats
    whole = call("randint", (int(low), int(high), sizes), {})
    made: Tensor = whole.to(dtype)
    return made
