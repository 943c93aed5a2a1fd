"""The forms in which a trace records operators.

In: an operator and its arguments.  Out: the operator and arguments of its node, which are seldom others than those that
run; for a few, other operators that run in their place.

Note [Numbers as tensors]
`x * 2` is recorded with a constant tensor for the 2, as in PyTorch, where arithmetic has no other form for Python.
`scalar_operands` makes a number of it again before the graph runs, so that it promotes as numbers do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.aten.dispatch import table
from engine.aten.dispatch.calls import call
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor, tensor
from engine.aten.values.traced import TracedFloat, TracedInt, plain
from engine.frontend.tracing.position import DATAFLOW, warn
from engine.lang.scalars import CPU, DTYPE_BY_NAME

Recorded = tuple[Op, tuple[Any, ...]]


def as_recorded(op: Op, args: tuple[Any, ...]) -> Recorded:
    """The operator and arguments of the node."""
    form = _FORMS.get(op.qualified_name)
    return (op, args) if form is None else form(op, args)


def found(qualified: str) -> Op:
    """The operator of that name, which the table has."""
    op = table.find(qualified)
    assert op is not None, qualified
    return op


# ------------------------------------------------------------------ numbers


def _with_tensor(op: Op, args: tuple[Any, ...]) -> Recorded:
    x, number, *rest = args
    name = table.first_name(op.name)
    form = table.find(f"{name}.{_OF_TENSORS[op.overload]}") or table.find(name)
    if form is None or not isinstance(x, Tensor):
        return op, args
    known = isinstance(number, (TracedInt, TracedFloat))
    return form, (x, number.tensor if known else tensor(number, dtype=_DTYPES.get(type(number))), *rest)


_OF_TENSORS: Final = {"Scalar": "Tensor", "Scalar_mode": "Tensor_mode", "Scalar_out": "out"}
"""Overloads that take a number -> those that take a tensor."""
_DTYPES: Final = {float: DTYPE_BY_NAME["float64"], complex: DTYPE_BY_NAME["complex128"]}


# ------------------------------------------------------------------ convolutions


def _convolution(op: Op, args: tuple[Any, ...]) -> Recorded:
    """All convolutions are recorded as `aten::_convolution`."""
    transposed = "transpose" in op.name
    x, weight, bias, stride, padding = args[:5]
    dims = len(stride)
    output_padding, groups, dilation = args[5:] if transposed else ([0] * dims, args[6], args[5])
    values = (x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *_CUDNN)
    return found("aten::_convolution"), values


_CUDNN: Final = (False, False, True, True)
"""benchmark, deterministic, cudnn_enabled, allow_tf32: PyTorch's defaults."""
_CONVOLUTIONS: Final = (
    "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::conv_transpose1d", "aten::conv_transpose2d.input",
    "aten::conv_transpose3d.input",
)  # fmt: skip


# ------------------------------------------------------------------ conversions


def _to_other(_: Op, args: tuple[Any, ...]) -> Recorded:
    x, other, *rest = args
    return found("aten::to.device"), (x, CPU, other.dtype.number, *rest)


def _to_device(op: Op, args: tuple[Any, ...]) -> Recorded:
    x, device, dtype, non_blocking, copy = args
    if dtype is not None or device is None:
        return op, args
    return _moved(x, device, non_blocking, copy)


def _moved(x: Tensor, device: Any, non_blocking: bool = False, copy: bool = False) -> Recorded:
    return found("aten::to.dtype_layout"), (x, x.dtype.number, 0, device, None, non_blocking, copy, None)


def _vector_norm(_: Op, args: tuple[Any, ...]) -> Recorded:
    """`torch.norm`, which Python runs by a newer operator.  A dtype may come last."""
    x, p, dim, keepdim, *dtype = args
    return found("aten::linalg_vector_norm"), (x, 2 if p is None else p, dim, keepdim, dtype[0] if dtype else None)


def _whole_norm(op: Op, args: tuple[Any, ...]) -> Recorded:
    x, p, *dtype = args
    return _vector_norm(op, (x, p, None, False, *dtype))


def _split(op: Op, args: tuple[Any, ...]) -> Recorded:
    """`aten::split` by sizes; sizes that are traced are converted to numbers first."""
    x, size, dim = args
    if isinstance(size, TracedInt):
        warn(DATAFLOW.format("a Python integer"))
    return op, (x, plain(size), dim)


