"""Numbers to try kernels with, and the comparison of what they give with their definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten.values.tensor import Tensor
from engine.fuser.ir import to_numpy
from engine.fuser.ir.kernel import WHOLE, Buffer, Kernel
from engine.fuser.ir.numeric_functions import NUMPY
from engine.fuser.stubs.binding import Binding, TensorArgument

Array = np.ndarray[Any, Any]
_EXTREME: Final = {"f32": "1e-40 -1e-40 3e38", "bf16": "1e-40 -1e-40 3e38", "f16": "6e-8 -6e-8 6e4"}
"""Denormals, and numbers whose double is infinite; else those of f64."""
_ORDINARY: Final = "0 -0.0 1 -1 inf -inf nan 0.3 -0.6 2.5 -3.5 0.5 1e-3 -20 40 1.5707 -0.99 710 -88"


def specials(type: str) -> list[Any]:
    """Numbers at which functions change what they do, in a type."""
    if type == "bool":
        return [False, True]
    if type in WHOLE:
        facts = np.iinfo(NUMPY[type])
        found = [0, 1, 2, 3, 7, 100, -1, -7, int(facts.max), int(facts.min), int(facts.max) - 1]
        return [each for each in found if each >= facts.min]
    return [float(each) for each in f"{_ORDINARY} {_EXTREME.get(type, '5e-324 -5e-324 1e308')}".split()]


def filled(values: list[Any], type: str) -> Array:
    return np.array(values).astype(NUMPY[type])


def outcome(kernel: Kernel, *args: Any, by: Any) -> list[Array]:
    """The code of a kernel, and the arrays after it ran; those that are contiguous are copies."""
    given = [each.copy() if isinstance(each, np.ndarray) and each.flags.c_contiguous else each for each in args]
    code = by(kernel)(*given)
    return [np.array(code), *(each for each in given if isinstance(each, np.ndarray))]


def same(a: Array, b: Array) -> bool:
    """True if both have the same numbers; a NaN is like another, and zeros are alike."""
    if a.dtype != b.dtype:
        return False
    if a.dtype.kind in "fV":
        return np.array_equal(a.astype(np.float64), b.astype(np.float64), equal_nan=True)
    return np.array_equal(a, b)


def ulps(found: Array, wanted: Array) -> float:
    """The greatest distance in units in the last place of what is finite; infinite if what is not differs."""
    if not np.array_equal(np.isnan(found), np.isnan(wanted)):
        return np.inf
    with np.errstate(all="ignore"):
        steps = np.abs(found.astype(np.longdouble) - wanted) / np.spacing(np.abs(wanted))
    return float(np.max(np.where((found == wanted) | np.isnan(wanted), 0, steps)))


def by_definition(binding: Binding, args: Sequence[Any], backwards: bool = False) -> list[Array]:
    """The tensors that a binding gives for arguments that its guards hold for, by the definition of its kernel."""
    names, data = _known(binding, args)
    assert all(to_numpy.evaluated(guard, names) for guard in binding.guards)
    for let in binding.lets:
        names[let.name] = to_numpy.evaluated(let.value, names)
    results = []
    for result in binding.results:
        assert result.shape is not None  # type: ignore[union-attr]
        shape = [int(to_numpy.evaluated(each, names)) for each in result.shape]  # type: ignore[union-attr]
        data[result.name] = np.zeros(shape, NUMPY[result.type])  # type: ignore[union-attr]
        results.append(data[result.name])  # type: ignore[union-attr]
    kernel = binding.kernel
    given = [data[p.name] if isinstance(p, Buffer) else names[p.name] for p in kernel.parameters]
    assert to_numpy.compiled(kernel, backwards)(*given) == 0
    return results


def _known(binding: Binding, args: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Array]]:
    """The numbers and the arrays that a kernel may use, by their names."""
    names: dict[str, Any] = {}
    data: dict[str, Array] = {}
    for argument, value in zip(binding.arguments, args, strict=True):
        if not isinstance(argument, TensorArgument):
            names[argument.name] = NUMPY[argument.type](value)
            continue
        data[argument.name] = array = value.array if isinstance(value, Tensor) else value
        for d in range(array.ndim):
            names[f"{argument.name}_size_{d}"] = np.int64(array.shape[d])
            names[f"{argument.name}_stride_{d}"] = np.int64(array.strides[d] // array.itemsize)
    return names, data
