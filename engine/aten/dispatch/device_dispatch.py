"""Operators where the arrays are not numpy's.

In: an operator's kernel or body and its arguments.  Out: its result, on the device of its arguments.  The code is that
for the CPU, see Note [Namespace rebinding]; a few kernels that need what libraries have not run on the CPU (`ON_HOST`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.aten.devices import philox
from engine.aten.devices.universal import on_host
from engine.aten.dispatch import quantized_forms
from engine.aten.dispatch.errors import describe, refusal
from engine.aten.dispatch.op import Op
from engine.aten.kernels import random
from engine.aten.values import libraries, meta
from engine.aten.values.hooks import HOOKS
from engine.aten.values.libraries import Library
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.deferred import deferred
from engine.lang.errors import EngineError, OperatorError, OperatorMemoryError

if TYPE_CHECKING:
    from engine.aten.devices import namespace_rebinding
else:
    namespace_rebinding = deferred("engine.aten.devices.namespace_rebinding")

CROSSING: Final = frozenset({"aten::to", "aten::copy_", "aten::cpu", "aten::cuda", "aten::type_as"})
"""Operators whose arguments may be on different devices."""
PLACES: Final = frozenset({"aten::index", "aten::index_put", "aten::index_put_", "aten::_unsafe_index"})
"""Operators whose indices, after the first argument, are brought to it."""
ON_HOST: Final[dict[str, str]] = {}
"""Operators whose kernels run on the CPU for every device, with the reason."""


def array_of(value: Any) -> Any:
    return value.array if isinstance(value, Tensor) else value


def _arrays(args: Sequence[Any]) -> Iterator[Any]:
    for value in args:
        if isinstance(value, (list, tuple)):
            yield from _arrays(value)
        elif libraries.is_array(array := array_of(value)):
            yield array


def _has_arrays(args: Sequence[Any]) -> bool:
    return next(_arrays(args), None) is not None


def place_of(args: Sequence[Any], op: Op | None = None) -> scalars.device | None:
    """The device that a call is for, where that is not the CPU: of a device among the arguments, else of arrays, else,
    of an operator that may be told one, the one that the program has chosen."""
    for value in args:
        if type(value) is scalars.device:
            return None if value.type == "cpu" else libraries.checked(value)
    is_free = True
    for array in _arrays(args):
        if libraries.library_of(array) is not None:
            return libraries.device_of(array)
        is_free = False
    return libraries.DEFAULT_DEVICE.now() if is_free and op is not None and _is_told_places(op) else None


@cache
def _is_told_places(op: Op) -> bool:
    return any(a.declared == "Device" or str(a.type) in ("Device", "Device?") for a in op.schema.arguments)


def computed(op: Op, kernel: Callable[..., Any], *args: Any) -> Any:
    """The kernel's result of arrays, wherever they are.  Raises OperatorError for arrays on several devices."""
    if HOOKS.quantized and quantized_forms.holds_quantized(args):
        return quantized_forms.computed(op, kernel, args)
    if op.name in CROSSING:
        return _crossed(op, kernel, args)
    place = place_of(args, op)
    if op.nondeterministic:
        _check_generators(args, "cpu" if place is None else place.type)
    if place is None:
        return kernel(*args) if _all_here(args) else kernel(*_joined(op, args, scalars.CPU))
    library = libraries.library(place.type)
    args = _joined(op, args, place)
    if not library.has_numbers:
        return _formed(op, kernel, args)
    with library.on(place.index):
        if op.nondeterministic:
            with random.shared(philox.of_device(place)):
                return on_host(library, kernel, *map(_without_device, args))
        if op.name in ON_HOST or op.qualified_name in ON_HOST:
            return on_host(library, kernel, *map(_without_device, args))
        return _given(library, namespace_rebinding.rebound_for(library, place.index).of(kernel), args)


