"""A device for machines that have none: arrays with cupy's manners over numpy's memory.

In: nothing.  Out: `double`, a context in which "cuda" is this, with one device or several.  Its arrays answer numpy's
two protocols, give 0-dim arrays where numpy gives numbers, refuse to be taken for numpy's arrays and to be mixed with
them, and know what cupy knows: what cupy has not, this has not.  New arrays are on the current device, and nothing is
computed of arrays that are on another one, as where devices cannot read each other's memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from engine.aten.values import libraries
from engine.aten.values.libraries import Library
from engine.executor.plans.lowered import SETTINGS
from tests.table.cuda_double import CAPTURES, cuda, current_device

MISSING = frozenset({
    "lib", "nditer", "nested_iters", "fromiter", "frombuffer", "fromfile", "char", "rec", "ma", "testing",
    "geomspace", "block", "nan_to_num_", "modf_", "frompyfunc", "longdouble", "clongdouble", "spacing", "emath",
    "matrix", "memmap", "asmatrix", "random", "polynomial", "ctypeslib", "broadcast_shapes",
})  # fmt: skip
"""Names of numpy's that cupy has not, or has otherwise."""
LACKING = {
    **dict.fromkeys("sum prod mean".split(), ("where", "initial")), **dict.fromkeys(("any", "all"), ("where",)),
    **dict.fromkeys("max min amax amin".split(), ("where", "initial")), "var": ("where", "mean", "correction"),
    "std": ("where", "mean", "correction"), "take": ("mode",), "sort": ("order", "stable"),
    "argsort": ("order", "stable"), "unique": ("sorted",), "zeros_like": ("subok",), "ones_like": ("subok",),
    "empty_like": ("subok",), "full_like": ("subok",), "concatenate": (), "argmax": (), "argmin": (),
}  # fmt: skip
"""Keywords of numpy's functions, and of methods of its arrays, that cupy's have not."""
FROM_ANYWHERE = frozenset({"copyto", "may_share_memory", "broadcast_to"})
"""Functions that take arrays of several devices."""
METHODS = {
    "reduce": ("add", "multiply"), "accumulate": ("add", "multiply"), "reduceat": ("add",),
    "at": ("add", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"),
}  # fmt: skip
"""What methods of universal functions cupy has."""
_OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift lt le gt ge eq ne radd rsub rmul rtruediv "
    "rfloordiv rmod rpow rand ror rxor rlshift rrshift rmatmul divmod iadd isub imul itruediv ifloordiv imod ipow iand "
    "ior ixor ilshift irshift neg pos abs invert"
).split()


