"""Tensors: an array with memory that views share, and what autograd hangs on it.

In: arrays, nested lists, numbers.  Out: `Tensor`.  Its operators and methods come from the operator
table; `engine.aten.python.binding` binds them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, cast
from weakref import ref

import numpy as np

from engine.aten.values import libraries, promotion, xp
from engine.aten.values.hooks import HOOKS, NOT_TRACED
from engine.aten.values.size import Size as Size
from engine.aten.values.size import new_size
from engine.aten.values.storage import Storage, storage_of
from engine.aten.values.xp import Array
from engine.lang import scalars
from engine.lang.errors import OperatorError, OperatorTypeError, OperatorValueError, did_you_mean
from engine.lang.records import dataclass


@dataclass(eq=False, slots=True)
class LeafHooks:
    """State of a leaf for backward passes: its node, hooks before and after its gradient is accumulated."""

    accumulator: ref[Any] | None = None
    before: list[Any] = field(default_factory=list)
    accumulated: list[Any] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Above:
    """Functions of the layers above that tensors call; `engine.aten` sets them when it is imported."""

    call: Callable[[str, tuple[Any, ...], dict[str, Any]], Any] = field(init=False)
    """Runs an operator by name."""
    permute: Callable[[Tensor, list[int]], Any] = field(init=False)
    text: Callable[[Tensor], str] = field(init=False)
    """The tensor as it prints."""
    history: Callable[[Tensor], Any] = field(init=False)
    """The autograd node of a view, found anew after its base was written to."""


ABOVE: Final = Above()


def fresh_lines(name: str) -> tuple[str, ...]:
    """Lines of a written function that make of `object.__new__(Tensor)` with its `array` a tensor without history."""
    return (
        f"{name}._requires_grad = False",
        f"{name}._grad_fn = {name}._storage = {name}._base = None",
        f"{name}.output_nr = 0",
    )


class TensorType(type):
    """The class of `Tensor`, which suggests names of methods for those that are none."""

    def __getattr__(cls, name: str) -> Any:
        hint = "" if name.startswith("__") else "".join(f"; {h}" for h in did_you_mean(name, {*vars(Tensor)}))
        raise AttributeError(f"'Tensor' object has no attribute or method '{name}'{hint}")


class Tensor(metaclass=TensorType):
    """An n-dimensional array of one dtype.

    `array` is the view of the memory that the tensor shows, `_grad_fn` what autograd recorded.  The
    storage is made when first asked for: most tensors live and die without views or writes.  A view
    knows its `_base` and the version of the memory that its history is `_seen` of; `_view_kind` says
    what keeps it from being written to ("many" views at once, made under "no_grad").

    Note [Quick attributes]
    What every operator looks at has a slot, which `fresh_lines` set; the rest are attributes of the class until they
    differ.  There is no `__getattr__`, since Python looks up attributes of a class that has one by the slow way, also
    those that are there: `engine.aten.python.binding` gives the class all methods when `engine.aten` is imported.
    """

    __slots__ = (
        "__dict__", "__weakref__", "_base", "_grad_fn", "_requires_grad", "_seen", "_storage", "array", "output_nr",
    )  # fmt: skip
    array: Array
    output_nr: int
    _requires_grad: bool
    _grad_fn: Any
    _storage: Storage | None
    _base: Tensor | None
    _seen: int
    _grad: Tensor | None = None
    _hooks: LeafHooks | None = None
    _view_kind: str = ""

    def __init__(self, array: Any = (), requires_grad: Any = False, storage: Any = None, *more: int) -> None:
        """Of an array; programs may also give sizes, or nested sequences of numbers for the default dtype."""
        self._grad_fn = self._base = None
        self.output_nr = 0
        if type(array) is not np.ndarray and type(array) not in libraries.ARRAYS:
            array, requires_grad, storage = _array_for_program((array, requires_grad, storage, *more)), False, None
        self.array = array
        self._requires_grad = bool(requires_grad)
        self._storage = storage

    # -- autograd

    @property
    def requires_grad(self) -> bool:
        """True if backward passes compute a gradient for it; setting it raises OperatorError where that cannot be."""
        return self._requires_grad or (self._base is not None and ABOVE.history(self) is not None)

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if self.grad_fn is not None and not wanted:
            raise OperatorError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                "in a subgraph that doesn't require differentiation use var_no_grad = var.detach().",
            )
        if wanted:
            check_differentiable(self.array.dtype)
        self._requires_grad = wanted

    @property
    def grad_fn(self) -> Any:
        """The node that the backward pass enters here; None for leaves."""
        return self._grad_fn if self._base is None else ABOVE.history(self)

    def attach(self, node: Any, output: int) -> None:
        """Make the tensor the result number `output` of a node."""
        self._grad_fn = node
        self._requires_grad = True
        self.output_nr = output
        if not node.outputs:
            node.outputs = ((self.array.shape, self.array.dtype),)

    @property
    def is_leaf(self) -> bool:
        return self.grad_fn is None

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward passes added up; raises OperatorError when set to one that does not fit."""
        return self._grad

    @grad.setter
    def grad(self, gradient: Tensor | None) -> None:
        if gradient is not None and not (type(gradient) is Tensor and _alike(self.array, gradient.array)):
            _check_gradient(self, gradient)
        self._grad = gradient

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def hooks(self) -> LeafHooks:
        """The state of this leaf for backward passes."""
        if self._hooks is None:
            self._hooks = LeafHooks()
        return self._hooks

    # -- memory

    @property
    def memory(self) -> Storage:
        """The memory behind the tensor, the same object for all its views."""
        storage = self._storage
        if storage is None:
            self._storage = storage = storage_of(self.array)
        return storage

    @property
    def _version(self) -> int:
        """The number of writes to the memory."""
        return self._storage.version if self._storage is not None else 0

    def bump_version(self) -> None:
        self.memory.version += 1

    @property
    def dtype(self) -> scalars.dtype:
        return xp.FROM_NUMPY[self.array.dtype]

    @property
    def device(self) -> scalars.device:
        return scalars.CPU if type(self.array) is np.ndarray else libraries.device_of(self.array)

    @property
    def shape(self) -> Size:
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("shape", self)) is not NOT_TRACED:
            return Size(traced)
        return new_size(Size, self.array.shape)

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def itemsize(self) -> int:
        return self.array.itemsize

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    @property
    def is_cuda(self) -> bool:
        return type(self.array) is not np.ndarray and self.device.type == "cuda"

    @property
    def T(self) -> Tensor:
        """The tensor with its dimensions reversed, a view."""
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("T", self)) is not NOT_TRACED:
            return cast(Tensor, traced)
        reversed_: Tensor = ABOVE.permute(self, [*range(self.array.ndim - 1, -1, -1)])
        return reversed_

    @property
    def mT(self) -> Tensor:
        """Every matrix transposed, a view."""
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("mT", self)) is not NOT_TRACED:
            return cast(Tensor, traced)
        turned: Tensor = ABOVE.call("transpose", (self, -2, -1), {})
        return turned

    @property
    def mH(self) -> Tensor:
        """Every matrix transposed and conjugated."""
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("mH", self)) is not NOT_TRACED:
            return cast(Tensor, traced)
        turned: Tensor = ABOVE.call("conj", (self.mT,), {})
        return turned

    @property
    def data(self) -> Tensor:
        """The same values outside autograd, in the same memory; writes to it do not count as writes to this tensor."""
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("data", self)) is not NOT_TRACED:
            return cast(Tensor, traced)
        return Tensor(self.array, storage=Storage(self.memory.owner))

    @data.setter
    def data(self, values: Tensor) -> None:
        self.array, self._storage = values.array, values.memory

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers (0-dim: the number)."""
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("tolist", self)) is not NOT_TRACED:
            return traced
        return xp.to_list(self.array)

    def item(self) -> Any:
        """The one value as a Python number; raises OperatorError unless there is exactly one."""
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("item", self)) is not NOT_TRACED:
            return traced
        array = self.array
        if array.size != 1:
            raise OperatorError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
        if array.dtype in xp.HALVES:
            return float(array.item())
        if array.dtype == xp.COMPLEX32:
            return complex(array.item())
        if array.dtype.names is not None:  # integers that stand for numbers
            return float(ABOVE.call("dequantize", (self,), {}).item())
        return array.item()

    def __len__(self) -> int:
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("__len__", self)) is not NOT_TRACED:
            return int(traced)
        if self.array.ndim == 0:
            raise OperatorTypeError("len() of a 0-d tensor")
        return self.array.shape[0]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Tensor]:
        if HOOKS.tracer is not None:
            HOOKS.tracer.member("__iter__", self)
        if self.array.ndim == 0:
            raise OperatorTypeError("iteration over a 0-d tensor")
        return iter(ABOVE.call("unbind", (self,), {}))

    def __bool__(self) -> bool:
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("__bool__", self)) is not NOT_TRACED:
            return bool(traced)
        if self.array.size != 1:
            what = "no values" if self.array.size == 0 else "more than one value"
            raise OperatorError(f"Boolean value of Tensor with {what} is ambiguous")
        return bool(self.item())

    def __int__(self) -> int:
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("__int__", self)) is not NOT_TRACED:
            return int(traced)
        return int(_real(self))

    def __float__(self) -> float:
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("__float__", self)) is not NOT_TRACED:
            return float(traced)
        return float(_real(self))

    def __complex__(self) -> complex:
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("__complex__", self)) is not NOT_TRACED:
            return complex(traced)
        return complex(_one(self))

    def __index__(self) -> int:
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("__index__", self)) is not NOT_TRACED:
            return int(traced)
        value = self.item() if self.array.size == 1 else None
        if not isinstance(value, int):
            raise OperatorTypeError("only integer tensors of a single element can be converted to an index")
        return int(value)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("__repr__", self)) is not NOT_TRACED:
            return str(traced)
        return ABOVE.text(self)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def backward(
            self,
            gradient: Tensor | None = None,
            retain_graph: bool | None = None,
            create_graph: bool = False,
            inputs: Tensor | Sequence[Tensor] | None = None,
        ) -> None: ...
        def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any: ...
        def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any: ...
        def retain_grad(self) -> None: ...
        @property
        def retains_grad(self) -> bool: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: object) -> Any: ...


def tensor(data: Any, dtype: scalars.dtype | None = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with the values of `data`: an array, a number, nested sequences of numbers, a tensor.

    Arrays keep their dtype and their layout, Python floats take the default dtype.
    Raises OperatorTypeError (no such dtype, complex numbers for a real one), OperatorValueError (ragged sequences),
    OperatorError (numbers that the dtype does not hold, requires_grad of something without fractions).
    """
    if isinstance(data, Tensor):
        data = data.array
    wanted = None if dtype is None else xp.numpy_dtype(dtype)
    array = xp.copy_layout(data) if libraries.is_array(data) else _array_from(data, wanted)
    if device is not None:
        array = libraries.moved(array, scalars.device(device))
    if wanted is not None:
        array = xp.cast(array, wanted)
    xp.dtype_of(array)
    if requires_grad:
        check_differentiable(array.dtype)
    return Tensor(array, requires_grad)


