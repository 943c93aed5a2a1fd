"""Functions of the torch namespace for Python programs only: type tests, defaults, creation of tensors, dtype limits.

In: Python values.  Out: tensors and facts about them.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from engine.aten.dispatch.calls import call
from engine.aten.python.methods import LEGACY_TYPES
from engine.aten.values import libraries, promotion, xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Size, Tensor, from_numpy, sizes_of, tensor
from engine.fuser.backend import tiering
from engine.lang import scalars
from engine.lang.deferred import deferred
from engine.lang.errors import OperatorError
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.fuser.backend import threads
else:
    threads = deferred("engine.fuser.backend.threads")

# -- type tests


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
    """The dtype that Python floats become."""
    return xp.FROM_NUMPY[promotion.default_dtype()]


def set_default_dtype(d: scalars.dtype) -> None:
    """Set the dtype that Python floats become.  Raises TypeError unless it is a floating-point dtype."""
    if not isinstance(d, scalars.dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, not {d!r}")
    promotion.set_default_dtype(d)


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a legacy tensor type, `torch.DoubleTensor` or its name."""
    set_default_dtype(LEGACY_TYPES[t.rpartition(".")[2]] if isinstance(t, str) else t.dtype)


def get_default_device() -> scalars.device:
    """The device of new tensors."""
    return libraries.DEFAULT_DEVICE.now() or scalars.CPU


def get_num_threads() -> int:
    """The number of threads that one operator uses at most; at first as many as there are processors."""
    return threads.get_num_threads()


def compile_mode() -> str:
    """When machine code is made: "background", "eager" or "off"."""
    return tiering.mode()


def set_compile_mode(mode: str) -> None:
    """Choose when machine code is made.  Raises ArgumentError for a mode that is none.

    "background": while the program goes on, for what is called often; "eager": before the first call; "off": never,
    and results are the interpreter's to the bit.  `TSREPL_COMPILE` in the environment chooses the first one.
    """
    tiering.set_mode(mode)


def set_default_device(device: Any) -> None:
    """Set the device of new tensors without a given one.  Raises OperatorError for a missing device."""
    libraries.DEFAULT_DEVICE.choose(None if device is None else scalars.device(device))


def set_num_threads(count: int) -> None:
    """Let operators use so many threads at most.  Raises ValueError for less than 1."""
    threads.set_num_threads(count)


@dataclass(slots=True)
class _Deterministic:
    wanted: bool = False


_DETERMINISTIC: Final = _Deterministic()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Store the setting; every operator is deterministic anyway."""
    _DETERMINISTIC.wanted = mode


def are_deterministic_algorithms_enabled() -> bool:
    return _DETERMINISTIC.wanted


def _assert(condition: Any, message: str) -> None:
    """Raises AssertionError with the message unless the condition holds."""
    assert condition, message


def compile(model: Any = None, **_: Any) -> Any:
    """The model itself, which runs eagerly: `torch.jit.script` compiles."""
    return (lambda each: each) if model is None else model


# -- tensors


def as_tensor(data: Any, dtype: scalars.dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of the data, sharing its memory if possible."""
    if isinstance(data, Tensor):
        moved = data if device is None else data.to(scalars.device(device))
        return moved if dtype is None else moved.to(dtype)
    made = from_numpy(data) if isinstance(data, np.ndarray) else tensor(data, dtype)
    made = made if dtype is None else made.to(dtype)
    place = libraries.DEFAULT_DEVICE.now() if device is None else scalars.device(device)
    made = made if place is None else made.to(place)
    if HOOKS.tracer is not None:
        HOOKS.tracer.constant(
            made, "torch.as_tensor of an array" if isinstance(data, np.ndarray) else "torch.as_tensor"
        )
    return made


asarray = as_tensor


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape to which tensors of these shapes broadcast.  Raises OperatorError."""
    try:
        return Size(np.broadcast_shapes(*((each,) if isinstance(each, int) else tuple(each) for each in shapes)))
    except ValueError as error:
        raise OperatorError(f"shapes {', '.join(map(str, shapes))} do not broadcast to one: {error}") from None


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates of flat indices in a tensor of the shape.  Raises ValueError for indices out of range."""
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
    """An uninitialized tensor of these sizes, or a tensor of the data.  Raises TypeError for both at once."""
    sizes = sizes_of(args or (0,))
    if sizes is not None:
        empty: Tensor = call("empty", (sizes,), {"dtype": d})
        return empty
    if len(args) > 1:
        raise TypeError(f"new() takes sizes or one sequence of data, but got {len(args)} arguments")
    (data,) = args
    made = tensor(data, dtype=d)
    if HOOKS.tracer is not None:
        HOOKS.tracer.constant(made, "legacy constructor")
    return made


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
    """Call a factory function, and set `requires_grad` of its result."""
    made = function(*args, **kwargs)
    if requires_grad:
        made.requires_grad = True
    return made


