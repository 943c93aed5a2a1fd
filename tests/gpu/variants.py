"""Calls of the operators in the table, in every dtype that they take.

In: an operator.  Out: `Call`s, each with its arguments on the CPU; `compared` runs one on the CPU and on a device and
tells how the results differ.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np

from engine.aten.devices import philox
from engine.aten.dispatch import table
from engine.aten.dispatch.compile import tensors_of
from engine.aten.dispatch.op import Op
from engine.aten.kernels.random import generator
from engine.aten.values import libraries
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.errors import EngineError
from tests.table.samples import arguments_for

DTYPES = (
    np.float64, np.float16, ml_dtypes.bfloat16, np.complex64, np.complex128, np.int64, np.int32, np.int16, np.int8,
    np.uint8, np.bool_,
)  # fmt: skip
"""What samples of float32 are converted to."""
ACCURACY = {"float64": 1e-9, "float16": 4e-3, "bfloat16": 3e-2, "complex128": 1e-9}
"""The relative difference that a dtype may show, where it is not 1e-5: orders of summation differ."""
MOVES = {"aten::cpu"}
"""Their results are elsewhere by what they mean."""
TELLS = {"prim::device", "prim::is_cuda", "prim::is_cpu", "aten::get_device", "aten::data_ptr"}
"""They tell of the device."""
UNSAID = {
    "aten::empty_like", "aten::empty_like.out", "aten::new_empty", "aten::new_empty.out", "aten::empty_strided",
    "aten::new_empty_strided", "aten::linalg_eig", "aten::linalg_eigh", "aten::linalg_svd", "aten::svd",
    "aten::linalg_qr", "aten::_linalg_eigh", "aten::_linalg_svd",
}  # fmt: skip
"""Their values mean nothing, or are not the only right ones."""


@dataclass(frozen=True)
class Call:
    """One call of an operator: its name with the dtype, its arguments."""

    op: Op
    dtype: str
    arguments: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.op.qualified_name} {self.dtype}"


MOVING: Final = frozenset({"aten::to.device"})
"""Operators whose results are where an argument says, which is the CPU in their sample."""


def operators() -> list[Op]:
    """Those with tensors among their arguments, whose results are where these are."""
    return [
        op for op in table.entries()
        if op.name.startswith(("aten::", "prim::")) and tensors_of(op.schema.arguments)
        and op.qualified_name not in MOVING
    ]  # fmt: skip


def calls(op: Op, dtypes: tuple[Any, ...] = DTYPES) -> Iterator[Call]:
    """The sample, and the sample with its tensors of float32 in other dtypes."""
    try:
        arguments = arguments_for(op)
    except (EngineError, KeyError, TypeError, AttributeError):  # the schema does not tell enough
        return
    found = tensors(list(arguments))
    if not found:
        return
    yield Call(op, "float32", arguments)
    if any(each.array.dtype == np.float32 for each in found):
        for d in dtypes:
            yield Call(op, np.dtype(d).name, tuple(converted(value, np.dtype(d)) for value in arguments_for(op)))


def converted(value: Any, d: np.dtype[Any]) -> Any:
    """Tensors of float32 as tensors of that dtype; whole numbers, where there are no fractions, from 1 to 4."""
    if isinstance(value, (list, tuple)):
        return type(value)(converted(each, d) for each in value)
    if not isinstance(value, Tensor) or value.array.dtype != np.float32:
        return value
    array = value.array
    if d.kind in "iu":
        return Tensor((array * 8).astype(np.int64).astype(d) % np.asarray(5, d))
    if d.kind == "b":
        return Tensor(array > 0.5)
    return Tensor((array + 0.5j * array).astype(d) if d.kind == "c" else array.astype(d))


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in tensors(each)]
    return [value] if isinstance(value, Tensor) else []


def there(value: Any, place: str = "cuda") -> Any:
    """The value with its tensors on the device; what requires grad still does."""
    if isinstance(value, (list, tuple)):
        return type(value)(there(each, place) for each in value)
    if not isinstance(value, Tensor):
        return value
    return Tensor(libraries.moved(value.array, scalars.device(place)), value.requires_grad)


def run(op: Op, arguments: Any) -> Any:
    """The result; refusals of the operator are results, too."""
    generator().manual_seed(0)
    philox.restart(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return op.run(*arguments)
        except EngineError as error:
            return error
        except (KeyError, AttributeError, StopIteration) as error:  # of internal operators that are given nonsense
            return EngineError(f"{type(error).__name__}: {error}")


def compared(call: Call, place: str = "cuda") -> str:
    """How the result on the device differs from that on the CPU; empty if it does not."""
    op, name = call.op, call.op.qualified_name
    given = [there(value, place) for value in call.arguments]
    expected, found = run(op, call.arguments), run(op, given)
    if isinstance(expected, EngineError) or isinstance(found, EngineError):
        if isinstance(expected, EngineError) and isinstance(found, EngineError):
            return ""
        which = "refused" if isinstance(found, EngineError) else "taken"
        return f"{which} on the device alone: {found if which == 'refused' else expected}"
    wanted, got = tensors(expected), tensors(found)
    if len(wanted) != len(got):
        return f"{len(got)} tensors instead of {len(wanted)}"
    for one, other in zip(wanted, got, strict=True):
        if problem := _difference(op, one, other, place):
            return problem
    if wanted or name in TELLS or found == expected or found != found:
        return ""
    return f"{found} instead of {expected}"


def _difference(op: Op, one: Tensor, other: Tensor, place: str) -> str:
    name = op.qualified_name
    if not str(other.device).startswith("cpu" if name in MOVES else place):
        return f"the result is on {other.device}"
    if (one.dtype, one.shape, one.stride()) != (other.dtype, other.shape, other.stride()):
        what = [f"{t.dtype} {list(t.shape)} with strides {list(t.stride())}" for t in (other, one)]
        return f"{what[0]} instead of {what[1]}"
    if op.nondeterministic or name in UNSAID or name.split(".")[0] in UNSAID:
        return ""
    here, there = (libraries.on_host(each.array) for each in (one, other))
    accuracy = ACCURACY.get(here.dtype.name, 1e-5)
    if here.dtype.kind not in "biu":
        here, there = (each.astype(np.complex128 if each.dtype.kind == "c" else np.float64) for each in (here, there))
    if np.allclose(there, here, rtol=accuracy, atol=accuracy, equal_nan=True):
        return ""
    return f"{there.ravel()[:6].tolist()} instead of {here.ravel()[:6].tolist()}"
