"""Arguments to try operators with: made from the schema, or listed here where a schema does not tell enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor, tensor
from engine.lang import scalars
from engine.lang.schema import NO_DEFAULT, Argument
from engine.lang.types import BOOL, COMPLEX, DEVICE, FLOAT, INT, NUMBER, STR, ListType, OptionalType, TensorType


def floats(*shape: int, seed: int = 0) -> Tensor:
    """Numbers between 0.25 and 0.75: inside the domain of every function."""
    return tensor(np.random.default_rng(seed).uniform(0.25, 0.75, shape).astype(np.float32))


def doubles(*shape: int) -> Tensor:
    return tensor(floats(*shape).array.astype(np.float64))


def complexes(*shape: int) -> Tensor:
    return tensor(floats(*shape).array + 1j * floats(*shape, seed=1).array)


def ints(*shape: int) -> Tensor:
    return tensor(np.arange(1, 1 + int(np.prod(shape)), dtype=np.int64).reshape(shape))


def mask(*shape: int) -> Tensor:
    return tensor(np.arange(int(np.prod(shape))).reshape(shape) % 2 == 0)


INDEX = [0, 2]
PLACES = [[0, 1, 0], [1, 0, 1]]

LISTED: dict[str, tuple[Any, ...]] = {
    "aten::view": (floats(2, 3), [3, 2]),
    "aten::view.dtype": (floats(2, 3), 3),
    "aten::reshape": (floats(2, 3), [6]),
    "aten::unflatten.int": (floats(2, 6), 1, [2, 3]),
    "aten::permute": (floats(2, 3), [1, 0]),
    "aten::movedim.intlist": (floats(2, 3), [0], [1]),
    "aten::squeeze.dims": (floats(2, 1, 3), [1]),
    "aten::expand": (floats(1, 3), [2, 3], False),
    "aten::broadcast_to": (floats(1, 3), [2, 3]),
    "aten::narrow": (floats(2, 3), 1, 0, 2),
    "aten::narrow.Tensor": (floats(2, 3), 1, tensor(0), 2),
    "aten::split.sizes": (floats(2, 3), [1, 1], 0),
    "aten::split": (floats(2, 3), [1, 1], 0),
    "aten::split_with_sizes": (floats(2, 3), [1, 1], 0),
    "aten::as_strided": (floats(2, 3), [2, 2], [1, 2], None),
    "aten::as_tensor": (floats(2, 3), None, None),
    "aten::unfold": (floats(2, 3), 1, 2, 1),
    "aten::transpose.int": (floats(2, 3), 0, 1),
    "aten::to.device": (floats(2, 3), scalars.CPU, 6, False, False, None),
    "aten::to.dtype": (floats(2, 3), 6, False, False, None),
    "aten::to.prim_Device": (floats(2, 3), None, None, False, False),
    "aten::addmm": (floats(2, 2), floats(2, 3), floats(3, 2), 1, 1),
    "aten::baddbmm": (floats(2, 2, 2), floats(2, 2, 3), floats(2, 3, 2), 1, 1),
    **dict.fromkeys(
        (
            "aten::index_put",
            "aten::index_put.hacked_twin",
            "aten::_unsafe_index_put",
            "aten::_unsafe_index_put.hacked_twin",
        ),
        (floats(2, 3), [tensor([1, 0])], floats(2, 3, seed=1), False),
    ),
    **dict.fromkeys(
        ("aten::_unsafe_index.Tensor", "aten::_unsafe_index.Tensor_hacked_twin"), (floats(2, 3), [tensor([1, 0])])
    ),
    "aten::index_add": (floats(2, 3), 1, tensor(INDEX), floats(2, 2), 1),
    "aten::index_copy": (floats(2, 3), 1, tensor(INDEX), floats(2, 2)),
    "aten::index_fill.int_Tensor": (floats(2, 3), 1, tensor(INDEX), tensor(2.0)),
    "aten::index_fill.int_Scalar": (floats(2, 3), 1, tensor(INDEX), 2),
    "aten::scatter.value": (floats(2, 3), 1, tensor(PLACES), 2),
    "aten::scatter.src": (floats(2, 3), 1, tensor(PLACES), floats(2, 3, seed=1)),
    "aten::scatter.reduce": (floats(2, 3), 1, tensor(PLACES), floats(2, 3, seed=1), "add"),
    "aten::scatter.value_reduce": (floats(2, 3), 1, tensor(PLACES), 2, "multiply"),
    "aten::scatter_add": (floats(2, 3), 1, tensor(PLACES), floats(2, 3, seed=1)),
    "aten::scatter_reduce.two": (floats(2, 3), 1, tensor(PLACES), floats(2, 3, seed=1), "sum", True),
    "aten::masked_fill.Scalar": (floats(2, 3), mask(2, 3), 2),
    "aten::masked_fill.Tensor": (floats(2, 3), mask(2, 3), tensor(2.0)),
    "aten::masked_scatter": (floats(2, 3), mask(2, 3), floats(6)),
    "aten::fill.Tensor": (floats(2, 3), tensor(2.0)),
    "aten::gelu": (floats(2, 3), "tanh"),
    "aten::div.Tensor_mode": (floats(2, 3), floats(2, 3, seed=1), "floor"),
    "aten::div.Scalar_mode": (floats(2, 3), 2, "trunc"),
    "aten::divide.Tensor_mode": (floats(2, 3), floats(2, 3, seed=1), "floor"),
    "aten::divide.Scalar_mode": (floats(2, 3), 2, "trunc"),
    "aten::imag": (complexes(2, 3),),
    "aten::view_as_real": (complexes(2, 3),),
    "aten::view_as_complex": (floats(3, 2),),
    "aten::tensor_split.indices": (floats(4, 3), [1, 3], 0),
    "aten::tensor_split.tensor_indices_or_sections": (floats(4, 3), tensor([1, 3]), 0),
    "aten::hsplit.array": (floats(2, 3), [1, 2]),
    "aten::vsplit.array": (floats(3, 2), [1, 2]),
    "aten::dsplit.int": (floats(2, 3, 4), 2),
    "aten::dsplit.array": (floats(2, 3, 4), [1, 2]),
    "aten::addbmm": (floats(3, 2), floats(2, 3, 4), floats(2, 4, 2), 1, 1),
    "aten::addmv": (floats(3), floats(3, 2), floats(2), 1, 1),
    "aten::addr": (floats(3, 2), floats(3), floats(2), 1, 1),
    "aten::put": (floats(2, 3), tensor([0, 4]), floats(2, seed=1), False),
    "aten::float_power.Tensor_Tensor": (doubles(2, 3), doubles(2, 3)),
    "aten::float_power.Tensor_Scalar": (doubles(2, 3), 2),
    "aten::index_reduce": (floats(2, 3), 1, tensor(INDEX), floats(2, 2), "mean", True),
    "aten::_unreduced": (floats(2), [2, 3], [1], False),
    "aten::_mean_backward": (floats(2), [2, 3], [1], False),
    "aten::_extreme_backward": (floats(2), floats(2, 3), floats(2, 3).amax([1], False), [1], False),
    "aten::_permute_backward": (floats(2, 3, 4), [1, 2, 0]),
    "aten::_matmul_backward": (floats(2, 4), floats(2, 3), floats(3, 4), [True, True]),
    "aten::_layer_norm_backward": (floats(2, 3, 4), floats(2, 3, 4, seed=1), [3, 4], floats(3, 4, seed=2), 1e-5),
    "aten::_glu_backward": (floats(2, 3), floats(2, 6), 1),
    "aten::_var_backward": (floats(2), None, floats(2, 3), [1], 1, False, None),
    "aten::_norm_backward": (floats(2), floats(2, 3), 2, floats(2), [1], False),
    "aten::_logsumexp_backward": (floats(2), floats(2, 3), floats(2), [1], False),
    "aten::_aminmax_backward": (
        floats(2),
        floats(2),
        floats(2, 3),
        floats(2, 3).amin([1], False),
        floats(2, 3).amax([1], False),
        1,
        False,
    ),
    "aten::cosine_embedding_loss": (floats(2, 3), floats(2, 3, seed=1), tensor([1.0, -1.0]), 0.0, 1),
    "aten::layer_norm": (floats(2, 3, 4), [3, 4], floats(3, 4, seed=1), floats(3, 4, seed=2), 1e-5, True),
    "aten::rms_norm": (floats(2, 3, 4), [3, 4], floats(3, 4, seed=1), None),
    "aten::batch_norm": (
        floats(2, 3, 4),
        floats(3, seed=1),
        floats(3, seed=2),
        floats(3, seed=3),
        floats(3, seed=4),
        False,
        0.1,
        1e-5,
        True,
    ),
    "aten::group_norm": (floats(2, 4, 3), 2, floats(4, seed=1), floats(4, seed=2), 1e-5, True),
    "aten::glu": (floats(2, 4), -1),
    **dict.fromkeys(("aten::nll_loss", "aten::nll_loss_nd"), (floats(3, 4), tensor([1, 0, 3]), floats(4), 1, 0)),
    "aten::nll_loss2d": (floats(2, 4, 1, 3), tensor([[[1, 0, 3]], [[2, 2, 0]]]), floats(4), 1, 0),
    "aten::cross_entropy_loss": (floats(3, 4), tensor([1, 0, 3]), floats(4), 1, 0, 0.0),
    "aten::_native_multi_head_attention": (
        *[floats(2, 3, 4)] * 3,
        4,
        2,
        floats(12, 4),
        floats(12),
        floats(4, 4),
        floats(4),
        None,
        False,
        True,
        None,
    ),
    "aten::_transformer_encoder_layer_fwd": (
        floats(2, 3, 4),
        4,
        2,
        floats(12, 4),
        floats(12),
        floats(4, 4),
        floats(4),
        False,
        False,
        1e-5,
        floats(4),
        floats(4),
        floats(4),
        floats(4),
        floats(6, 4),
        floats(6),
        floats(4, 6),
        floats(4),
        None,
        None,
    ),
}
"""For operators whose arguments the types alone do not tell."""

WHOLE = ("bitwise", "__and__", "__or__", "__xor__", "__lshift__", "__rshift__", "gcd", "lcm")
"""Operators on whole numbers have these in their names."""


def arguments_for(op: Op) -> tuple[Any, ...]:
    """Every argument of one call, in order; tensors are fresh copies."""
    listed = LISTED.get(op.qualified_name)
    if listed is None:
        whole = any(part in op.name for part in WHOLE)
        listed = tuple(_made(a, i, whole) for i, a in enumerate(op.schema.arguments))
    return tuple(copied(v) for v in listed)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of a value, in lists and tuples too."""
    if isinstance(value, Tensor):
        yield value
    for each in value if isinstance(value, (list, tuple)) else ():
        yield from tensors_in(each)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with `change(array)` in the place of each tensor's array."""
    if isinstance(value, Tensor):
        return Tensor(change(value.array))
    return type(value)(mapped(each, change) for each in value) if type(value) in (list, tuple) else value


def copied(value: Any) -> Any:
    if isinstance(value, list):
        return [copied(v) for v in value]
    return tensor(value.array) if isinstance(value, Tensor) else value


def _made(argument: Argument, place: int, whole: bool) -> Any:
    if argument.default is not NO_DEFAULT and argument.default is not None:
        return argument.default
    type = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
    if isinstance(type, TensorType):
        return ints(2, 3) if whole else floats(2, 3, seed=place)
    if argument.default is None:
        return 0.5 if type in (NUMBER, FLOAT) and argument.name in ("min", "max") else None
    if isinstance(type, ListType):
        return [floats(2, 3), floats(2, 3, seed=1)] if isinstance(type.element, TensorType) else [0]
    simple = {INT: 1, FLOAT: 0.5, COMPLEX: 0.5 + 2j, NUMBER: 2, BOOL: False, STR: "", DEVICE: scalars.CPU}
    return simple[type]
