"""Losses and distances.

In: tensors, weights, the number of a reduction (0 none, 1 mean, 2 sum).  Out: tensors.  All are made of other
operators, from which their gradients come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks, unboxed
from engine.aten.dispatch.compose import (
    MEAN,
    NONE,
    SUM,
    cast,
    reduced,
    run,
    sum_over,
    where,
    without_gradient,
    written_as,
)
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels.refusals import no_code
from engine.aten.kernels.rules import are_within
from engine.aten.values import xp
from engine.aten.values.promotion import check_cast, result_type, wide
from engine.aten.values.tensor import Tensor, from_numpy
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError, OperatorIndexError, OperatorValueError

Loss = Callable[..., Tensor]

# ------------------------------------------------------------------ regression


def _not_negative(self: Array, target: Array, reduction: int, beta: float) -> None:
    if beta < 0:
        raise OperatorError("smooth_l1_loss does not support negative values for beta.")


def _positive(self: Array, target: Array, reduction: int, delta: float) -> None:
    if delta <= 0:
        raise OperatorError("huber_loss does not support non-positive values for delta.")
    check_cast(result_type((self, target)), self.dtype)


op("aten::_smooth_distance(Tensor self, Tensor target, Scalar beta) -> Tensor",
   scalar="where(abs(self - target) < beta, (self - target) * (self - target) * 0.5 / beta, "
          "abs(self - target) - 0.5 * beta)",
   gradient={"self": "grad * ((self - target) / beta).clamp(-1, 1)",
             "target": "-grad * ((self - target) / beta).clamp(-1, 1)"})  # fmt: skip


# ------------------------------------------------------------------ classes


def nll_loss(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> Tensor:
    """Minus the score of each target's class, weighted by class."""
    without_gradient("nll_loss_forward" if self.array.ndim < 3 else "nll_loss2d_forward", weight=weight)
    loss: Tensor = run("_nll_loss", self, target, weight, reduction, ignore_index)
    return loss


def class_scores(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> Array:
    kept, classes, weights = _classes(self, target, weight, ignore_index)
    axis = 1 if self.ndim > 1 else 0
    scores = np.take_along_axis(self, classes, axis).squeeze(axis).astype(weights.dtype)
    loss = np.where(kept, -scores * weights, 0)
    if reduction != NONE:
        loss = loss.sum() / weights.sum() if reduction == MEAN else loss.sum()
    return np.asarray(loss).astype(self.dtype)


def class_scores_backward(
    grad_output: Array, self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int
) -> Array:
    kept, classes, weights = _classes(self, target, weight, ignore_index)
    axis = 1 if self.ndim > 1 else 0
    slopes = np.where(kept, -weights * grad_output / (weights.sum() if reduction == MEAN else 1), 0)
    result = np.zeros(self.shape, self.dtype)
    np.put_along_axis(result, classes, np.expand_dims(slopes, axis).astype(self.dtype), axis)
    return result


def _classes(self: Array, target: Array, weight: Array | None, ignore_index: int) -> tuple[Array, Array, Array]:
    """Which targets count, the class of each (0 where it does not) along the dimension of classes, and its weight."""
    axis = 1 if self.ndim > 1 else 0
    target = target.reshape(()) if self.ndim == 1 else target
    kept = target != ignore_index
    chosen = np.where(kept, target, 0).astype(np.int64)
    _check_range(chosen, self.shape[axis])
    used = wide(self.dtype)
    weights = kept.astype(used) if weight is None else kept * weight[chosen].astype(used)
    return kept, np.expand_dims(chosen, axis), weights


def _check_classes(self: Array, target: Array, weight: Array | None, *_: Any) -> None:
    shape, given = self.shape, target.shape
    if not shape:
        raise OperatorError("input tensor should be 1D or 2D")
    if len(shape) == 1 and given not in ((), (1,)):
        raise OperatorValueError(f"For 1D input, 1D target must have size 1, but got target size: {given[0]}")
    wanted = given if len(shape) == 1 else (shape[0], *shape[2:])
    if given and given[:1] != wanted[:1]:
        raise OperatorValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({given[0]}).")
    if target.dtype not in (xp.INT64, xp.UINT8):
        raise OperatorError(f"expected target dtype to be Long or Byte, but got {xp.ir_name(target.dtype)}")
    if len(shape) == 2 and len(given) > 1:
        raise OperatorError("0D or 1D target tensor expected, multi-target not supported")
    if given != wanted:
        raise OperatorError(
            f"Expected target size {list(wanted)}, got {list(given)}",
            hints=(f"the input has the shape {list(shape)}; its dimension 1 holds the classes",),
        )
    classes = shape[1 if len(shape) > 1 else 0]
    if weight is not None and weight.shape != (classes,):
        raise OperatorError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )
    if weight is not None and weight.dtype != self.dtype:
        raise OperatorError(f"expected scalar type {xp.ir_name(self.dtype)} but found {xp.ir_name(weight.dtype)}")