def wrapped(array: Array, storage: Storage | None = None) -> Tensor:
    """`Tensor(array, storage=storage)`, for those in a hurry."""
    made: Tensor = _new(Tensor)
    made.array = array
    made._requires_grad = False
    made._grad_fn = made._base = None
    made._storage = storage
    made.output_nr = 0
    return made


_new: Final[Callable[..., Any]] = object.__new__


def from_numpy(array: Array) -> Tensor:
    """A tensor in the memory of `array`; raises OperatorTypeError when tensors have no such dtype."""
    xp.dtype_of(array)
    if any(stride < 0 for stride in array.strides):
        raise OperatorValueError("At least one stride in the given numpy array is negative", hints=("copy it first",))
    return Tensor(array)


def check_differentiable(d: xp.NumpyDtype) -> None:
    if promotion.rank(d) < 2:
        raise OperatorError("Only Tensors of floating point and complex dtype can require gradients")


def _alike(array: Array, other: Array) -> bool:
    """True if these are two arrays of the same shape and dtype."""
    return array is not other and array.dtype is other.dtype and array.shape == other.shape


def _check_gradient(tensor: Tensor, gradient: Any) -> None:
    if gradient is tensor:
        raise OperatorError("can't assign Variable as its own grad")
    if not isinstance(gradient, Tensor):
        kind = type(gradient).__name__
        raise OperatorTypeError(f"assigned grad expected to be a Tensor or None but got grad of type {kind}")
    if gradient.array.shape != tensor.array.shape:
        raise OperatorError(
            f"attempting to assign a gradient of size '{list(gradient.shape)}' to a tensor of size "
            f"'{list(tensor.shape)}'. Please ensure that the gradient and the tensor are the same size"
        )
    if gradient.array.dtype != tensor.array.dtype:
        raise OperatorError(
            f"attempting to assign a gradient with dtype '{gradient.dtype.name}' to a tensor with dtype "
            f"'{tensor.dtype.name}'"
        )


