"""numpy's universal functions where arrays are a library's, which has their calls and few of their methods.

In: a universal function of numpy, the library's of that name.  Out: one that goes by its operands; `reduce`,
`accumulate` and `at` are the library's where it has them, other functions of its, or numpy's over copies on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.values import libraries, xp
from engine.aten.values.libraries import Library

_REDUCTIONS: Final = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any", "logical_and": "all",
}  # fmt: skip
_ACCUMULATIONS: Final = {"add": "cumsum", "multiply": "cumprod"}
_AT: Final = {"add": frozenset("iIlLqQefd"), "maximum": frozenset("iIlLqQfd"), "minimum": frozenset("iIlLqQfd")}
"""Functions whose `at` cupy provides, and the dtypes that it supports."""


_OF_TRUTH: Final = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
"""Functions that cupy lacks for complex numbers."""


def _truth(value: Any) -> Any:
    return value != 0 if libraries.is_array(value) and value.dtype in xp.COMPLEX else value


def _is_turned(args: Sequence[Any]) -> bool:
    """One array, last dimension first: numpy's results are laid out like it, cupy's are not."""
    return len(args) == 1 and args[0].ndim > 1 and args[0].flags.f_contiguous and not args[0].flags.c_contiguous


class Universal:
    """A universal function over two libraries."""

    def __init__(self, host: np.ufunc, device: Any, library: Library) -> None:
        self._host, self._device, self._library = host, device, library
        self.nin, self.nout, self.__name__ = host.nin, host.nout, host.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kind = self._library.array
        if not any(type(each) is kind for each in args):
            return self._host(*args, **kwargs)
        if self.__name__ in _OF_TRUTH:
            args = (*map(_truth, args[: self.nin]), *args[self.nin :])
        if self.nin == 1 and not kwargs and _is_turned(args):
            return self(args[0].T).T
        return self._device(*args, **kwargs)

    def _is_here(self, array: Any) -> bool:
        return type(array) is self._library.array

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Over one dimension, several, or (None) all."""
        name = _REDUCTIONS.get(self.__name__)
        if not self._is_here(array) or name is None:
            return on_host(self._library, self._host.reduce, array, axis, dtype, out, keepdims)
        more = {} if dtype is None else {"dtype": dtype}
        return getattr(self._library.namespace, name)(array, axis=axis, out=out, keepdims=keepdims, **more)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        name = _ACCUMULATIONS.get(self.__name__)
        if not self._is_here(array) or name is None or out is not None:
            return on_host(self._library, self._host.accumulate, array, axis, dtype)
        return getattr(self._library.namespace, name)(array, axis, dtype)

    def at(self, array: Any, places: Any, *values: Any) -> None:
        """Into places that may repeat."""
        if not self._is_here(array):
            self._host.at(array, places, *values)
        elif self.__name__ == "add" and array.dtype in xp.COMPLEX:
            given = self._library.namespace.asarray(values[0])
            self.at(array.real, places, given.real)
            self.at(array.imag, places, given.imag)
        elif self.__name__ == "subtract" and array.dtype != xp.BOOL:
            self._library.namespace.add.at(array, places, -self._library.namespace.asarray(values[0], array.dtype))
        elif array.dtype.char in _AT.get(self.__name__, ()):
            self._device.at(array, places, *values)
        else:
            copy = self._library.to_host(array)
            self._host.at(copy, brought(places), *map(brought, values))
            array[...] = self._library.from_host(copy)

    def reduceat(self, array: Any, places: Any, *args: Any, **kwargs: Any) -> Any:
        return on_host(self._library, self._host.reduceat, array, places, *args, **kwargs)

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        return on_host(self._library, self._host.outer, a, b, **kwargs)


def on_host(library: Library, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call it with copies on the CPU of arrays; arrays that come out are brought back."""
    result = function(*map(brought, args), **{name: brought(value) for name, value in kwargs.items()})
    return taken_back(library, result)


def brought(value: Any) -> Any:
    """The value with its arrays on the CPU."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(brought, value))
    return libraries.on_host(value)


def taken_back(library: Library, result: Any) -> Any:
    """The result with its arrays on the library's device."""
    if isinstance(result, (np.ndarray, np.generic)):
        return library.from_host(np.asarray(result))
    if isinstance(result, (list, tuple)):
        parts: Sequence[Any] = [taken_back(library, each) for each in result]
        return parts if isinstance(result, list) else tuple(parts)
    return result
