"""Namespace rebinding: functions written over numpy, run over another array library.

In: a function of the engine, a library.  Out: the same function rebound, for which `np` is that library.

Note [Namespace rebinding]
Kernels are written over an array namespace, which they call `np`.  For the CPU that is numpy.  For another device each
function is rebound when first needed: the same code with other globals, in which `np` is the library of the device,
arrays are arrays there, and functions of the engine are rebound too.  So a kernel is written once, and costs the CPU
nothing; functions that create arrays create them on the device of the operands.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from functools import cache, partial
from types import BuiltinFunctionType, CellType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any, Final

import numpy as np

from engine.aten.devices.universal import Universal, on_host
from engine.aten.values.libraries import Library
from engine.aten.values.xp import BFLOAT16, FLOATING

_PACKAGE: Final = "engine.aten."
_DEVICE_AWARE: Final = frozenset(
    f"{_PACKAGE}{name}"
    for name in "values.tensor values.storage values.hooks values.libraries values.interchange values.xp dispatch.op "
    "dispatch.table dispatch.compile dispatch.calls dispatch.overload_cache dispatch.compose dispatch.device_dispatch "
    "dispatch.errors dispatch.wrapping dispatch.grad_mode python.binding python.methods formatting.printing "
    "kernels.random kernels.memory devices.namespace_rebinding devices.universal stepwise.language autograd".split()
)
"""Modules that are not rebound: their functions dispatch on the arrays that they are given, or handle none."""
_NUMPY_ONLY: Final = frozenset({
    "dtype", "generic", "errstate", "iinfo", "finfo", "promote_types", "can_cast", "newaxis", "pi", "inf", "nan", "e",
    "broadcast_shapes", "ndindex", "random", "ufunc", "prod", "exceptions", "isscalar", "euler_gamma",
})  # fmt: skip
"""Names that stay numpy's for every library, as they handle no arrays; `prod` of sizes is numpy's too."""


_CREATION_FUNCTIONS: Final = frozenset(
    "array asarray ascontiguousarray asfortranarray asanyarray copy zeros ones empty full zeros_like ones_like "
    "empty_like full_like arange linspace logspace eye identity tri indices meshgrid diag diagflat vander bartlett "
    "blackman hamming hanning kaiser fromfunction concatenate stack hstack vstack dstack column_stack atleast_1d "
    "atleast_2d atleast_3d where broadcast_to triu_indices tril_indices".split()
)
"""Functions whose results are on the device, whatever their operands are."""
_TAKING_SUBOK: Final = frozenset("empty_like zeros_like ones_like full_like".split())
"""Functions with numpy's parameter `subok`, which other libraries lack."""
_DTYPE_PRESERVING: Final = frozenset("where tril triu around round clip".split())
"""Functions whose results have their operands' dtype; cupy makes float32 of bfloat16."""


class ReboundNamespace:
    """Functions, modules and tables rebound to one library."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.namespace = _Namespace(self, np, library.namespace)
        self._globals: dict[str, _ReboundGlobals] = {}
        self._known: dict[int, tuple[Any, Any]] = {}
        self.kinds: dict[type, Callable[[Any], Any]] = {
            FunctionType: self._function, partial: self._partial, ModuleType: self._module, CellType: self._cell,
            BuiltinFunctionType: self._of_numpy, np.ndarray: library.from_host, dict: self._dict, type: self._type,
            tuple: self._tuple, list: self._list, type(np.where): self._of_numpy, type(_cached): self._cached,
            MethodDescriptorType: self._method, np.ufunc: self._ufunc,
        }  # fmt: skip

    def of(self, value: Any) -> Any:
        """The value rebound to this library; itself if it needs no rebinding."""
        make = self.kinds.get(type(value))
        if make is None:
            return value
        known = self._known.get(id(value))
        if known is None:
            made = make(value)
            known = self._known[id(value)] = (value, made)
        return known[1]

    def _function(self, function: FunctionType) -> Any:
        module = function.__module__ or ""
        if module not in ("", "builtins") and not module.startswith(_PACKAGE):
            return self._of_numpy(function) if module.startswith("numpy") else function
        if module in _DEVICE_AWARE or module.startswith(f"{_PACKAGE}autograd"):
            return function
        cells = tuple(CellType() for _ in function.__closure__ or ())
        code = function.__code__.replace()
        made = FunctionType(code, self.globals(function), function.__name__, function.__defaults__, cells or None)
        made.__kwdefaults__ = function.__kwdefaults__
        self._known[id(function)] = (function, made)  # before its closure is rebound: functions may be recursive
        for cell, own in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self.of(own.cell_contents)
        return made

    def globals(self, function: FunctionType) -> _ReboundGlobals:
        names = function.__globals__
        found = self._globals.get(names.get("__name__", ""))
        if found is None or found.original is not names:
            found = _ReboundGlobals(self, names)
            if "__name__" in names:
                self._globals[names["__name__"]] = found
        return found

    def _partial(self, made: partial[Any]) -> Any:
        return partial(
            self.of(made.func), *map(self.of, made.args), **{k: self.of(v) for k, v in made.keywords.items()}
        )

    def _module(self, module: ModuleType) -> Any:
        if module is np:
            return self.namespace
        name = module.__name__
        if name.startswith("numpy."):
            return getattr(self.namespace, name.partition(".")[2])
        return _ReboundModule(self, module) if name.startswith(_PACKAGE) and name not in _DEVICE_AWARE else module

    def _of_numpy(self, function: Any) -> Any:
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.ufunc):
            return getattr(self.of(owner), function.__name__)
        module = getattr(function, "__module__", None) or ""
        if not module.startswith("numpy"):
            return function
        name: str = function.__name__
        inside = module.partition(".")[2]
        if inside in ("fft", "linalg"):
            return getattr(getattr(self.namespace, inside), name)
        return getattr(self.namespace, name, function)

    def _method(self, method: Any) -> Any:
        """A method of `np.ndarray`, such as `np.ndarray.argmax`, looked up on its argument."""
        name: str = method.__name__
        return method if method.__objclass__ is not np.ndarray else lambda array, *args: getattr(array, name)(*args)

    def _ufunc(self, function: np.ufunc) -> Any:
        found = getattr(self.library.namespace, function.__name__, None)
        return Universal(function, partial(on_host, self.library, function) if found is None else found, self.library)

    def _type(self, kind: type) -> Any:
        return self.library.array if kind is np.ndarray else kind

    def _cell(self, cell: CellType) -> Any:
        return CellType(self.of(cell.cell_contents))

    def _cached(self, function: Any) -> Any:
        return self.of(function.__wrapped__)

    def _dict(self, values: dict[Any, Any]) -> Any:
        made = {self._key(key): self.of(value) for key, value in values.items()}
        return values if all(made.get(key) is value for key, value in values.items()) else made

    def _key(self, key: Any) -> Any:
        return self.of(key) if key is np.ndarray or isinstance(key, np.ufunc) else key

    def _tuple(self, values: tuple[Any, ...]) -> Any:
        made = tuple(map(self.of, values))
        return values if type(values) is not tuple or all(map(_is, made, values)) else made

    def _list(self, values: list[Any]) -> Any:
        """Lists of arrays are constants; others may be written to, and stay what they are."""
        is_constant = values and all(type(each) is np.ndarray for each in values)
        return [*map(self.of, values)] if is_constant else values


def _by_operands(array: type, host: Callable[..., Any], device: Callable[..., Any]) -> Callable[..., Any]:
    """`device` if an operand is on the device, else `host`: for numbers, lists of them and numpy's arrays."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return (device if _holds(array, args) or _holds(array, kwargs.values()) else host)(*args, **kwargs)

    return function