def _check_range(target: Array, classes: int) -> None:
    if not are_within(target, classes):
        wrong = target[(target < 0) | (target >= classes)].flat[0]
        raise OperatorIndexError(f"Target {wrong} is out of bounds.", hints=(f"there are {classes} classes",))


def cross_entropy_loss(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, label_smoothing: float
) -> Tensor:
    """`nll_loss` of the log-softmax; targets are classes or, with the input's shape, probabilities."""
    if not 0 <= label_smoothing <= 1:
        raise OperatorError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    axis = 1 if self.ndim > 1 else 0
    if target.shape == self.shape and self.ndim:
        return _soft_targets(self, target, weight, reduction, label_smoothing, axis)
    scores = run("log_softmax.int", self, axis, None)
    loss: Tensor = run("nll_loss_nd", scores, target, weight, reduction, ignore_index)
    if label_smoothing == 0:
        return loss
    smooth = _smooth_part(scores, target, weight, reduction, ignore_index, axis)
    return loss * (1 - label_smoothing) + smooth * (label_smoothing / self.shape[axis])


def _smooth_part(
    scores: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, axis: int
) -> Tensor:
    """The loss of a target spread over all classes."""
    weighted = scores if weight is None else scores * _along(weight, scores.ndim, axis)
    kept = run("ne.Scalar", target, ignore_index)
    loss = where(kept, -sum_over(weighted, [axis], keep=False), 0.0)
    if reduction != MEAN:
        return reduced(loss, reduction)
    counted = cast(kept, scores.array.dtype)
    if weight is not None:
        chosen = cast(where(kept, target, 0), xp.INT64).reshape([-1])
        counted = counted * run("index_select", weight, 0, chosen).reshape(list(target.shape))
    return reduced(loss, SUM) / reduced(counted, SUM)


def _soft_targets(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, smoothing: float, axis: int
) -> Tensor:
    if target.array.dtype not in xp.FLOATING:
        raise OperatorError(f"Expected floating point type for target with class probabilities, got "
                            f"{xp.ir_name(target.array.dtype)}")  # fmt: skip
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / self.shape[axis]
    product = run("log_softmax.int", self, axis, None) * target
    if weight is not None:
        product = product * _along(weight, self.ndim, axis)
    loss = -sum_over(product, [axis], keep=False)
    return reduced(loss, SUM) / max(loss.array.size, 1) if reduction == MEAN else reduced(loss, reduction)


def _along(weight: Tensor, ndim: int, axis: int) -> Tensor:
    """A weight for each class, shaped to multiply scores."""
    shaped: Tensor = weight.reshape([-1 if i == axis else 1 for i in range(ndim)])
    return shaped


# ------------------------------------------------------------------ probabilities


