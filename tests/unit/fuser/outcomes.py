"""Tensors to call operators with, and what calls of them come to."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import engine.torch as torch
from engine.aten.values.tensor import Tensor


def outcome(function: Callable[..., Any], arguments: list[Any]) -> Any:
    """What a call does: the result, or the error; and what its arguments are afterwards."""
    try:
        result = function(*arguments)
    except Exception as error:
        return type(error), str(error), [described(a) for a in arguments]
    place = next((i for i, a in enumerate(arguments) if a is result), None)
    return described(result), place, [described(a) for a in arguments]


def agree(found: Any, wanted: Any) -> None:
    assert found == wanted or repr(found) == repr(wanted)  # as NaN of Python has to be


def described(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [described(each) for each in value]
    if not isinstance(value, Tensor):
        return value
    a = value.array
    recorded = type(value.grad_fn).__name__, value.requires_grad, value.output_nr, value._base is None
    return Elements(a), type(value), a.dtype, a.shape, a.strides, value._version, recorded


class Elements:
    """Elements that equal those that differ by roundings."""

    def __init__(self, array: Any) -> None:
        self.array = array.astype(np.float64) if array.dtype.kind in "fV" else array
        info = ml_dtypes.finfo(array.dtype) if array.dtype.kind in "fV" else None
        self.tolerance = 8 * float(info.eps) if info else 0

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Elements)
        return np.allclose(self.array, other.array, self.tolerance, self.tolerance, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.array)


DTYPES = [torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.uint8]
DTYPES += [torch.float16, torch.bfloat16]


@st.composite
def tensors(draw: st.DrawFn, dtypes: Any = ()) -> Tensor:
    """Of all dtypes and layouts, some of which native code is not made for."""
    d = draw(st.sampled_from(dtypes or DTYPES[:2] * 6 + DTYPES))
    shape = draw(
        st.sampled_from([(), (0,), (1,), (5,), (3,), (2, 3), (2, 3), (2, 3), (3, 2), (1, 3), (2, 1, 3), (3, 1), (700,)])
    )
    generator = np.random.default_rng(draw(st.integers(0, 2**20)))
    values = generator.normal(0, 2, shape)
    if draw(st.booleans()):
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, 1e38]
        values = np.where(generator.random(shape) < 0.4, generator.choice(special, shape), values)
    with np.errstate(all="ignore"):
        values = np.asarray(np.nan_to_num(values, posinf=7, neginf=-7) if not d.is_floating_point else values)
        x: Any = torch.tensor(values).to(d)
    layout = draw(st.sampled_from(["plain"] * 5 + ["turned", "steps", "repeated", "view", "grad", "read-only"]))
    if layout == "turned":
        x = x.t() if x.ndim == 2 else x
    elif layout == "steps":
        x = torch.stack([x, x], -1)[..., 0]
    elif layout == "repeated":
        x = x[:1].expand(x.shape) if x.ndim else x
    elif layout == "view":
        x = x.view(x.shape)
    elif layout == "grad" and d.is_floating_point:
        x.requires_grad_()
    elif layout == "read-only":
        x.array.flags.writeable = False
    return x  # type: ignore[no-any-return]


def copied(arguments: list[Any]) -> list[Any]:
    """Other tensors with the same values and layouts; one that occurs twice does so again."""
    made: dict[int, Any] = {}
    for a in [each for given in arguments for each in (given if isinstance(given, list) else [given])]:
        if isinstance(a, Tensor) and id(a) not in made:
            block = a.array.copy("K") if 0 not in a.array.strides else a.array[:1].copy()
            array = block if 0 not in a.array.strides else np.broadcast_to(block, a.array.shape)
            if array.strides != a.array.strides and a.array.size:
                array = np.lib.stride_tricks.as_strided(
                    np.resize(array, 4 * a.array.size + 4), a.array.shape, a.array.strides
                ).copy("K")
            made[id(a)] = Tensor(array, a._requires_grad)
            array.flags.writeable = a.array.flags.writeable
    return [[made.get(id(e), e) for e in a] if isinstance(a, list) else made.get(id(a), a) for a in arguments]