class DoubleArray:
    """An array on the double."""

    __slots__ = ("_base", "_host", "index")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: Any, base: Any = None) -> None:
        self._host, self._base = np.asarray(host), base
        self.index = current_device() if base is None else base.index

    # -- numpy's protocols

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` instead.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            return getattr(_Ufunc(ufunc), method)(*inputs, **kwargs)
        return called(ufunc, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function.__name__ in MISSING or not all(each in (DoubleArray, np.ndarray) for each in types):
            return NotImplemented
        return called(function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_host":
            raise AttributeError(name)
        found = getattr(self._host, name)
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "flags":
            return SimpleNamespace(
                c_contiguous=found.c_contiguous, f_contiguous=found.f_contiguous, owndata=self._base is None
            )
        if callable(found):
            found = _checked(name, found)
            return lambda *args, **kwargs: _wrapped(found(*_plain(args), **_plain(kwargs)), (self,))
        return _wrapped(found, (self,)) if isinstance(found, np.ndarray) else found

    @property
    def base(self) -> Any:
        return self._base

    @property
    def real(self) -> Any:
        return _wrapped(self._host.real, (self,))

    @real.setter
    def real(self, values: Any) -> None:
        self._host.real = _plain(values)

    @property
    def imag(self) -> Any:
        return _wrapped(self._host.imag, (self,))

    @imag.setter
    def imag(self, values: Any) -> None:
        self._host.imag = _plain(values)

    @property
    def shape(self) -> Any:
        return self._host.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._host.shape = shape

    def astype(self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True) -> Any:
        made = self._host.astype(dtype, order=order, copy=copy)
        return self if made is self._host else _wrapped(made, (self,))

    def tolist(self) -> Any:
        return self._host.tolist()

    def item(self, *args: Any) -> Any:
        return self._host.item(*args)

    def get(self) -> Any:
        return self._host.copy(order="K")

    def fill(self, value: Any) -> None:
        _here(self)._host.fill(_plain(value))

    def take(self, indices: Any, axis: Any = None, out: Any = None) -> Any:
        """Places that there are not stand for others."""
        return _wrapped(self._host.take(_plain(indices, hosts=True), axis, mode="wrap"), (self,))

    def __getitem__(self, key: Any) -> Any:
        return _wrapped(self._host[_around(_plain(key, hosts=True), self.shape)], (self,))

    def __setitem__(self, key: Any, value: Any) -> None:
        if CAPTURES:
            CAPTURES[-1].append(lambda: self._host.__setitem__(_around(_plain(key), self.shape), _plain(value)))
        _here(self)._host[_around(_plain(key, hosts=True), self.shape)] = _plain(value)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self._host)))

    def __len__(self) -> int:
        return len(self._host)

    def __reduce__(self) -> Any:
        return DoubleArray, (self._host.copy(),)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self._host.__dlpack__()

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __float__(self) -> float:
        return float(self._host)

    def __complex__(self) -> complex:
        return complex(self._host)

    def __index__(self) -> int:
        return operator.index(self._host)

    def __repr__(self) -> str:
        return f"double({self._host!r})"

    @property
    def __cuda_array_interface__(self) -> Any:
        return {**self._host.__array_interface__, "version": 3, "stream": 1}


def _defined(name: str) -> Callable[..., Any]:
    def method(self: DoubleArray, *others: Any) -> Any:
        if any(isinstance(other, np.ndarray) for other in others):
            raise TypeError(f"Unsupported type {np.ndarray}")
        result = getattr(self._host, f"__{name}__")(*_plain(others))
        return NotImplemented if result is NotImplemented else _wrapped(result, (self,))

    return method


for _name in _OPERATORS:
    setattr(DoubleArray, f"__{_name}__", _defined(_name))


def _here(array: DoubleArray) -> DoubleArray:
    """The array.  Raises ValueError if it is not on the current device."""
    if array.index != current_device():
        raise ValueError(
            "Array device must be same as the current device: "
            f"array device = {array.index} while current = {current_device()}"
        )
    return array


def _plain(value: Any, hosts: bool = False) -> Any:
    """The arguments as numpy takes them.  Raises TypeError for arrays of numpy's, unless `hosts` may be there."""
    if isinstance(value, DoubleArray):
        return _here(value)._host
    if isinstance(value, np.ndarray) and not hosts:
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_plain(each, hosts) for each in value)
    if isinstance(value, dict):
        return {name: _plain(each, hosts) for name, each in value.items()}
    return value


def _around(key: Any, shape: tuple[int, ...]) -> Any:
    """Arrays of places with those that there are not brought around, as cupy does; for keys without None and masks."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(part is None or part is Ellipsis or getattr(part, "dtype", 0) == np.bool_ for part in parts):
        return key
    return tuple(
        part % size if isinstance(part, np.ndarray) and part.dtype.kind in "iu" and part.ndim and size else part
        for part, size in zip(parts, shape, strict=False)
    )


def _checked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without the keywords that cupy's has not."""
    lacking = LACKING.get(name, ())

    def checked(*args: Any, **kwargs: Any) -> Any:
        for keyword in kwargs:
            if keyword in lacking:
                raise TypeError(f"{name}() got an unexpected keyword argument '{keyword}'")
        return function(*args, **kwargs)

    return checked if lacking else function


def _sources(value: Any) -> Iterator[DoubleArray]:
    if isinstance(value, DoubleArray):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _sources(each)
    elif isinstance(value, dict):
        yield from _sources([*value.values()])


def _wrapped(result: Any, sources: Any) -> Any:
    """Results as arrays here: what shows an argument's memory has it as its base."""
    if isinstance(result, (np.ndarray, np.generic)):
        for source in _sources(sources):
            if result is source._host:
                return source
            if np.may_share_memory(result, source._host):
                return DoubleArray(result, source if source._base is None else source._base)
        for source in _sources(sources):
            _here(source)
        return DoubleArray(np.asarray(result) if isinstance(result, np.generic) or result.base is None else result)
    if isinstance(result, (list, tuple)):
        parts = [_wrapped(each, sources) for each in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def called(function: Any, args: Any, kwargs: Any) -> Any:
    """numpy's function over the arrays' memory; what is captured is done again in the same memory."""
    result = _called(function, args, kwargs)
    if CAPTURES:

        def again() -> None:
            for old, new in zip(_sources(result), _sources(_called(function, args, kwargs)), strict=True):
                old._host[...] = new._host

        CAPTURES[-1].append(again)
    return result


def _called(function: Any, args: Any, kwargs: Any) -> Any:
    if function.__name__ in FROM_ANYWHERE:
        with cuda.Device(next(_sources(args)).index):
            return _wrapped(function(*map(_visible, args), **_plain(kwargs)), (args[:1],))
    return _wrapped(function(*_plain(args), **_plain(kwargs)), (args, kwargs))


def _visible(value: Any) -> Any:
    """The argument as numpy takes it, from any device."""
    return value._host if isinstance(value, DoubleArray) else _plain(value)


class _Functions:
    """The library's functions, by numpy's names."""

    ndarray = DoubleArray

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        if name in MISSING:
            raise AttributeError(f"module 'double' has no attribute '{name}'")
        found = getattr(self._original, name)
        if name in ("ogrid", "mgrid"):
            return _Grid(found)
        if isinstance(found, type(np)):
            return _Functions(found)
        if isinstance(found, type) or not callable(found):
            return found
        if isinstance(found, np.ufunc):
            return _Ufunc(found)
        found = _checked(name, found)
        taken = name in ("array", "asarray", "ascontiguousarray", "asanyarray")
        if taken:
            return lambda value, *args, **kwargs: _wrapped(found(_plain(value, True), *args, **kwargs), (value,))
        return lambda *args, **kwargs: called(found, args, kwargs)

    @staticmethod
    def asarray(value: Any, dtype: Any = None, order: Any = None) -> Any:
        if isinstance(value, DoubleArray) and value.index != current_device():
            value = value._host.copy(order="K")
        if isinstance(value, DoubleArray) and dtype in (None, value.dtype):
            return value
        return DoubleArray(np.array(_plain(value, hosts=True), dtype, order="K"))


class _Grid:
    def __init__(self, grid: Any) -> None:
        self._grid = grid

    def __getitem__(self, key: Any) -> Any:
        return _wrapped(self._grid[key], ())


def _is_complex(value: Any) -> bool:
    return isinstance(value, DoubleArray) and value.dtype.kind == "c"


class _Ufunc:
    def __init__(self, function: np.ufunc) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if unknown := kwargs.keys() - {"out", "where", "dtype", "casting"}:
            raise TypeError(f"Wrong arguments {unknown}")
        if self._function.__name__.startswith("logical_") and any(_is_complex(each) for each in args):
            raise TypeError(f"Wrong type of arguments for {self._function.__name__}")
        return called(self._function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if self._function.__name__ not in METHODS.get(name, ()):
            raise NotImplementedError(f"`{self._function.__name__}.{name}` is not supported")
        found = getattr(self._function, name)
        return (lambda *args, **kwargs: called(found, args, kwargs)) if callable(found) else found


def _show(shape: Any, d: Any, array: DoubleArray, offset: int, strides: Any) -> DoubleArray:
    """A view of the memory; like cupy, it does not look where that ends."""
    memory = array._host
    flat = np.lib.stride_tricks.as_strided(memory, (memory.nbytes // memory.itemsize,), (memory.itemsize,))
    first = flat.view(np.uint8)[offset : offset + np.dtype(d).itemsize].view(d)
    shown = np.lib.stride_tricks.as_strided(first, tuple(shape), tuple(strides)) if first.size else np.empty(shape, d)
    return DoubleArray(shown, array if array._base is None else array._base)


def _loaded(devices: int) -> Library:
    return Library(
        "cuda", DoubleArray, _Functions(np), _Functions.asarray, lambda array: array.get(),
        lambda array: array._host.__array_interface__["data"][0], lambda array: array.index, _show, cuda.Device,
        current_device, lambda: devices, lambda: None, lambda index: "double", lambda: (0, 0),
        lambda: None, lambda function: function, cuda,
    )  # fmt: skip


@contextmanager
def double(devices: int = 1) -> Iterator[SimpleNamespace]:
    """While this lasts, "cuda" is the double, of so many devices, for which there are no kernels."""
    before = libraries.LOADERS["cuda"]
    kernels = SETTINGS.compilers.get("cuda")
    SETTINGS.compilers["cuda"] = None
    libraries.unload("cuda")
    libraries.LOADERS["cuda"] = lambda: _loaded(devices)
    try:
        libraries.library("cuda")
        yield SimpleNamespace(array=DoubleArray)
    finally:
        libraries.unload("cuda")
        libraries.LOADERS["cuda"] = before
        SETTINGS.compilers.pop("cuda")
        SETTINGS.compilers |= {"cuda": kernels} if kernels is not None else {}