def binary_cross_entropy(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    """Logarithms are cut off at -100."""
    without_gradient("binary_cross_entropy", weight=weight)
    x = self.array
    if x.dtype not in xp.FLOATING:
        raise OperatorError(f"\"binary_cross_entropy\" not implemented for '{xp.ir_name(x.dtype)}'")
    if target.shape != self.shape:
        raise OperatorError(
            f"Using a target size ({list(target.shape)}) that is different to the input size ({list(self.shape)}) is "
            "deprecated. Please ensure they have the same size."
        )
    for name, values in (("input", x), ("target", target.array)):
        if bool(np.any((values < 0) | (values > 1))):
            raise OperatorError(f"all elements of {name} should be between 0 and 1")
    if target.array.dtype != x.dtype:
        raise OperatorError(f"Found dtype {xp.ir_name(target.array.dtype)} but expected {xp.ir_name(x.dtype)}")
    loss: Tensor = run("_binary_cross_entropy", self, target)
    return reduced(loss if weight is None else written_as(loss * weight, loss), reduction)


def binary_cross_entropy_with_logits(
    self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Tensor:
    without_gradient("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    log_sigmoid = run("log_sigmoid", self)
    if pos_weight is not None:
        log_sigmoid = log_sigmoid * ((pos_weight - 1) * target + 1)
    missing = 1 - target
    loss = written_as(written_as(missing * self, missing) - log_sigmoid, missing)
    return reduced(loss if weight is None else written_as(loss * weight, loss), reduction)


def _floating(self: Array, target: Array, reduction: int, log_target: bool) -> None:
    for given in (self, target):
        if given.dtype not in xp.FLOATING:
            kind = "Complex" if given.dtype in xp.COMPLEX else "Integral"
            raise OperatorError(f"kl_div: {kind} inputs not supported.")


def _floating_pair(x1: Array, x2: Array, dim: int, eps: float) -> None:
    common = result_type((x1, x2))
    if common not in xp.FLOATING:
        raise OperatorError(f"expected common dtype to be floating point, yet common dtype is {xp.ir_name(common)}")


# ------------------------------------------------------------------ entries


def _with_out(text: str, loss: Loss, **facts: Any) -> None:
    """An entry and its out= form; `facts` are those of the first."""
    op(text, python=loss, **facts, autocast="full")
    name, _, rest = text.partition("(")
    arguments = rest.partition(") -> ")[0]
    star = "" if "*, " in arguments else "*, "
    op(f"{name}.out({arguments}, {star}Tensor(a!) out) -> Tensor(a!)", kernel=_on_arrays(loss))


def _on_arrays(loss: Loss) -> Callable[..., xp.Array]:
    def kernel(*args: Any) -> xp.Array:
        return loss(*(from_numpy(a) if isinstance(a, np.ndarray) else a for a in args)).array

    return kernel


_PAIR: Final = "Tensor self, Tensor target"
op(f"aten::mse_loss({_PAIR}, int reduction=1) -> Tensor", variants="function out", jit_autocast="full",
   autocast="full", composite="""
       if self.dtype == torch.bool and target.dtype != torch.bool:  # which have no difference
           self = self.to(target.dtype)
       elif target.dtype == torch.bool and self.dtype != torch.bool:
           target = target.to(self.dtype)
       difference = self - target
       return reduced(difference * difference, reduction)
   """)  # fmt: skip
op(f"aten::l1_loss({_PAIR}, int reduction=1) -> Tensor", jit_autocast="full", autocast="full",
   composite="reduced((self - target).abs(), reduction)")  # fmt: skip
op(f"aten::smooth_l1_loss({_PAIR}, int reduction=1, float beta=1.) -> Tensor", variants="function out",
   jit_autocast="full", autocast="full", check=_not_negative, checks_numbers=True, composite="""
       if beta == 0:
           return reduced((self - target).abs(), reduction)
       return reduced(torch._smooth_distance(self, target, beta), reduction)
   """)  # fmt: skip
op(f"aten::huber_loss({_PAIR}, int reduction=1, float delta=1.) -> Tensor", variants="function out",
   autocast="full", check=_positive, checks_numbers=True,
   composite="reduced((torch._smooth_distance(self, target, delta) * delta).to(self.dtype), reduction)")  # fmt: skip
_CLASSES: Final = "Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index"
op(f"aten::_nll_loss({_CLASSES}) -> Tensor", kernel=class_scores, dtype="same", layout="contiguous",
   gradient={"self": "_nll_loss_backward(grad, self, target, weight, reduction, ignore_index)"})  # fmt: skip
op(f"aten::_nll_loss_backward(Tensor grad_output, {_CLASSES}) -> Tensor", kernel=class_scores_backward, shape="self",
   layout="contiguous",
   gradient={"grad_output": "_nll_loss(grad, target, weight, reduction, ignore_index)", "self": "None"})  # fmt: skip
for _name in ("nll_loss", "nll_loss2d"):
    _with_out(f"aten::{_name}({_PAIR}, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
              nll_loss, jit_autocast="full", recorded_as="_nll_loss")  # fmt: skip
op(f"aten::nll_loss_nd({_PAIR}, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
   python=nll_loss, unboxed=unboxed.on_tensors, autocast="full", recorded_as="_nll_loss")  # fmt: skip
op(f"aten::cross_entropy_loss({_PAIR}, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, "
   "float label_smoothing=0.) -> Tensor", python=cross_entropy_loss, unboxed=unboxed.on_tensors,
   autocast="full")  # fmt: skip
op(f"aten::_binary_cross_entropy({_PAIR}) -> Tensor", gradient={
    "self": "grad * (self - target) / ((1 - self) * self).clamp_min(1e-12)",
    "target": "grad * ((1 - self).log().clamp_min(-100) - self.log().clamp_min(-100))",
}, scalar="(target - 1) * maximum(log1p(-self), -100) - target * maximum(log(self), -100)", dtype="float")  # fmt: skip
_with_out(f"aten::binary_cross_entropy({_PAIR}, Tensor? weight=None, int reduction=1) -> Tensor", binary_cross_entropy,
          jit_autocast="unsafe")  # fmt: skip
_with_out(f"aten::binary_cross_entropy_with_logits({_PAIR}, Tensor? weight=None, Tensor? pos_weight=None, "
          "int reduction=1) -> Tensor", binary_cross_entropy_with_logits, unboxed=unboxed.on_tensors,
          jit_autocast="full")  # fmt: skip
op(f"aten::kl_div({_PAIR}, int reduction=1, *, bool log_target=False) -> Tensor", jit_autocast="full",
   autocast="full", check=_floating, composite="""
       if log_target:
           return reduced(target.exp() * (target - self), reduction)
       logarithm = torch.where(target == 0, 1.0, target).log()
       return reduced(target * logarithm - target * self, reduction)
   """)  # fmt: skip
op("aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", check=_floating_pair,
   unboxed=unboxed.on_tensors, jit_autocast="full", composite="""
       if not x1.is_floating_point():
           x1 = x1.to(x2.dtype)
       if not x2.is_floating_point():
           x2 = x2.to(x1.dtype)
       a, b = torch.broadcast_tensors([x1, x2])
       return (unit(a, dim, eps) * unit(b, dim, eps)).sum([dim])
   """)  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("binary_cross_entropy", refuses=no_code("bic", "binary_cross_entropy"))
describe("nll_loss nll_loss_nd nll_loss2d", refuses=no_code("bic", "nll_loss_out_frame"))
describe("mse_loss", refuses=no_code("bic", "mse_cpu", common=True))
describe("huber_loss", refuses=no_code("bic", "huber_cpu", common=True))
describe("smooth_l1_loss", refuses=no_code("bic", "smooth_l1_cpu", common=True))
describe(
    "binary_cross_entropy_with_logits.",
    composite="""
    smoothed = torch.log_sigmoid(self)
    if pos_weight is not None:
        smoothed = smoothed * ((pos_weight - 1) * target + 1)
    missing = 1 - target
    loss = ((missing * self).to(missing.dtype) - smoothed).to(missing.dtype)
    return reduced(loss if weight is None else (loss * weight).to(loss.dtype), reduction)
""",
)
describe(
    "binary_cross_entropy.",
    composite="""
    if bool(((self < 0) | (self > 1) | (target < 0) | (target > 1)).any()):
        raise RuntimeError("all elements of input and target should be between 0 and 1")
    loss = torch._binary_cross_entropy(self, target)
    return reduced(loss if weight is None else (loss * weight).to(loss.dtype), reduction)
""",
)
_CHOSEN: Final = """
    axis = 1 if self.dim() > 1 else 0
    if self.dim() == 1:
        target = target.reshape([])
    kept = target != ignore_index
    chosen = torch.where(kept, target, 0).to(torch.int64)
    weights = kept.to(widened(self).dtype)
    if weight is not None:
        weights = weights * widened(weight)[chosen]
    scores = widened(self).gather(axis, chosen.unsqueeze(axis)).squeeze(axis)
    losses = torch.where(kept, -scores * weights, 0.0)
    if reduction == 1:
        return (losses.sum() / weights.sum()).to(self.dtype)
    return reduced(losses, reduction).to(self.dtype)
"""
describe("nll_loss. nll_loss2d. nll_loss_nd _nll_loss", composite=_CHOSEN, check=_check_classes)
describe("_nll_loss_backward", check=lambda grad, *call: _check_classes(*call))
describe(
    "cross_entropy_loss",
    composite="""
    axis = 1 if self.dim() > 1 else 0
    scores = torch.log_softmax(self, axis, None)
    if target.is_floating_point():
        shares = target
        if label_smoothing > 0:
            shares = shares * (1 - label_smoothing) + label_smoothing / self.size(axis)
        products = scores * shares
        if weight is not None:
            products = products * along(weight, self.dim(), axis)
        losses = -products.sum([axis])
        if reduction == 1:
            return losses.sum() / max(losses.numel(), 1)
        return reduced(losses, reduction)
    loss = torch.nll_loss_nd(scores, target, weight, reduction, ignore_index)
    if label_smoothing == 0:
        return loss
    weighted = scores
    if weight is not None:
        weighted = scores * along(weight, self.dim(), axis)
    kept = target != ignore_index
    smooth = torch.where(kept, -weighted.sum([axis]), 0.0)
    if reduction == 1:
        counted = kept.to(scores.dtype)
        if weight is not None:
            counted = counted * weight[torch.where(kept, target, 0).to(torch.int64)]
        smooth = smooth.sum() / counted.sum()
    else:
        smooth = reduced(smooth, reduction)
    return loss * (1 - label_smoothing) + smooth * (label_smoothing / self.size(axis))
""",
)
describe("nll_loss.out", out_check=out_checks.check_same)
describe("binary_cross_entropy.out", out_check=out_checks.check_found)
