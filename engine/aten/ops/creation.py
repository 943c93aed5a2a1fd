"""Creation of tensors, and filling of existing ones.

In: sizes, numbers, and the options dtype, layout, device and pin_memory.  Out: arrays.  An out= form takes the
dtype of its target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import describe, op
from engine.aten.dispatch.wrapping import overwrite, refuse_overlap, store_out
from engine.aten.formatting.values import type_name
from engine.aten.kernels import shapes
from engine.aten.kernels.memory import check_memory
from engine.aten.kernels.rules import broadcast_shapes, is_dense, no_kernel, ordered_like
from engine.aten.values import libraries, xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.promotion import (
    converted,
    default_complex,
    default_dtype,
    dtype_of_number,
    element,
    result_type,
    wide,
)
from engine.aten.values.tensor import Tensor, check_differentiable, tensor, wrapped
from engine.aten.values.xp import Array
from engine.lang import scalars
from engine.lang.errors import OperatorError

OPTIONS: Final = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
FORMAT: Final = "MemoryFormat? memory_format=None"
VIEW: Final = "function method"
NOT_DIFFERENTIABLE: Final = {"self": "None"}
"""Gradients of operators that read only the shape and dtype of a tensor."""


def check_device(device: scalars.device | None) -> None:
    """Raise OperatorError for a device that is not there."""
    libraries.checked(device)


def check_size(size: Sequence[int], d: xp.NumpyDtype = xp.UINT8) -> tuple[int, ...]:
    """The shape, if a tensor of it and of this dtype can be; raises OperatorError."""
    for length in size:
        if length < 0:
            raise OperatorError(f"Trying to create tensor with negative dimension {length}: {list(size)}")
    check_memory(size, d)
    return tuple(size)


Make = Callable[..., Array]


def creator(
    name: str,
    arguments: str,
    make: Make,
    default: Callable[..., xp.NumpyDtype],
    out: str = "out",
    in_order: bool = False,
    **facts: Any,
) -> None:
    """Register `make(arguments..., dtype)` with options, and its out= form; `default(arguments...)` is the dtype.

    What is made `in_order` fills an out= tensor that has room for just as much, whatever its shape.  `facts` are those
    of both rows.
    """

    def kernel(*args: Any) -> Array:
        *given, dtype, _layout, device, _pin = args
        if device is not None:
            check_device(device)
        return make(*given, default(*given) if dtype is None else xp.numpy_dtype(dtype))

    def into(*args: Any) -> Tensor:
        *given, out_argument = args
        target: Tensor = out_argument
        plain = [v.array if isinstance(v, Tensor) else v for v in given]
        made = make(*plain, target.array.dtype)
        fills = in_order and made.size == target.array.size
        store_out(target, made.reshape(target.array.shape) if fills else made)
        return target

    def kernel_of_one(given: Any, dtype: int | None, _layout: Any, device: Any, _pin: Any) -> Array:
        if device is not None:
            check_device(device)
        return make(given, default(given) if dtype is None else xp.numpy_dtype(dtype))

    chosen = kernel if "," in arguments else kernel_of_one
    op(f"aten::{name}({arguments}, *, {OPTIONS}) -> Tensor", kernel=chosen, **facts)
    if out:
        stem = name.partition(".")[0]
        op(f"aten::{stem}.{out}({arguments}, *, Tensor(a!) out) -> Tensor(a!)", python=into, **facts)


def _floating(*_: Any) -> xp.NumpyDtype:
    return default_dtype()


def full(size: Sequence[int], fill_value: Any, d: xp.NumpyDtype) -> Array:
    made = np.empty(check_size(size, d), d)
    is_small = d in xp.FLOATS and type(fill_value) in _REAL and -_SMALL <= fill_value <= _SMALL
    made.fill(fill_value if is_small else (element if made.size == 1 else converted)(fill_value, d))
    return made


_REAL: Final = frozenset({int, float})
_SMALL: Final = 65504
"""Numbers up to here have a place in each floating point type.  The only element of a half type may be infinite."""


def _ends(start: Any, end: Any, step: Any) -> int:
    if step == 0:
        raise OperatorError("step must be nonzero")
    if not all(math.isfinite(v) for v in (start, end)):
        raise OperatorError(f"unsupported range: {start} -> {end}")
    if step != step:
        raise OperatorError("step must be nonzero")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise OperatorError("upper bound and lower bound inconsistent with step sign")
    if all(isinstance(v, int) for v in (start, end, step)):
        return -int((start - end) // step)
    count: int = math.ceil((end - start) / step)
    if count >= 2**63:
        raise OperatorError("invalid size, possible overflow?")
    return count


_FAR: Final = 2**62
"""Far from where 64 bits end."""


def arange(start: Any, end: Any, step: Any, d: xp.NumpyDtype) -> Array:
    """From start up to end; all but int64 count in floating point, and then go by whole steps if they are integers."""
    if d is xp.INT64 and type(start) is type(end) is type(step) is int and 0 <= start <= end < _FAR and step > 0:
        check_memory((-((start - end) // step),), d)
        return np.arange(start, end, step)
    if d not in xp.REAL:
        raise no_kernel("arange_cpu", d)
    start, end, step = (converted(v, xp.FLOAT64) if isinstance(v, complex) else v for v in (start, end, step))
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise OperatorError("upper bound and lower bound inconsistent with step sign")
    start, end, step = (converted(v, xp.INT64 if d is xp.INT64 else xp.FLOAT64) for v in (start, end, step))
    count = _ends(start, end, step)
    check_memory((count,), d)
    if d in xp.INTEGERS:
        start, end, step = int(start), int(end), int(step)
    if d is xp.INT64:
        return np.arange(start, start + count * step, step)
    if d in xp.INTEGERS:
        return np.asarray(start + np.arange(count, dtype=np.int64) * step).astype(d)
    return np.asarray(start + np.arange(count, dtype=np.float64) * step).astype(d)


def _whole_or_floating(*numbers: Any) -> xp.NumpyDtype:
    return xp.INT64 if all(isinstance(n, int) for n in numbers) else default_dtype()


def linspace(start: Any, end: Any, steps: int, d: xp.NumpyDtype) -> Array:
    """`steps` evenly spaced numbers, both ends included."""
    check_ends("linspace", start, end, steps, d)
    first, last = (v.item() if isinstance(v, np.ndarray) else v for v in (start, end))
    if steps == 1:
        return full((1,), first, d)
    if d in xp.FLOATS:
        return _between_floats(converted(first, d), converted(last, d), steps, d)
    if d == xp.BOOL:
        raise no_kernel("linspace_cpu", d)
    used = xp.FLOAT64 if d in xp.INTEGERS else d
    start, end = (np.asarray(converted(v, d)).astype(wide(d)).astype(d).astype(used) for v in (first, last))
    return xp.cast(_between(start, end, steps, used), d)


def _between_floats(first: Any, last: Any, steps: int, d: xp.NumpyDtype) -> Array:
    """Evenly spaced numbers, from both ends towards the middle."""
    start, end = d.type(first), d.type(last)
    step, half = (end - start) / d.type(max(steps - 1, 1)), steps // 2
    places = np.arange(steps)
    np.subtract(steps - 1, places[half:], places[half:])
    result = places.astype(d)
    result *= step
    np.add(start, result[:half], result[:half])
    np.subtract(end, result[half:], result[half:])
    return result


def _between(first: Array, last: Array, steps: int, d: xp.NumpyDtype) -> Array:
    """The same, where every step of the way has to be rounded to the dtype."""

    def rounded(value: Any) -> Array:
        return np.asarray(value).astype(d).astype(wide(d))

    start, end, parts = rounded(first), rounded(last), max(steps - 1, 1)
    length = rounded(end - start)
    if d in xp.COMPLEX:
        step = rounded(length.real / length.real.dtype.type(parts) + 1j * (length.imag / length.real.dtype.type(parts)))
    else:
        step = rounded(length / rounded(parts))
    places = np.arange(steps)
    ahead = rounded(start + rounded(step * rounded(places)))
    behind = rounded(end - rounded(step * rounded(steps - 1 - places)))
    return np.where(places < steps // 2, ahead, behind)


_C_NAMES: Final = {xp.FLOAT32: "float", xp.FLOAT64: "double", xp.FLOAT16: "Half", xp.BFLOAT16: "BFloat16"}


def _is_complex(value: Any) -> bool:
    return value.dtype in xp.COMPLEX if isinstance(value, np.ndarray) else isinstance(value, complex)


def check_ends(name: str, start: Any, end: Any, steps: int, d: xp.NumpyDtype) -> None:
    """Raise OperatorError unless the range has that many numbers of this dtype."""
    if steps < 0:
        raise OperatorError("number of steps must be non-negative")
    if type(start) in _REAL and type(end) in _REAL:
        check_memory((steps,), d)
        return
    bounds = (("start", start), ("end", end))
    ranks = [(which, value.ndim) for which, value in bounds if isinstance(value, np.ndarray)]
    if any(rank for _, rank in ranks):
        found = " and ".join(f"{which} with {rank} dimension(s)" for which, rank in ranks)
        raise OperatorError(f"{name} only supports 0-dimensional start and end tensors, but got {found}.")
    if d not in xp.COMPLEX and any(_is_complex(value) for _, value in bounds):
        raise OperatorError(
            f"torch.{name}(): inferred dtype c10::complex<{_C_NAMES[default_dtype()]}> can't be safely cast to passed "
            f"dtype {xp.ir_name(d)}"
        )
    check_memory((steps,), d)


def _linspace_dtype(start: Any, end: Any, _: int) -> xp.NumpyDtype:
    if type(start) in _REAL and type(end) in _REAL:
        return default_dtype()
    return default_complex() if result_type((start, end)) in xp.COMPLEX else default_dtype()


def eye(n: int, m: int, d: xp.NumpyDtype) -> Array:
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise OperatorError(f"{name} must be greater or equal to 0, got {size}")
    check_memory((n, m), d)
    return np.eye(n, m, dtype=d)


def zeros(size: Sequence[int], d: xp.NumpyDtype) -> Array:
    for length in size:
        if length < 0:
            raise OperatorError("zeros: Dimension size must be non-negative.")
    check_memory(size, d)
    return np.zeros(size, d)


def ones(size: Sequence[int], d: xp.NumpyDtype) -> Array:
    return full(size, 1, d)


creator("zeros", "SymInt[] size", zeros, _floating, exact=True, shape=shapes.created, dtype="default")
creator("ones", "SymInt[] size", ones, _floating, exact=True, shape=shapes.created, dtype="default")
creator("full", "SymInt[] size, Scalar fill_value", full, lambda size, value: dtype_of_number(value),
        shape=shapes.created)  # fmt: skip
creator("arange", "Scalar end", lambda end, d: arange(0, end, 1, d), _whole_or_floating,
        in_order=True)  # fmt: skip
creator("arange.start", "Scalar start, Scalar end", lambda a, b, d: arange(a, b, 1, d), _whole_or_floating, out="")
creator("arange.start_step", "Scalar start, Scalar end, Scalar step=1", arange, _whole_or_floating, out="start_out",
        in_order=True)  # fmt: skip
creator("linspace.Tensor_Tensor", "Tensor start, Tensor end, int steps", linspace, _linspace_dtype,
        out="Tensor_Tensor_out", in_order=True)  # fmt: skip
creator("linspace.Tensor_Scalar", "Tensor start, Scalar end, int steps", linspace, _linspace_dtype,
        out="Tensor_Scalar_out", in_order=True)  # fmt: skip
creator("linspace.Scalar_Tensor", "Scalar start, Tensor end, int steps", linspace, _linspace_dtype,
        out="Scalar_Tensor_out", in_order=True)  # fmt: skip
creator("linspace", "Scalar start, Scalar end, int steps", linspace, _linspace_dtype, in_order=True)
creator("eye", "SymInt n", lambda n, d: eye(n, n, d), _floating)
creator("eye.m", "SymInt n, SymInt m", eye, _floating, out="m_out")
creator("scalar_tensor", "Scalar s", lambda s, d: full((), s, d), lambda s: default_dtype())


def empty(size: Sequence[int], dtype: int | None, _layout: Any, device: Any, _pin: Any, _format: Any) -> Array:
    check_device(device)
    d = default_dtype() if dtype is None else xp.numpy_dtype(dtype)
    return np.zeros(check_size(size, d), d)


def empty_out(size: Sequence[int], memory_format: int | None, out: Tensor) -> Tensor:
    if out.array.shape != tuple(size):
        store_out(out, np.zeros(check_size(size, out.array.dtype), out.array.dtype))
    return out


op(f"aten::empty.memory_format(SymInt[] size, *, {OPTIONS}, {FORMAT}) -> Tensor", kernel=empty, shape=shapes.created,
   dtype="default")  # fmt: skip
op(f"aten::empty.out(SymInt[] size, *, {FORMAT}, Tensor(a!) out) -> Tensor(a!)", python=empty_out, shape=shapes.created,
   dtype="default")  # fmt: skip

# ------------------------------------------------------------------ like another


def like(self: Array, value: Any, dtype: int | None, device: Any = None) -> Array:
    """An array shaped and laid out as `self` and full of `value`."""
    check_device(device)
    d = self.dtype if dtype is None else xp.numpy_dtype(dtype)
    if self.flags.c_contiguous:
        if type(value) is int and value == 0:
            return np.zeros(self.shape, d)
        result = np.empty(self.shape, d)
    else:
        made = np.empty_like(self, d, order="K" if is_dense(self) else "C", subok=False)
        result = made if is_dense(self) else ordered_like(made, [self])
    result.fill((element if result.size == 1 else converted)(value, d))
    return result


def _like(value: Any) -> Callable[..., Array]:
    def kernel(self: Array, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Array:
        return like(self, value, dtype, device)

    return kernel


def _like_out(value: Any) -> Callable[..., Tensor]:
    def body(self: Tensor, memory_format: Any, out: Tensor) -> Tensor:
        store_out(out, like(self.array, value, out.dtype.number))
        return out

    return body


def _new(value: Any) -> Callable[..., Array]:
    def kernel(self: Array, size: Sequence[int], dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Array:
        return new_full(self, size, value, dtype, layout, device, pin_memory)

    return kernel


def _new_out(value: Any) -> Callable[..., Tensor]:
    def body(self: Tensor, size: Sequence[int], out: Tensor) -> Tensor:
        store_out(out, full(size, value, out.array.dtype))
        return out

    return body


def ones_like(self: Tensor, *options: Any) -> Tensor:
    result: Tensor = run("full_like", self, 1, *options)
    return result


for _name, _value in (("zeros", 0), ("ones", 1), ("empty", 0)):
    _body: dict[str, Any] = {"python": ones_like} if _name == "ones" else {"kernel": _like(_value)}
    op(f"aten::{_name}_like(Tensor self, *, {OPTIONS}, {FORMAT}) -> Tensor", **_body,
       gradient=NOT_DIFFERENTIABLE, shape="self", dtype="same")  # fmt: skip
    op(f"aten::{_name}_like.out(Tensor self, *, {FORMAT}, Tensor(a!) out) -> Tensor(a!)", python=_like_out(_value),
       shape="self", dtype="same")  # fmt: skip
    op(f"aten::new_{_name}(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor", kernel=_new(_value), variants="method",
       gradient=NOT_DIFFERENTIABLE, data_dependent=_name == "empty")  # fmt: skip
    op(f"aten::new_{_name}.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", python=_new_out(_value))


def full_like(self: Array, value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, _: Any) -> Array:
    return like(self, value, dtype, device)


def full_like_out(self: Tensor, value: Any, memory_format: Any, out: Tensor) -> Tensor:
    return _like_out(value)(self, memory_format, out)


def new_full(
    self: Array, size: Sequence[int], value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Array:
    check_device(device)
    return full(size, value, self.dtype if dtype is None else xp.numpy_dtype(dtype))


def new_full_out(self: Tensor, size: Sequence[int], value: Any, out: Tensor) -> Tensor:
    return _new_out(value)(self, size, out)


op(f"aten::full_like(Tensor self, Scalar fill_value, *, {OPTIONS}, {FORMAT}) -> Tensor", kernel=full_like,
   gradient=NOT_DIFFERENTIABLE, shape="self", dtype="same")  # fmt: skip
op(f"aten::full_like.out(Tensor self, Scalar fill_value, *, {FORMAT}, Tensor(a!) out) -> Tensor(a!)",
   python=full_like_out, shape="self", dtype="same")  # fmt: skip
op(f"aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor", kernel=new_full,
   variants="method", gradient=NOT_DIFFERENTIABLE)  # fmt: skip
op("aten::new_full.out(Tensor self, SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)",
   python=new_full_out)  # fmt: skip

# ------------------------------------------------------------------ from Python values


_NUMBERS: Final = (float, complex, int, bool)
"""In the order in which a Union names them."""
_ALIKE: Final = frozenset({float, int, bool})
"""The types of which a list may have one."""


def _elements(data: Any) -> list[Any]:
    """The elements of a list of lists."""
    return [each for part in data for each in _elements(part)] if isinstance(data, list) else [data]


def check_elements(data: list[Any], level: int = 0) -> None:
    """Raises OperatorError for lists that programs make no tensors of: elements of several types, complex numbers."""
    types = {*map(type, data)}
    if len(types) == 1 and types <= _ALIKE:
        return
    if data and isinstance(data[0], list):
        for part in data:
            if len(part) != len(data[0]):
                raise OperatorError(f"Expected sequence of length {len(data[0])} at dim {level + 1} (got {len(part)})")
            check_elements(part, level + 1)
    if level:
        return
    kinds = {type(each) for each in _elements(data)}
    if not kinds or Tensor in kinds:
        return
    names = [kind.__name__ for kind in _NUMBERS if kind in kinds]
    others = sorted({type_name(each) for each in _elements(data) if type(each) not in _NUMBERS})
    shown = names[0] if len(names) == 1 else f"Union({', '.join(names)})"
    if others or (bool in kinds and len(kinds) > 1):
        found = [*others, *names]
        text = found[0] if len(found) == 1 else f"Union[{', '.join(found)}]"
        raise OperatorError(f"Input must be of ints, floats, or bools, got {text}")
    if complex in kinds or len(kinds) > 1:
        text = f"Add new condition, expected Float, Complex, Int, or Bool but got{shown}"
        raise OperatorError(text, hints=("use numbers of one type",))


def _natural(data: Any) -> xp.NumpyDtype | None:
    """The dtype of a single Python number; None for other values, and for integers beyond 64 bits."""
    kind = type(data)
    if kind is float:
        return default_dtype()
    if kind is complex:
        return default_complex()
    if kind is int:
        return xp.INT64 if -(2**63) <= data < 2**63 else None
    return xp.BOOL if kind is bool else None


def from_list(data: list[Any], dtype: int | None, device: Any, requires_grad: bool = False) -> Tensor:
    check_elements(data)
    return from_value(data, dtype, device, requires_grad)


def from_value(data: Any, dtype: int | None, device: Any, requires_grad: bool = False) -> Tensor:
    """A tensor of the numbers in the dtype that they call for, brought to the one that is asked for."""
    check_device(device)
    natural = None if requires_grad or not (device is None or device.type == "cpu") else _natural(data)
    if natural is not None:
        array = np.array(converted(data, natural), natural)
        return wrapped(array if dtype is None else xp.cast(array, xp.numpy_dtype(dtype)))
    made = tensor(data, device=device)
    if dtype is not None:
        made = wrapped(xp.cast(made.array, xp.numpy_dtype(dtype)))
    if requires_grad:
        check_differentiable(made.array.dtype)
        made.requires_grad = True
    return made


def as_tensor(data: Tensor, dtype: int | None, device: Any) -> Tensor:
    check_device(device)
    if device is not None and device != data.device:
        data = data.to(device)
    return data if dtype is None or dtype == data.dtype.number else Tensor(xp.cast(data.array, xp.numpy_dtype(dtype)))


_KINDS: Final = (("bool", "bool t"), ("float", "float t"), ("int", "int t"), ("complex", "complex t"))
for _name, _argument in _KINDS:
    op(f"aten::tensor.{_name}({_argument}, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) "
       "-> Tensor", python=from_value)  # fmt: skip
    op(f"aten::as_tensor.{_name}({_argument}, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
       python=from_value)  # fmt: skip
op("aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
   python=from_list)  # fmt: skip
op("aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) -> Tensor(b|a)", python=as_tensor)
op("aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor", python=from_list)

# ------------------------------------------------------------------ filling


def fill(self: Array, value: Any) -> Array:
    if isinstance(value, np.ndarray) and value.ndim:
        raise OperatorError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
        )
    return like(self, xp.cast(value, self.dtype).item() if isinstance(value, np.ndarray) else value, None)


def zero_(self: Tensor) -> Tensor:
    self.array.fill(0)
    storage = self._storage
    if storage is None:
        storage = self.memory
    storage.version += 1
    return self


def copy_(self: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    values = source.array if isinstance(source, Tensor) else np.asarray(source)
    if isinstance(source, Tensor) and _is_like(values, self.array) and source.memory is not self.memory:
        self.array[...] = values
        self.bump_version()
        return self
    if type(values) is not type(self.array):
        values = libraries.moved(values, self.device)
    shape = self.array.shape
    if values.shape != shape:
        values = np.broadcast_to(values, broadcast_shapes(shape, values.shape))
    if isinstance(source, Tensor) and source.memory is self.memory and np.shares_memory(values, self.array):
        refuse_overlap(self, (source,))
        _copy_in_order(self, values)
    else:
        overwrite(self, values)
    return self


def _is_like(values: Array, array: Array) -> bool:
    """True for values that a dense array on the host takes as they are."""
    is_on_host = not HOOKS.devices and type(values) is type(array) is np.ndarray
    return is_on_host and values.dtype is array.dtype and values.shape == array.shape and array.flags.c_contiguous


def _copy_in_order(self: Tensor, values: Array) -> None:
    """Copy element by element, as a loop over overlapping memory would: elements read may have been written before."""
    for place in np.ndindex(values.shape):
        self.array[place] = values[place]
    self.bump_version()


op("aten::fill.Scalar(Tensor self, Scalar value) -> Tensor", kernel=fill, variants="function method inplace out",
   gradient={"self": "zeros_like(grad)"}, shape="self")  # fmt: skip
op("aten::fill.Tensor(Tensor self, Tensor value) -> Tensor", kernel=fill, variants="function method inplace out",
   gradient={"self": "zeros_like(grad)", "value": "grad.sum()"}, shape="self")  # fmt: skip
op("aten::zero_(Tensor(a!) self) -> Tensor(a!)", python=zero_, variants=VIEW, gradient={"self": "zeros_like(grad)"})
op("aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", python=copy_, variants="method",
   gradient={"self": "zeros_like(grad)", "src": "grad"})  # fmt: skip
op("aten::copy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", python=copy_,
   gradient={"self": "zeros_like(grad)", "other": "grad"})  # fmt: skip
op("aten::copy_.int(Tensor(a!) self, int other) -> Tensor(a!)", python=copy_, gradient={"self": "zeros_like(grad)"})
op("aten::copy_.float(Tensor(a!) self, float other) -> Tensor(a!)", python=copy_, gradient={"self": "zeros_like(grad)"})


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("fill.Scalar_out fill.Tensor_out", out_check=out_checks.check_same)
describe("fill_", writes_again=True)
