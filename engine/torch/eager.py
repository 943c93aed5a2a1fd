"""Functions of the torch namespace that only Python programs have: questions, defaults, ways to make tensors.

In: Python values.  Out: tensors and facts about them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np

from engine.aten.dispatch.calls import call
from engine.aten.python.methods import LEGACY_TYPES
from engine.aten.values import libraries, promotion, xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Size, Tensor, from_numpy, tensor
from engine.lang import scalars
from engine.lang.errors import OperatorError

# -- questions


def is_tensor(obj: Any) -> bool:
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    return isinstance(obj, Storage)


def typename(obj: Any) -> str:
    """The name of the value's type: `torch.FloatTensor` for tensors."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


# -- defaults


def get_default_dtype() -> scalars.dtype:
    """What Python floats become."""
    return xp.FROM_NUMPY[promotion.default_dtype()]


def set_default_dtype(d: scalars.dtype) -> None:
    """Make Python floats become `d`.  Raises TypeError unless it is a dtype with fractions."""
    if not isinstance(d, scalars.dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, not {d!r}")
    promotion.set_default_dtype(d)


def set_default_tensor_type(t: Any) -> None:
    """The same by an old name, `torch.DoubleTensor`, or by what it names."""
    set_default_dtype(LEGACY_TYPES[t.rpartition(".")[2]] if isinstance(t, str) else t.dtype)


def get_default_device() -> scalars.device:
    """Where tensors are made."""
    return libraries.DEFAULT_DEVICE.now() or scalars.CPU


def get_num_threads() -> int:
    """How many threads operators use."""
    return 1


def set_default_device(device: Any) -> None:
    """Say where programs make tensors that they name no device for.  Raises OperatorError where there is none."""
    libraries.DEFAULT_DEVICE.choose(None if device is None else scalars.device(device))


def set_num_threads(count: int) -> None:
    """Takes a wish; operators go on using one thread."""


@dataclass(slots=True)
class _Deterministic:
    wanted: bool = False


_DETERMINISTIC: Final = _Deterministic()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Every operator is deterministic anyway; the wish is remembered."""
    _DETERMINISTIC.wanted = mode


def are_deterministic_algorithms_enabled() -> bool:
    return _DETERMINISTIC.wanted


def compile(model: Any = None, **_: Any) -> Any:
    """The model as it is: it runs eagerly.  `torch.jit.script` compiles."""
    return (lambda each: each) if model is None else model


# -- tensors


def as_tensor(data: Any, dtype: scalars.dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of the data, in the same memory where that can be."""
    if isinstance(data, Tensor):
        moved = data if device is None else data.to(scalars.device(device))
        return moved if dtype is None else moved.to(dtype)
    made = from_numpy(data) if isinstance(data, np.ndarray) else tensor(data)
    made = made if dtype is None else made.to(dtype)
    place = libraries.DEFAULT_DEVICE.now() if device is None else scalars.device(device)
    made = made if place is None else made.to(place)
    if HOOKS.trace_constant is not None:
        HOOKS.trace_constant(made, "torch.as_tensor of an array" if isinstance(data, np.ndarray) else "torch.as_tensor")
    return made


asarray = as_tensor


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes have together.  Raises OperatorError."""
    try:
        return Size(np.broadcast_shapes(*((each,) if isinstance(each, int) else tuple(each) for each in shapes)))
    except ValueError as error:
        raise OperatorError(f"shapes {', '.join(map(str, shapes))} do not broadcast to one: {error}") from None


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Where the elements of these numbers lie in a tensor of the shape.  Raises ValueError for numbers beyond it."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return tuple(Tensor(np.asarray(each)) for each in np.unravel_index(indices.array, sizes))


class LegacyTensor:
    """`torch.FloatTensor` and the like: makes tensors of one dtype from sizes or from data."""

    def __init__(self, name: str, d: scalars.dtype) -> None:
        self.__name__, self.dtype = name, d

    def __call__(self, *args: Any) -> Tensor:
        return legacy_tensor(self.dtype, *args)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is self.dtype

    def __subclasscheck__(self, subclass: Any) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<class 'torch.{self.__name__}'>"


def legacy_tensor(d: scalars.dtype, *args: Any) -> Tensor:
    """A tensor of these sizes, values as they come; or one of the data.  Raises TypeError for both at once."""
    if not args or all(isinstance(arg, int) for arg in args):
        made: Tensor = call("empty", (list(args) or [0],), {"dtype": d})
        return made
    if len(args) > 1:
        raise TypeError(f"new() takes sizes or one sequence of data, but got {len(args)} arguments")
    (data,) = args
    if type(data).__name__ == "Size":
        return legacy_tensor(d, *data)
    return tensor(data, dtype=d)


FloatTensor: Final = LegacyTensor("FloatTensor", scalars.float32)
DoubleTensor: Final = LegacyTensor("DoubleTensor", scalars.float64)
HalfTensor: Final = LegacyTensor("HalfTensor", scalars.float16)
BFloat16Tensor: Final = LegacyTensor("BFloat16Tensor", scalars.bfloat16)
LongTensor: Final = LegacyTensor("LongTensor", scalars.int64)
IntTensor: Final = LegacyTensor("IntTensor", scalars.int32)
ShortTensor: Final = LegacyTensor("ShortTensor", scalars.int16)
CharTensor: Final = LegacyTensor("CharTensor", scalars.int8)
ByteTensor: Final = LegacyTensor("ByteTensor", scalars.uint8)
BoolTensor: Final = LegacyTensor("BoolTensor", scalars.bool_)

# -- call styles


def with_requires_grad(function: Callable[..., Any], *args: Any, requires_grad: bool = False, **kwargs: Any) -> Any:
    """What makes a tensor, and may be asked for one that requires grad."""
    made = function(*args, **kwargs)
    if requires_grad:
        made.requires_grad = True
    return made


def with_gathered(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What takes a list of tensors, which may also be written without brackets."""
    first = next((i for i, arg in enumerate(args) if isinstance(arg, Tensor)), None)
    return function(*args, **kwargs) if first is None else function(*args[:first], list(args[first:]), **kwargs)


def bundled(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What gives a list of tensors, as a tuple."""
    result = with_gathered(function, *args, **kwargs)
    return tuple(result) if isinstance(result, list) else result


def for_each(function: Callable[..., Any], *tensors: Any) -> Any:
    """What is done to one tensor, or to each of several."""
    alone = len(tensors) == 1 and isinstance(tensors[0], Tensor)
    return function(*tensors) if alone else bundled(function, *tensors)


def with_sizes_of_input(
    function: Callable[..., Any], input: Tensor, output_size: Any, *args: Any, **kwargs: Any
) -> Any:
    """What takes the sizes of its output, None where the input's shall stay.  Raises OperatorError, ValueError."""
    if isinstance(output_size, (tuple, list)):
        if len(output_size) >= input.dim():
            raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
        own = input.shape[-len(output_size) :]
        output_size = [have if wanted is None else wanted for wanted, have in zip(output_size, own, strict=True)]
    try:
        return function(input, output_size, *args, **kwargs)
    except AssertionError:  # the program's own: it has one, about this
        raise OperatorError(f"Expected a tensor with more dimensions, but got {list(input.shape)}") from None


def with_lengths(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What takes tensors of lengths, which may also be written as tuples."""
    given = {name: _lengths(value) if name.endswith("_lengths") else value for name, value in kwargs.items()}
    return function(*args[:2], *map(_lengths, args[2:4]), *args[4:], **given)


def _lengths(value: Any) -> Any:
    return tensor(list(value)) if isinstance(value, (tuple, list)) else value


def unreduced(place: int) -> Callable[..., Any]:
    """Losses of the namespace torch: without a `reduction`, which is the argument there, Python programs get one number
    for each element, whatever the operator's own default."""

    def style(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        given = len(args) > place or "reduction" in kwargs
        return function(*args, **kwargs) if given else function(*args, **kwargs, reduction=0)

    return style


def with_choice_of_tuple(
    function: Callable[..., Any], input: Tensor, *, as_tuple: bool = False, **kwargs: Any
) -> Any:  # fmt: skip
    """What gives places as rows of one tensor, or, with `as_tuple`, as a tensor for each dimension."""
    return tuple(call("nonzero_numpy", (input,), {})) if as_tuple else function(input, **kwargs)


_FACTORIES: Final = (
    "arange blackman_window bartlett_window empty empty_like empty_strided eye full full_like hamming_window "
    "hann_window kaiser_window linspace logspace ones ones_like rand rand_like randint randint_like randn randn_like "
    "randperm range tril_indices triu_indices zeros zeros_like normal complex scalar_tensor"
)
_GATHERING: Final = "einsum block_diag cartesian_prod chain_matmul"
_BUNDLING: Final = "meshgrid broadcast_tensors"
_FOR_EACH: Final = "atleast_1d atleast_2d atleast_3d"
_LOSSES: Final = {
    "binary_cross_entropy_with_logits": 4, "cosine_embedding_loss": 4, "ctc_loss": 5, "hinge_embedding_loss": 3,
    "kl_div": 2, "margin_ranking_loss": 4, "triplet_margin_loss": 7,
}  # fmt: skip
_ADAPTIVE: Final = "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d"
STYLES: Final[dict[str, dict[str, Callable[..., Any]]]] = {
    "torch": {
        **dict.fromkeys(_FACTORIES.split(), with_requires_grad),
        **dict.fromkeys(_GATHERING.split(), with_gathered),
        **dict.fromkeys(_BUNDLING.split(), bundled),
        **dict.fromkeys(_FOR_EACH.split(), for_each),
        **{name: unreduced(place) for name, place in _LOSSES.items()},
        "nonzero": with_choice_of_tuple,
    },
    "torch.nn.functional": {**dict.fromkeys(_ADAPTIVE.split(), with_sizes_of_input), "ctc_loss": with_lengths},
}
"""Where a function is found -> its name -> how Python programs call it, where that differs."""


# -- facts about dtypes


def _checked(d: Any) -> scalars.dtype:
    if not isinstance(d, scalars.dtype):
        raise TypeError(f"argument 'type' must be a dtype, not {type(d).__name__}")
    return d


class finfo:
    """What a dtype with fractions can hold; of complex ones, their parts.  Raises TypeError for other dtypes."""

    def __init__(self, type: scalars.dtype | None = None) -> None:
        d = get_default_dtype() if type is None else _checked(type)
        if not (d.is_floating_point or d.is_complex):
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{d}'")
        kind = np.empty(0, xp.TO_NUMPY[d]).real.dtype
        facts: Any = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
        self.dtype, self.bits = xp.FROM_NUMPY[kind].name, int(facts.bits)
        self.min, self.max, self.eps = float(facts.min), float(facts.max), float(facts.eps)
        self.tiny, self.resolution = float(facts.smallest_normal), float(facts.resolution)
        self.smallest_normal = self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """What a dtype of whole numbers can hold.  Raises TypeError for other dtypes."""

    def __init__(self, type: scalars.dtype) -> None:
        if _checked(type).category != "int":
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        facts = np.iinfo(xp.TO_NUMPY[type])
        self.dtype, self.bits, self.min, self.max = type.name, facts.bits, int(facts.min), int(facts.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
