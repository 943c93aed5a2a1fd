"""Functions of the torch namespace that only Python programs have: questions, defaults, ways to make tensors.

In: Python values.  Out: tensors and facts about them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np

from engine.aten import promotion, xp
from engine.aten.calls import call
from engine.aten.python_methods import LEGACY_TYPES
from engine.aten.storage import Storage
from engine.aten.tensor import Tensor, from_numpy, tensor
from engine.lang import scalars

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
    """Make Python floats become `d`.  Raises OperatorError unless it has fractions."""
    promotion.set_default_dtype(d)


def set_default_tensor_type(t: Any) -> None:
    """The same by an old name, `torch.DoubleTensor`, or by what it names."""
    set_default_dtype(LEGACY_TYPES[t.rpartition(".")[2]] if isinstance(t, str) else t.dtype)


def get_default_device() -> scalars.device:
    return scalars.CPU


def get_num_threads() -> int:
    """How many threads operators use."""
    return 1


def set_num_threads(count: int) -> None:
    """Takes a wish; operators go on using one thread."""


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors print.  Only the defaults are known: raises NotImplementedError for others."""
    if any(value is not None for value in (precision, threshold, edgeitems, linewidth, sci_mode)):
        raise NotImplementedError("tensors print in one way only")


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
    made = data if isinstance(data, Tensor) else from_numpy(data) if isinstance(data, np.ndarray) else tensor(data)
    return made if dtype is None else made.to(dtype)


asarray = as_tensor


class LegacyTensor:
    """`torch.FloatTensor` and the like: makes tensors of one dtype from sizes or from data."""

    def __init__(self, name: str, d: scalars.dtype) -> None:
        self.__name__, self.dtype = name, d

    def __call__(self, *args: Any) -> Tensor:
        return legacy_tensor(self.dtype, *args)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is self.dtype

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


def with_sizes_of_input(
    function: Callable[..., Any], input: Tensor, output_size: Any, *args: Any, **kwargs: Any
) -> Any:
    """What takes the sizes of its output, None where the input's shall stay."""
    if isinstance(output_size, (tuple, list)):
        own = input.shape[-len(output_size) :]
        output_size = [have if wanted is None else wanted for wanted, have in zip(output_size, own, strict=True)]
    return function(input, output_size, *args, **kwargs)


_FACTORIES: Final = (
    "arange blackman_window bartlett_window empty empty_like empty_strided eye full full_like hamming_window "
    "hann_window kaiser_window linspace logspace ones ones_like rand rand_like randint randint_like randn randn_like "
    "randperm range tril_indices triu_indices zeros zeros_like normal complex scalar_tensor"
)
_GATHERING: Final = "einsum block_diag cartesian_prod chain_matmul"
_BUNDLING: Final = "meshgrid broadcast_tensors atleast_1d atleast_2d atleast_3d"
_ADAPTIVE: Final = "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d"
STYLES: Final[dict[str, dict[str, Callable[..., Any]]]] = {
    "torch": {
        **dict.fromkeys(_FACTORIES.split(), with_requires_grad),
        **dict.fromkeys(_GATHERING.split(), with_gathered),
        **dict.fromkeys(_BUNDLING.split(), bundled),
    },
    "torch.nn.functional": dict.fromkeys(_ADAPTIVE.split(), with_sizes_of_input),
}
"""Where a function is found -> its name -> how Python programs call it, where that differs."""


# -- facts about dtypes


class finfo:
    """What a dtype with fractions can hold; of complex ones, their parts.  Raises TypeError for other dtypes."""

    def __init__(self, type: scalars.dtype | None = None) -> None:
        d = get_default_dtype() if type is None else type
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
        if type.category != "int":
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        facts = np.iinfo(xp.TO_NUMPY[type])
        self.dtype, self.bits, self.min, self.max = type.name, facts.bits, int(facts.min), int(facts.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