def _split_by_sizes(_: Op, args: tuple[Any, ...]) -> Recorded:
    return found("aten::split_with_sizes"), args


def _with_correction(op: Op, args: tuple[Any, ...]) -> Recorded:
    """`std` and `var` of the whole tensor, unbiased: recorded in the form with a correction."""
    x, unbiased = args
    return (found(f"{op.name}.correction"), (x, None, None, False)) if unbiased else (op, args)


_FORMS: Final[dict[str, Callable[[Op, tuple[Any, ...]], Recorded]]] = {
    **{
        f"aten::{name}{suffix}.Scalar": _with_tensor
        for name in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide")
        for suffix in ("", "_")
    },
    **{f"aten::{name}.Scalar_out": _with_tensor for name in ("add", "sub", "mul", "div")},
    **{f"aten::{name}.Scalar_mode": _with_tensor for name in ("div", "div_", "divide", "divide_")},
    "aten::floor_divide.Scalar": _with_tensor,
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    "aten::detach_": lambda _, args: (found("aten::detach"), args),
    "aten::to.other": _to_other, "aten::to.prim_Device": _to_device, "aten::cpu": lambda _, args: _moved(args[0], CPU),
    **{f"aten::{name}": _with_correction for name in ("std", "var", "std_mean", "var_mean")},
    "aten::norm.Scalar": _whole_norm, "aten::norm.ScalarOpt_dtype": _whole_norm,
    "aten::norm.ScalarOpt_dim": _vector_norm, "aten::norm.ScalarOpt_dim_dtype": _vector_norm,
    "aten::split.Tensor": _split, "aten::split.sizes": _split_by_sizes,
}  # fmt: skip
WITHOUT_NAMES: Final = frozenset(
    "aten::rsub.Scalar aten::rsub.Tensor aten::reciprocal aten::floor_divide aten::floor_divide.Scalar "
    "aten::remainder.Scalar_Tensor aten::pow.Scalar aten::split.Tensor aten::split.sizes".split()
)
"""Operators that PyTorch calls from functions of its own, where the program's variables are not visible."""
UNTIL_RESULTS_REQUIRE_GRAD: Final = frozenset({"aten::_convolution"})
"""Operators that are recorded before the result is known to require grad."""


# ------------------------------------------------------------------ operators made of others


def _lstm_cell(x: Tensor, hx: Sequence[Tensor], *weights: Any) -> tuple[Tensor, Tensor]:
    h, c = hx
    w_ih, w_hh, b_ih, b_hh = weights
    both = call("linear", (h, w_hh, b_hh), {}).add_(call("linear", (x, w_ih, b_ih), {}))
    i, f, g, o = call("unsafe_chunk", (both, 4, 1), {})
    i, f, g, o = i.sigmoid_(), f.sigmoid_(), g.tanh_(), o.sigmoid_()
    c = (f * c).add_(i * g)
    return o * c.tanh(), c


def _gru_cell(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any) -> Tensor:
    of_x = call("unsafe_chunk", (call("linear", (x, w_ih, b_ih), {}), 3, 1), {})
    of_h = call("unsafe_chunk", (call("linear", (h, w_hh, b_hh), {}), 3, 1), {})
    reset = of_h[0].add_(of_x[0]).sigmoid_()
    update = of_h[1].add_(of_x[1]).sigmoid_()
    new = of_x[2].add(of_h[2].mul_(reset)).tanh_()
    result: Tensor = (h - new).mul_(update).add_(new)
    return result


def _simple_cell(activation: str) -> Callable[..., Tensor]:
    def cell(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any) -> Tensor:
        both = call("linear", (h, w_hh, b_hh), {}).add_(call("linear", (x, w_ih, b_ih), {}))
        result: Tensor = call(activation, (both,), {})
        return result

    return cell


def _shrunk_rows(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Of embeddings: a write that is recorded as one, and not as a part of a gradient."""
    made: Tensor = call("embedding_renorm_", (call("detach", (weight,), {}), input, max_norm, norm_type), {})
    return made


MADE_OF: Final[dict[str, Callable[..., Any]]] = {
    "aten::_no_grad_embedding_renorm_": _shrunk_rows,
    "aten::lstm_cell": _lstm_cell, "aten::gru_cell": _gru_cell, "aten::rnn_tanh_cell": _simple_cell("tanh"),
    "aten::rnn_relu_cell": _simple_cell("relu"),
}  # fmt: skip
"""Operators that are recorded as the operators they consist of -> the function that runs these."""