def _given(library: Library, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The function's result.  Raises OperatorError if the device fails, OperatorMemoryError if it is full."""
    try:
        return function(*args)
    except library.failures as error:
        if isinstance(error, EngineError):
            raise
        if isinstance(error, MemoryError):
            hints = ("del what is not needed", "torch.cuda.empty_cache() gives back what is held for later")
            raise OperatorMemoryError(f"{library.kind.upper()} out of memory: {error}", hints=hints) from error
        raise OperatorError(f"{library.kind.upper()} error: {error}") from error


def _check_generators(args: Sequence[Any], kind: str) -> None:
    """Raises OperatorError for a generator of another device."""
    for value in args:
        if isinstance(value, random.Generator) and value.device.type != kind:
            raise OperatorError(
                f"Expected a '{kind}' device type for generator but found '{value.device.type}'",
                hints=(f"torch.Generator(device='{kind}') makes one",),
            )


def _all_here(args: Sequence[Any]) -> bool:
    return all(libraries.library_of(array) is None for array in _arrays(args))


def _without_device(value: Any) -> Any:
    return None if type(value) is scalars.device else value


def worked(op: Op, work: Callable[..., Any], *args: Any) -> Any:
    """The same for a body that takes tensors: those may be anywhere, since operators it calls look at them again."""
    if HOOKS.quantized and quantized_forms.holds_quantized(args):
        return quantized_forms.worked(op, work, args)
    if op.is_composed:
        return work(*args)
    place = place_of(args, op)
    if op.nondeterministic:
        _check_generators(args, "cpu" if place is None else place.type)
    if place is None:
        return work(*args)
    library = libraries.library(place.type)
    if not library.has_numbers:
        return _formed(op, work, args)
    if op.nondeterministic:
        return _drawn(op, work, args, place)
    with library.on(place.index):
        return _given(library, namespace_rebinding.rebound_for(library, place.index).of(work), args)


def _formed(op: Op, work: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The form of the operator's result, without its numbers; what it writes to stays as it is, random numbers are none
    of the program's.  Raises OperatorError where elements decide the form."""
    if op.data_dependent and _has_arrays(args):
        raise meta.asks_elements(op.name)
    if op.nondeterministic and op.schema.arguments[0].is_write:
        return args[0]
    token = meta.FORMING.set(True)
    try:
        with random.shared(random.Generator()) if op.nondeterministic else nullcontext():
            return _without_numbers(work(*map(_without_device, args)))
    finally:
        meta.FORMING.reset(token)


def _without_numbers(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)(map(_without_numbers, result))
    if isinstance(result, Tensor):
        return result if isinstance(result.array, meta.MetaArray) else result.to(scalars.device("meta"))
    is_array = isinstance(result, (np.ndarray, np.generic)) and not isinstance(result, meta.MetaArray)
    return meta.like(np.asarray(result)) if is_array else result


def _drawn(op: Op, work: Callable[..., Any], args: Sequence[Any], place: scalars.device) -> Any:
    """Random numbers are drawn on the CPU, from the device's own stream."""
    written = [a.is_write for a in op.schema.arguments]
    given = [value if own else _on_cpu(value) for value, own in zip(args, written, strict=True)]
    with random.shared(philox.of_device(place)):
        result = work(*map(_without_device, given))
    return _returned(result, args, place)


def _returned(result: Any, args: Sequence[Any], place: scalars.device) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)(_returned(each, args, place) for each in result)
    return result if any(result is value for value in args) or not isinstance(result, Tensor) else result.to(place)


def _on_cpu(value: Any) -> Any:
    return value.to(scalars.CPU) if isinstance(value, Tensor) else value


def _joined(op: Op, args: Sequence[Any], place: scalars.device) -> tuple[Any, ...]:
    """The arguments on one device: numbers from the CPU (0-dim) are taken along, everything else must be there."""
    joins = op.name in PLACES
    if joins and (here := libraries.device_of(args[0])) != place:
        raise OperatorError(
            f"indices should be either on cpu or on the same device as the indexed tensor ({here})",
            hints=("bring the tensor to its indices, or these to it: x.to(y.device)",),
        )
    is_told = any(type(each) is scalars.device for each in args)

    def join(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(join, value)) if _has_arrays(value) else value
        if not libraries.is_array(value):
            return value
        here = libraries.device_of(value)
        if here == place or (here.type == place.type and place.index is None):
            return value
        if here.type == "cpu" and (value.ndim == 0 or joins or meta.FORMING.get()):
            return libraries.moved(value, place)
        if is_told:  # the operator makes a tensor of this form
            return value.view(np.ndarray) if isinstance(value, meta.MetaArray) else libraries.moved(value, place)
        raise apart(here, place)

    return tuple(map(join, args))


def apart(one: scalars.device, other: scalars.device) -> OperatorError:
    """The refusal of operands on two devices."""
    first, second = sorted((str(one), str(other)), reverse=True)
    return OperatorError(
        f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!",
        hints=("bring them together: x.to(y.device)",),
    )


def _crossed(op: Op, kernel: Callable[..., Any], args: Sequence[Any]) -> Any:
    """`to` and the like: the first argument is brought to the device of another one, or that is named."""
    wanted = next((v for v in args if type(v) is scalars.device), None)
    if wanted is None and len(args) > 1 and libraries.is_array(args[1]):
        wanted = libraries.device_of(args[1])
    if op.name == "aten::cpu":
        wanted = scalars.CPU
    first = libraries.moved(args[0], wanted)
    rest = [None if type(v) is scalars.device else libraries.on_host(v) for v in args[1:]]
    library = libraries.library_of(first)
    if library is None:
        return kernel(first, *rest)
    index = library.index_of(first)
    with library.on(index):
        return _given(library, namespace_rebinding.rebound_for(library, index).of(kernel), (first, *rest))


def rescued(op: Op, body: Callable[..., Any], args: tuple[Any, ...], error: Exception) -> Any:
    """The arrays that an operator gives whose operands a universal function would not take together; raises
    OperatorError where they are on different devices, else the operator's refusal."""
    if HOOKS.quantized and quantized_forms.holds_quantized(args) and not isinstance(error, EngineError):
        return quantized_forms.computed(op, _refused, _unwrapped(args))
    place = place_of(args)
    alike = place is None or len({libraries.device_of(array) for array in _arrays(args)}) == 1
    if place is None or alike or op.name in CROSSING or isinstance(error, EngineError):
        raise refusal(op, args, error) from error
    try:
        arrays = _joined(op, tuple(map(_unwrapped, args)), place)
    except OperatorError as mixed:
        mixed.hints = (*mixed.hints, f"in {op.qualified_name}({', '.join(map(describe, args))})")
        raise mixed from None
    made = body(*map(_rewrapped, args, arrays))
    if isinstance(made, (list, tuple)):
        return [array_of(each) for each in made]
    return array_of(made)


def _refused(*_: Any) -> Any:
    raise OperatorError("a quantized tensor has no such operator")


def _unwrapped(value: Any) -> Any:
    return [*map(_unwrapped, value)] if isinstance(value, (list, tuple)) else array_of(value)


def _rewrapped(old: Any, new: Any) -> Any:
    if isinstance(old, Tensor):
        return old if old.array is new else Tensor(new)
    if isinstance(old, (list, tuple)):
        return [*map(_rewrapped, old, new)]
    return old