def _one(tensor: Tensor) -> Any:
    if tensor.array.size != 1:
        raise OperatorValueError(
            f"only one element tensors can be converted to Python scalars, and this one has {tensor.array.size}"
        )
    return tensor.item()


def _real(tensor: Tensor) -> Any:
    value = _one(tensor)
    if isinstance(value, complex) and value.imag:
        raise OperatorError(f"value {value} cannot be converted to a real number without overflow")
    return value.real


def _array_for_program(args: tuple[Any, ...]) -> Array:
    """`torch.Tensor(2, 3)` has sizes, `torch.Tensor([2.0, 3.0])` data."""
    data, d = args[0], promotion.default_dtype()
    if isinstance(data, np.generic):
        return np.asarray(data)
    sizes = sizes_of([arg for arg in args if arg is not False and arg is not None])
    return np.zeros(sizes, d) if sizes is not None else tensor(data).array.astype(d)


def sizes_of(args: Sequence[Any]) -> list[int] | None:
    """The sizes, where a constructor that takes sizes or data is given these: a `Size`, integers, or numbers in tensors
    beside others; None for data."""
    given = args[0] if len(args) == 1 and isinstance(args[0], Size) else args
    are_sizes = given is not args or all(isinstance(arg, int) and not isinstance(arg, bool) for arg in args)
    if not are_sizes and not (len(args) > 1 and all(isinstance(arg, (int, Tensor)) for arg in args)):
        return None
    return [operator.index(size) for size in given]


