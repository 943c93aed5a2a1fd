"""Argument checks of pooling, made before any element is read.

In: the shape of the input, and the sizes asked for.  Raises OperatorError; each function names what it checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from engine.lang.errors import OperatorError

Sizes = tuple[int, ...]


def max_pool1d(
    shape: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], ceil_mode: bool,
) -> None:  # fmt: skip
    """One dimension has words of its own for each mistake."""
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise OperatorError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, "
            f"but got:{list(shape)}"
        )
    given = {"kernel_size": kernel, "stride": stride or kernel, "padding": padding, "dilation": dilation}
    for name, values in given.items():
        if len(values) != 1:
            none = "None, " if name == "stride" else ""
            raise OperatorError(
                f"max_pool1d() {name} must be {none}an int, list of ints{',' if none else ''} or tuple of ints of "
                f"size 1 but got size {len(values)}"
            )
    (k, s, p, d) = (values[0] for values in given.values())
    _positive("kernel_size", k)
    _positive("stride", s)
    if p < 0:
        raise OperatorError(f"max_pool1d() padding must be non-negative, but got {p}")
    if p > k // 2:
        raise OperatorError(
            "max_pool1d() padding should be at most half of kernel size, "
            f"but got padding={p} and kernel_size={k}"
        )  # fmt: skip
    _positive("dilation", d)
    span = shape[-1] + 2 * p - d * (k - 1) - 1
    count = (-(-span // s) if ceil_mode else span // s) + 1
    if count < 1:
        raise OperatorError(f"max_pool1d() Invalid computed output size: {count}")


def _positive(name: str, value: int) -> None:
    if value < 1:
        raise OperatorError(f"max_pool1d() {name} must be greater than zero, but got {value}")


def space_is_there(name: str, n: int, shape: Sequence[int]) -> None:
    """Only a batch may be empty, neither the channels nor the space."""
    if 0 not in shape[-n - 1 :]:
        return
    if n < 3:
        raise OperatorError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, "
            f"but got:{list(shape)}"
        )
    raise OperatorError(
        f"{name}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
        f"{list(shape)} and non-batch dimension 0 has length zero!"
    )


def _rank(kind: str, n: int, shape: Sequence[int], colon: str) -> None:
    if len(shape) in (n + 1, n + 2):
        return
    if n == 1:
        raise OperatorError(
            f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for argument #1 'self' "
            f"(while checking arguments for adaptive_{kind}_pool1d)"
        )
    raise OperatorError(
        f"adaptive_{kind}_pool{n}d(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} {list(shape)}"
    )


def _nowhere_empty(name: str, shape: Sequence[int], first: int) -> None:
    for i, size in enumerate(shape[first:], first):
        if size == 0:
            raise OperatorError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {i} being empty"
            )


def _one_int(kind: str, wanted: Sizes) -> None:
    if len(wanted) != 1:
        raise OperatorError(
            f"adaptive_{kind}_pool1d() argument 'output_size' should contain one int (got {len(wanted)})"
        )


def _average(n: int, shape: Sequence[int], wanted: Sizes) -> None:
    if n == 1:
        _rank("avg", 1, shape, "")
        _one_int("avg", wanted)
        shape, wanted = (*shape[:-1], 1, shape[-1]), (1, *wanted)
    if n > 1 and len(wanted) != n:
        raise OperatorError(f"adaptive_avg_pool{n}d: output_size must be {n}")
    if min(wanted) < 0:
        first, *others = map(str, wanted)
        received = ", ".join((first, others[0])) + "".join(f",{other}" for other in others[1:])
        raise OperatorError(
            f"adaptive_avg_pool{max(n, 2)}d: elements of output_size must be greater than or equal to 0 "
            f"but received {{{received}}}"
        )
    _nowhere_empty(f"adaptive_avg_pool{max(n, 2)}d", shape, 1 if n == 3 else max(len(shape) - 2, 0))
    if n > 1:
        _rank("avg", n, shape, "")


def _greatest(n: int, shape: Sequence[int], wanted: Sizes) -> None:
    _rank("max", n, shape, ":")
    if n == 1:
        _one_int("max", wanted)
    _nowhere_empty(f"adaptive_max_pool{n}d", shape, 1)
    if len(wanted) != n:
        raise OperatorError(f"adaptive_max_pool{n}d(): internal error: output_size.size() must be {n}")
    if min(wanted) < 0:
        whole = [*shape[:-n], *([1] if n == 1 else []), *wanted]
        negative = next(size for size in wanted if size < 0)
        raise OperatorError(f"Trying to create tensor with negative dimension {negative}: {whole}")


_ADAPTIVE: Final[dict[str, Callable[[int, Sequence[int], Sizes], None]]] = {"avg": _average, "max": _greatest}


def adaptive(kind: str, n: int, shape: Sequence[int], output_size: Sequence[int]) -> Sizes:
    """The checked size of the result; `kind` is "avg" or "max"."""
    wanted = tuple(output_size)
    _ADAPTIVE[kind](n, shape, wanted)
    return wanted
