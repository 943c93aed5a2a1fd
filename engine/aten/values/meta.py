"""Arrays of the device `meta`: a shape, a dtype and strides, without numbers.

In: the form of an array.  Out: a `MetaArray` of it.  Its memory is address space that takes no memory, so views and
offsets are those of any array; who asks for a number gets an error, and writes go nowhere.  Functions of numpy give
arrays of the form that their results have; pointwise ones and products compute nothing for it.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from engine.lang.errors import OperatorDtypeError, OperatorError, OperatorMemoryError

FORMING: Final[ContextVar[bool]] = ContextVar("forming", default=False)
"""True inside of an operator on `meta`, where arrays that its body makes of numbers go along."""
NO_DATA: Final = "Cannot copy out of meta tensor; no data!"
_UNRESERVED: Final = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
_READING: Final = frozenset({"array_equal", "allclose", "array_equiv"})
_ASKING: Final = frozenset("nonzero flatnonzero argwhere unique extract compress bincount".split())
_WRITING: Final = frozenset({"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"})
_METHODS: Final = (
    "all any sum prod mean var std max min argmax argmin cumsum cumprod round clip take repeat sort argsort"
)
"""Methods of arrays that compute what numpy's functions of these names do."""


class MetaArray(np.ndarray[Any, np.dtype[Any]]):
    """The form of an array.  Raises OperatorError where somebody asks for its numbers."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        """The form of what the universal function gives; NotImplemented for a program's operand on the CPU."""
        if not FORMING.get() and any(type(each) is np.ndarray and each.ndim for each in inputs):
            return NotImplemented
        if method == "at":
            return None
        shown = [*map(_plain, inputs)]
        if method == "__call__" and ufunc.signature is None:
            found = _pointwise(ufunc, shown, options)
            if FORMING.get() and isinstance(found, MetaArray) and found.dtype == np.bool_:
                found = ufunc(*shown, **options)
        elif ufunc is np.matmul and (cut := _without_work(*shown)) is not None:
            found = ufunc(*cut, **options)
        else:
            found = getattr(ufunc, method)(*shown, **options)
        return _formed(found) if out is None else out[0] if len(out) == 1 else out

    def __array_function__(self, function: Callable[..., Any], _: Any, args: Any, options: Any) -> Any:
        """The form of what the function gives.  Raises OperatorError where that is a matter of elements."""
        name = function.__name__
        if name in _READING:
            raise unreadable(name)
        if name in _ASKING:
            raise asks_elements(name)
        if name in _WRITING and isinstance(args[0], MetaArray):
            return None
        if function.__module__ == "numpy.linalg":  # which refuses matrices of zeros
            args, options = _with_ones(args), _with_ones(options)
        out = options.get("out")
        found = _formed(function(*_plain(args), **_plain({k: v for k, v in options.items() if k != "out"})))
        return found if out is None else out

    def __getitem__(self, key: Any) -> Any:
        if not FORMING.get() and _has_mask(key):
            raise asks_elements("index")
        return _formed(self.view(np.ndarray)[_plain(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write nothing.  Raises ValueError for what does not fit."""
        if not _has_mask(key):
            np.broadcast_to(np.empty((), np.bool_), np.broadcast_shapes(np.shape(self[key]), np.shape(value)))

    def dot(self, other: Any, out: Any = None) -> Any:
        """The form of a product, which of vectors and matrices is that of `matmul`, where there is nothing to sum."""
        product = np.matmul if 0 < self.ndim <= 2 and 0 < np.ndim(other) <= 2 else np.dot
        return product(self, other)

    def astype(self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True) -> Any:
        return self if not copy and self.dtype == dtype and order in ("K", "A") else like(self, dtype, order)

    def copy(self, order: Any = "C") -> Any:
        return like(self, self.dtype, order)

    def fill(self, value: Any) -> None:
        """Write nothing."""

    def tolist(self) -> Any:
        raise OperatorDtypeError(NO_DATA)

    def item(self, *places: Any) -> Any:
        raise unreadable("item")

    def _number(self, kind: Callable[[Any], Any]) -> Any:
        """The number that an operator looks at on its way to a form, as of zeros.  Raises OperatorError in programs."""
        if not FORMING.get():
            raise unreadable("item")
        return kind(self.view(np.ndarray))

    def __bool__(self) -> bool:
        return bool(self._number(bool))

    def __int__(self) -> int:
        return int(self._number(int))

    def __float__(self) -> float:
        return float(self._number(float))

    def __complex__(self) -> complex:
        return complex(self._number(complex))

    def __index__(self) -> int:
        return int(self._number(int))

    def __repr__(self) -> str:
        return f"meta({self.shape}, {self.dtype})"

    __str__ = __repr__

    def __deepcopy__(self, _: Any) -> MetaArray:
        return like(self)

    def __reduce__(self) -> Any:
        return formed, (self.shape, self.dtype, self.strides)

    def tobytes(self, order: Any = "C") -> bytes:
        raise OperatorDtypeError(NO_DATA)


def _has_mask(key: Any) -> bool:
    return any(
        isinstance(each, MetaArray) and each.dtype == np.bool_ for each in (key if type(key) is tuple else (key,))
    )


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)
    return lambda self, *args, **options: function(self, *args, **options)


for _name in _METHODS.split():
    setattr(MetaArray, _name, _method(_name))


def unreadable(name: str) -> OperatorError:
    """The refusal of what asks for a number."""
    return OperatorError(
        f"Tensor.{name}() cannot be called on meta tensors", hints=("they have a shape and a dtype, and no numbers",)
    )


def asks_elements(name: str) -> OperatorError:
    """The refusal of an operator whose result, or its sizes, is a matter of elements."""
    return OperatorDtypeError(
        f"{name}: elements decide its result, and meta tensors have none",
        hints=("run it on the CPU, where there are numbers",),
    )


def formed(shape: Sequence[int], dtype: Any, strides: Sequence[int]) -> MetaArray:
    """An array of that form, in address space of its own.  Raises OperatorMemoryError where there is not enough."""
    d = np.dtype(dtype)
    span = (
        sum((n - 1) * abs(step) for n, step in zip(shape, strides, strict=True)) + d.itemsize if 0 not in shape else 0
    )
    try:
        memory = mmap.mmap(-1, max(span, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNRESERVED)
    except (OSError, OverflowError, ValueError) as error:
        raise OperatorMemoryError(f"a tensor on meta has no addresses for {span} bytes") from error
    return MetaArray(tuple(shape), d, memory, 0, tuple(strides))


def like(array: Any, dtype: Any = None, order: Any = "K") -> MetaArray:
    """The form of a copy of the array."""
    d = array.dtype if dtype is None else np.dtype(dtype)
    return formed(array.shape, d, _steps(array.shape, array.strides if order in ("K", "A") else (), d.itemsize))


def show(shape: Sequence[int], dtype: Any, memory: Any, offset: int, strides: Sequence[int]) -> MetaArray:
    """A form on the addresses of another one, from that byte on."""
    plain = memory.view(np.ndarray)
    if not plain.flags.c_contiguous:
        assert not offset and plain.dtype == dtype
        raw = np.lib.stride_tricks.as_strided(plain.view(f"V{plain.itemsize}"), shape, strides)
        shown: MetaArray = raw.view(dtype).view(MetaArray)
        return shown
    return MetaArray(tuple(shape), dtype, plain, offset, tuple(strides))


def _steps(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> list[int]:
    """The strides of memory without gaps, in the order of these strides, or row by row."""
    order = sorted(range(len(shape)), key=lambda i: abs(strides[i]) if strides else 0, reverse=True)
    steps, step = [0] * len(shape), itemsize
    for i in reversed(order):
        steps[i], step = step, step * max(shape[i], 1)
    return steps


def _plain(value: Any) -> Any:
    """Arrays of this kind as numpy's, on the same addresses, in containers too."""
    if isinstance(value, MetaArray):
        return value.view(np.ndarray)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def _with_ones(value: Any) -> Any:
    """Matrices of this kind as identities."""
    if isinstance(value, MetaArray):
        wide = value.ndim > 1
        return np.broadcast_to(np.eye(*value.shape[-2:]) if wide else np.ones(()), value.shape).astype(value.dtype)
    if isinstance(value, dict):
        return {key: _with_ones(each) for key, each in value.items()}
    return type(value)(map(_with_ones, value)) if type(value) in (list, tuple) else value


def _formed(value: Any) -> Any:
    """Results of numpy as forms: views of address space that is there stay so, what was computed is let go."""
    if isinstance(value, MetaArray):
        return value
    if isinstance(value, (list, tuple)):
        made = map(_formed, value)
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        return value
    is_check = FORMING.get() and value.dtype == np.bool_  # of elements: the operator may go by it
    return value.view(MetaArray) if is_check or _lies_in_form(value) else like(value)


def _lies_in_form(array: Any) -> bool:
    while array is not None and not isinstance(array, (MetaArray, mmap.mmap)):
        array = array.base if isinstance(array, np.ndarray) else None
    return array is not None


def _pointwise(ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """The forms of what a pointwise function gives, by one element of each operand."""
    arrays = [each for each in operands if isinstance(each, np.ndarray)]
    shape = np.broadcast_shapes(*(each.shape for each in arrays))
    ones = [np.ones((1,) * each.ndim, each.dtype) if isinstance(each, np.ndarray) else each for each in operands]
    found = ufunc(*ones, **{k: v for k, v in options.items() if k != "where"})
    model = next((each for each in arrays if each.shape == shape), None)
    strides = () if model is None else model.strides

    def wide(one: Any) -> MetaArray:
        return formed(shape, one.dtype, _steps(shape, strides, one.dtype.itemsize))

    return tuple(map(wide, found)) if isinstance(found, tuple) else wide(found)


def _without_work(x: Any, y: Any) -> tuple[Any, Any] | None:
    """The operands of a product whose sizes fit, with nothing to sum."""
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        return None
    return x[..., :0], (y[..., :0, :] if y.ndim > 1 else y[:0])