def _array_from(data: Any, wanted: xp.NumpyDtype | None) -> Array:
    """Numbers or nested sequences of them, as an array of the dtype wanted, or of that which they call for."""
    flat: list[Any] = []
    kinds: set[xp.NumpyDtype] = set()
    shape = _shape_of(data, flat, kinds)
    if wanted is None:
        wanted = functools.reduce(promotion.promote_types, kinds) if kinds else promotion.default_dtype()
    return promotion.stored(flat, wanted).reshape(shape)


_DTYPE_OF_PYTHON: Final[dict[type, Callable[[], xp.NumpyDtype]]] = {
    bool: lambda: xp.BOOL,
    int: lambda: xp.INT64,
    float: promotion.default_dtype,
    complex: promotion.default_complex,
}


_NUMBERS: Final = frozenset(_DTYPE_OF_PYTHON)


def _shape_of(data: Any, flat: list[Any], kinds: set[xp.NumpyDtype]) -> tuple[int, ...]:
    """The shape of nested sequences; their numbers are appended to `flat`, and the dtypes of these to `kinds`."""
    if type(data) is list and data and _NUMBERS.issuperset(found := set(map(type, data))):
        flat += data
        kinds.update(_DTYPE_OF_PYTHON[kind]() for kind in found)
        return (len(data),)
    if isinstance(data, (Tensor, np.ndarray, np.generic)):
        if HOOKS.tracer is not None and isinstance(data, Tensor):
            HOOKS.tracer.lost("a Python number")
        array = libraries.on_host(data.array) if isinstance(data, Tensor) else np.asarray(data)
        flat += xp.to_list(array.ravel())
        kinds.add(array.dtype)
        return array.shape
    if isinstance(data, (bool, int, float, complex)):
        flat.append(data)
        kinds.add(promotion.dtype_of_number(data))
        return ()
    if not isinstance(data, (list, tuple)) and isinstance(data, SupportsIndex):
        flat.append(data.__index__())
        kinds.add(xp.INT64)
        return ()
    if not isinstance(data, Sequence) or isinstance(data, str):
        if isinstance(data, str):
            raise OperatorTypeError("can't make a tensor from a str")
        raise OperatorError(f"can't make a tensor from a {type(data).__name__}: it has no dtype")
    shapes = [_shape_of(item, flat, kinds) for item in data]
    if any(shape != shapes[0] for shape in shapes):
        lengths = sorted({str(list(shape)) for shape in shapes})
        raise OperatorValueError(f"expected sequences of equal length, got {' and '.join(lengths)}")
    return (len(data), *(shapes[0] if shapes else ()))