def with_gathered(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of a list of tensors, which may also be given as separate arguments."""
    first = next((i for i, arg in enumerate(args) if isinstance(arg, Tensor)), None)
    return function(*args, **kwargs) if first is None else function(*args[:first], list(args[first:]), **kwargs)


_LETTERS: Final = string.ascii_uppercase + string.ascii_lowercase


def einsum(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `einsum` with an equation, or with tensors, each before the list of its dimensions' numbers (0 to 51), and
    behind them perhaps the result's.  Raises OperatorError for other numbers."""
    if not args or not isinstance(args[0], Tensor):
        return with_gathered(function, *args, **kwargs)
    pairs = len(args) // 2
    equation = ",".join(map(_subscripts, args[1 : 2 * pairs : 2]))
    if len(args) > 2 * pairs:
        equation += f"->{_subscripts(args[-1])}"
    return function(equation, list(args[: 2 * pairs : 2]), **kwargs)


def _subscripts(dims: Any) -> str:
    """The letters of a list of dimensions."""
    for each in dims:
        if each is not Ellipsis and not 0 <= each < len(_LETTERS):
            text = f"subscripts in the list are not within the valid range [0, {len(_LETTERS)})"
            raise OperatorError(f"einsum(): {text}, found {each}")
    return "".join("..." if each is Ellipsis else _LETTERS[each] for each in dims)


def bundled(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function that returns a list of tensors, and return them as a tuple."""
    result = with_gathered(function, *args, **kwargs)
    return tuple(result) if isinstance(result, list) else result


def for_each(function: Callable[..., Any], *tensors: Any) -> Any:
    """Call a function of one tensor on one tensor, or on each of several."""
    alone = len(tensors) == 1 and isinstance(tensors[0], Tensor)
    return function(*tensors) if alone else bundled(function, *tensors)


def with_sizes_of_input(
    function: Callable[..., Any], input: Tensor, output_size: Any, *args: Any, **kwargs: Any
) -> Any:
    """Call a function of output sizes, in which None stands for the input's size.  Raises OperatorError, ValueError."""
    if isinstance(output_size, (tuple, list)):
        if len(output_size) >= input.dim():
            raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
        own = input.shape[-len(output_size) :]
        output_size = [have if wanted is None else wanted for wanted, have in zip(output_size, own, strict=True)]
    try:
        return function(input, output_size, *args, **kwargs)
    except AssertionError:  # the function's own assertion about its sizes
        raise OperatorError(f"Expected a tensor with more dimensions, but got {list(input.shape)}") from None


def with_lengths(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of tensors of lengths, which may also be given as tuples."""
    given = {name: _lengths(value) if name.endswith("_lengths") else value for name, value in kwargs.items()}
    return function(*args[:2], *map(_lengths, args[2:4]), *args[4:], **given)


def _lengths(value: Any) -> Any:
    return tensor(list(value)) if isinstance(value, (tuple, list)) else value


def unreduced(place: int) -> Callable[..., Any]:
    """The calling convention of losses in the torch namespace: without a `reduction` argument (at that position),
    Python programs get one number for each element, whatever the operator's own default."""

    def style(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        given = len(args) > place or "reduction" in kwargs
        return function(*args, **kwargs) if given else function(*args, **kwargs, reduction=0)

    return style


def with_choice_of_tuple(
    function: Callable[..., Any], input: Tensor, *, as_tuple: bool = False, **kwargs: Any
) -> Any:  # fmt: skip
    """Call a function that returns indices: rows of one tensor, or, with `as_tuple`, a tensor for each dimension."""
    return tuple(call("nonzero_numpy", (input,), {})) if as_tuple else function(input, **kwargs)


_FACTORIES: Final = (
    "arange blackman_window bartlett_window empty empty_like empty_strided eye full full_like hamming_window "
    "hann_window kaiser_window linspace logspace ones ones_like rand rand_like randint randint_like randn randn_like "
    "randperm range tril_indices triu_indices zeros zeros_like normal complex scalar_tensor"
)
_GATHERING: Final = "block_diag cartesian_prod chain_matmul"
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
        "einsum": einsum,
        "nonzero": with_choice_of_tuple,
    },
    "torch.nn.functional": {**dict.fromkeys(_ADAPTIVE.split(), with_sizes_of_input), "ctc_loss": with_lengths},
}
"""Scope -> function name -> the calling convention for Python programs, where it differs from the operator's."""


# -- facts about dtypes


def _checked(d: Any) -> scalars.dtype:
    if not isinstance(d, scalars.dtype):
        raise TypeError(f"argument 'type' must be a dtype, not {type(d).__name__}")
    return d


class finfo:
    """The limits of a floating-point dtype, or of the parts of a complex one.  Raises TypeError for other dtypes."""

    def __init__(self, type: scalars.dtype | None = None) -> None:
        d = get_default_dtype() if type is None else _checked(type)
        if not (d.is_floating_point or d.is_complex):
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{d}'")
        kind = xp.TO_NUMPY[d.to_real()]
        facts: Any = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
        self.dtype, self.bits = xp.FROM_NUMPY[kind].name, int(facts.bits)
        self.min, self.max, self.eps = float(facts.min), float(facts.max), float(facts.eps)
        self.tiny, self.resolution = float(facts.smallest_normal), float(f"1e-{facts.precision}")
        self.smallest_normal = self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype.  Raises TypeError for other dtypes."""

    def __init__(self, type: scalars.dtype) -> None:
        if _checked(type).category != "int":
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        facts = np.iinfo(xp.TO_NUMPY[type])
        self.dtype, self.bits, self.min, self.max = type.name, facts.bits, int(facts.min), int(facts.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