def _holds(array: type, values: Iterable[Any]) -> bool:
    return any(type(v) is array or (isinstance(v, (list, tuple)) and _holds(array, v)) for v in values)


def _without_subclasses(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, subok=False, **kwargs: function(*args, **kwargs)


def _preserving_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with results in the dtype that numpy would give them where an operand is bfloat16."""

    def kept(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        if made.dtype not in FLOATING or not any(getattr(each, "dtype", None) == BFLOAT16 for each in args):
            return made
        kinds = [getattr(each, "dtype", each) for each in args[:3] if each is not None]
        kinds = [each for each in kinds if not isinstance(each, int) and each != np.bool_]
        return made.astype(np.result_type(*kinds), copy=False)

    return kept


def _is(a: Any, b: Any) -> bool:
    return a is b


class _ReboundGlobals(dict[str, Any]):
    """The globals of a rebound function: names of the original module, each rebound when first used."""

    def __init__(self, rebinding: ReboundNamespace, original: dict[str, Any]) -> None:
        super().__init__(__builtins__=builtins, __name__=original.get("__name__", ""))
        self.rebinding, self.original = rebinding, original

    def __missing__(self, name: str) -> Any:
        value = self.original[name]  # Python expects the KeyError of an undefined name
        made = self.rebinding.of(value)
        if made is not value or isinstance(value, (type, FunctionType, ModuleType)):
            self[name] = made
        return made


class _ReboundModule:
    """A module of the engine whose functions are rebound."""

    def __init__(self, rebinding: ReboundNamespace, module: ModuleType) -> None:
        self._rebinding, self._module = rebinding, module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        made = self._rebinding.of(value)
        if made is not value or isinstance(value, (type, FunctionType)):
            setattr(self, name, made)
        return made


class _Namespace:
    """`np` of rebound functions: the library's functions; where it has none, numpy's over copies on the CPU."""

    def __init__(self, rebinding: ReboundNamespace, original: Any, library: Any) -> None:
        self._rebinding, self._original, self._library = rebinding, original, library
        if original is np:
            self.ndarray = rebinding.library.array
            self.prod = self._prod

    def __getattr__(self, name: str) -> Any:
        made = self._find(name, getattr(self._original, name))
        setattr(self, name, made)
        return made

    def _find(self, name: str, original: Any) -> Any:
        if name in _NUMPY_ONLY or isinstance(original, type):
            return original
        found = getattr(self._library, name, None)
        if isinstance(original, ModuleType):
            return _Namespace(self._rebinding, original, found)
        if isinstance(original, np.ufunc):
            return self._rebinding.of(original)
        if not callable(original):
            return original if found is None else found
        if found is None:
            return partial(on_host, self._rebinding.library, original)
        if self._original is np.linalg:
            return self._rebinding.library.solving(found)
        if name in _TAKING_SUBOK:
            return _without_subclasses(found)
        made = _preserving_dtype(found) if name in _DTYPE_PRESERVING else found
        if name in _CREATION_FUNCTIONS or original.__module__ != "numpy":
            return made
        return _by_operands(self._rebinding.library.array, original, made)

    def _prod(self, values: Any, *args: Any, **kwargs: Any) -> Any:
        used = self._library if type(values) is self._rebinding.library.array else np
        return used.prod(values, *args, **kwargs)


@cache
def _cached() -> None: ...


_BY_DEVICE: Final[dict[tuple[Library, int | None], ReboundNamespace]] = {}


def rebound_for(library: Library, index: int | None) -> ReboundNamespace:
    """The rebound namespace of this library, made at its first use; its constants are on the device of that number,
    which is the current one."""
    found = _BY_DEVICE.get((library, index))
    if found is None:
        found = _BY_DEVICE[library, index] = ReboundNamespace(library)
    return found
