"""Losses with margins, of sequences, and the distances under them.

In: tensors, the number of a reduction (0 none, 1 mean, 2 sum).  Out: tensors.  All but the alignment of sequences are
made of other operators, from which their gradients come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import MEAN, reduced, run, same_type, sum_over, where, without_gradient, written_as
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels.refusals import no_code, unsupported
from engine.aten.kernels.rules import no_kernel
from engine.aten.stepwise.language import worth
from engine.aten.stepwise.products import distances
from engine.aten.values import xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

# ------------------------------------------------------------------ distances


def pairwise_distance(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    distance: Tensor = run("norm.ScalarOpt_dim", x1 - x2 + eps, p, [-1], keepdim)
    return distance


def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """Distances of every row of one matrix to every row of another."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise OperatorError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.array.dtype not in xp.FLOATING:
            raise OperatorError(f"cdist only supports floating-point dtypes, {name} got: {xp.ir_name(x.array.dtype)}")
    same_type(x1, x2)
    if x1.shape[-1] != x2.shape[-1]:
        raise OperatorError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise OperatorError("cdist only supports non-negative p values")
    many = compute_mode == 1 or (not compute_mode and max(x1.shape[-2], x2.shape[-2]) > _MANY)
    arrays = x1.array, x2.array
    is_plain = HOOKS.trace is None and arrays[0].dtype is arrays[1].dtype and arrays[0].dtype in xp.FLOATS
    is_recorded = MODE.enabled and (x1.requires_grad or x2.requires_grad)
    if p == 2 and many and is_plain and (not is_recorded or x1.shape[:-2] == x2.shape[:-2]):
        distances_of: Tensor = run("_root_distances", x1, x2)
        return distances_of
    if p in (1, 2) and is_plain and not is_recorded:
        found = _distances_one_by_one(*arrays, p == 2)
        if found is not None:
            return Tensor(found)
    return _distance(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


_MANY: Final = 25
"""Above this number of rows distances come from one matrix product, unless the program chooses otherwise."""


def _distances_by_product(x1: Array, x2: Array) -> Array:
    """Roots of a² - 2ab + b²."""
    squares = [np.sum(x * x, axis=-1, keepdims=True) for x in (x1, x2)]
    ones = [np.ones_like(each) for each in squares]
    first = np.concatenate((x1 * x1.dtype.type(-2), squares[0], ones[0]), -1)
    second = np.concatenate((x2, ones[1], squares[1]), -1)
    product = np.matmul(first, np.swapaxes(second, -1, -2))
    return np.asarray(np.sqrt(np.maximum(product, 0, out=product), out=product))


def root_distances_backward(grad: Tensor, x1: Tensor, x2: Tensor, result: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of both; equal rows have none."""
    share = where(run("eq.Scalar", result, 0), 0.0, grad / result)
    back = share.transpose(-1, -2)
    of_x1: Tensor = x1 * sum_over(share, [-1]) - share.matmul(x2)
    of_x2: Tensor = x2 * sum_over(back, [-1]) - back.matmul(x1)
    return of_x1, of_x2


op("aten::_root_distances(Tensor x1, Tensor x2) -> Tensor", kernel=_distances_by_product,
   gradient={name: f"_root_distances_backward(grad, x1, x2, result)[{i}]" for i, name in enumerate(("x1", "x2"))}
   )  # fmt: skip
op("aten::_root_distances_backward(Tensor grad, Tensor x1, Tensor x2, Tensor result) -> (Tensor, Tensor)",
   python=root_distances_backward)  # fmt: skip


def _distances_one_by_one(x1: Array, x2: Array, is_square: bool) -> Array | None:
    """The same in machine code; None if it is not compiled."""
    if not (worth(x1) and x1.shape[:-2] == x2.shape[:-2] and x2.size):
        return None
    batch, (rows, width), others = math.prod(x1.shape[:-2]), x1.shape[-2:], x2.shape[-2]
    result = np.empty((*x1.shape[:-1], others), x1.dtype)
    given = np.ascontiguousarray(x1), np.ascontiguousarray(x2)
    work = x1.size * others
    done = distances.run(work, *given, result, batch, rows, others, width, int(is_square))
    return None if done is None else result


def _distance(difference: Tensor, p: float) -> Tensor:
    """The norm of each row; one that only counts has zeros as gradients."""
    distance: Tensor = run("linalg_vector_norm", difference, p, [-1], False, None)
    return run("_level", distance, difference) if p == 0 and difference.requires_grad else distance


def pdist(self: Tensor, p: float) -> Tensor:
    """Distances of the rows to those after them."""
    if self.ndim != 2:
        raise OperatorError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    if p < 0:
        raise OperatorError("pdist only supports non-negative p values")
    first, second = (Tensor(i) for i in np.triu_indices(self.shape[0], 1))
    difference = run("index_select", self, 0, first) - run("index_select", self, 0, second)
    return _distance(difference, p)


op("aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) "
   "-> Tensor", python=pairwise_distance)  # fmt: skip
op("aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor", python=cdist, jit_autocast="full",
   autocast="full")  # fmt: skip
op("aten::pdist(Tensor self, float p=2.) -> Tensor", python=pdist, jit_autocast="full")

# ------------------------------------------------------------------ margins


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool, reduction: int
) -> Tensor:
    dims = {"anchor": anchor.ndim, "positive": positive.ndim, "negative": negative.ndim}
    if len(set(dims.values())) > 1:
        anchor_is, positive_is, negative_is = (f"{name} {ndim}D" for name, ndim in dims.items())
        raise OperatorError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            f"but got: {anchor_is}, {positive_is}, and {negative_is} inputs"
        )
    near = pairwise_distance(anchor, positive, p, eps, False)
    far = pairwise_distance(anchor, negative, p, eps, False)
    if swap:
        far = run("min.other", far, pairwise_distance(positive, negative, p, eps, False))
    return reduced((margin + near - far).clamp_min(0), reduction)


def _not_empty(self: Tensor) -> None:
    if self.ndim > 2 or (self.ndim and self.shape[-1] == 0):
        raise OperatorError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(self.shape)}"
        )


def _numbers(target: Tensor) -> None:
    if target.array.dtype != np.int64:
        raise OperatorError(f"expected scalar type Long but found {xp.ir_name(target.array.dtype)}")


def _rows(self: Tensor) -> Tensor:
    rows: Tensor = self if self.ndim == 2 else self.reshape([1, -1])
    return rows


def multi_margin_loss(
    self: Tensor, target: Tensor, p: Any, margin: Any, weight: Tensor | None, reduction: int
) -> Tensor:
    """The target's score should be above all others by a margin."""
    without_gradient("multi_margin_loss", weight=weight)
    if p not in (1, 2):
        raise OperatorError("only p == 1 and p == 2 supported")
    if self.array.dtype not in (np.float32, np.float64):
        raise no_kernel("multi_margin_loss_cpu_kernel", self.array.dtype)
    _not_empty(self)
    x = _rows(self)
    if target.ndim > 1 or target.numel() != x.shape[0]:
        raise OperatorError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{x.shape[0]}], but got {list(target.shape)}. Input has shape "
            f"{list(self.shape)}."
        )
    if weight is not None and list(weight.shape) != [x.shape[1]]:
        raise OperatorError(f"inconsistent weight size, expected {x.shape[1]} but got {list(weight.shape)}")
    same_type(self, weight)
    _numbers(target)
    y = target.reshape([-1])
    _check_targets(y.array, x.shape[1])
    at = y.unsqueeze(1)
    short = (margin - x.gather(1, at) + x).clamp_min(0)
    short = short * short if p == 2 else short
    if weight is not None:
        short = short * run("index_select", weight, 0, y).unsqueeze(1)
    loss = run("scatter.value", short, 1, at, 0).sum([1]) / x.shape[1]
    return reduced(loss if self.ndim == 2 else loss.squeeze(0), reduction)


def _check_targets(target: Array, classes: int, words: str = "target out of range") -> None:
    if target.size and (target.min() < 0 or target.max() >= classes):
        raise OperatorError(words, hints=(f"there are {classes} classes",))


def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    """Every target class (those before the first -1) should score above every other by 1."""
    _not_empty(self)
    if list(target.shape) != list(self.shape) and {target.shape, self.shape} != {(), (1,)}:
        raise OperatorError(f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}")
    _numbers(target)
    x, y = _rows(self), target.array.reshape(-1, self.shape[-1] if self.ndim else 1)
    listed = np.cumprod(y >= 0, axis=1).astype(np.bool_)
    _check_targets(y[listed], x.shape[1], "argument #2 'target' is out of range")
    is_target = np.zeros(x.shape, np.bool_)
    rows = np.nonzero(listed)[0]
    is_target[rows, y[listed]] = True
    places = Tensor(np.where(listed, y, 0))
    short = (1 - x.gather(1, places).unsqueeze(2) + x.unsqueeze(1)).clamp_min(0)
    counted = Tensor(listed[:, :, None] & ~is_target[:, None, :])
    loss = where(counted, short, 0.0).sum([1, 2]) / x.shape[1]
    return reduced(loss if self.ndim == 2 else loss.squeeze(0), reduction)


def soft_margin_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    without_gradient("soft_margin_loss", target=target)
    return reduced(written_as((-self * target).exp().log1p(), self), reduction)


_REDUCTION: Final = "int reduction=1) -> Tensor"
op(f"aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., {_REDUCTION}",
   jit_autocast="full", autocast="full", composite="""
       dim = input1.dim() - 1 if target.dim() == 0 else 1
       product = (input1 * input2).sum([dim])
       first = (input1 * input1).sum([dim]) + 1e-12
       second = (input2 * input2).sum([dim]) + 1e-12
       cosine = product / (first * second).sqrt()
       together = torch.where(target == 1, 1 - cosine, 0.0)
       apart = torch.where(target == -1, (cosine - margin).clamp_min(0), 0.0)
       return reduced(together + apart, reduction)
   """)  # fmt: skip
op(f"aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., {_REDUCTION}",
   jit_autocast="full", autocast="full", composite="""
       if self.is_floating_point():
           apart = torch.where(target != 1, (margin - self).clamp_min(0), 0.0)
           return reduced(apart + torch.where(target != -1, self, 0.0), reduction)
       apart = torch.where(target != 1, (int(margin) - self).clamp_min(0), 0)
       return reduced(apart + torch.where(target != -1, self, 0), reduction)
   """)  # fmt: skip
op(f"aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., {_REDUCTION}",
   composite="reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)", jit_autocast="full",
   autocast="full")  # fmt: skip
op("aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., "
   f"float eps=9.9999999999999995e-07, bool swap=False, {_REDUCTION}", python=triplet_margin_loss,
   jit_autocast="full", autocast="full")  # fmt: skip
op(f"aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, "
   f"{_REDUCTION}", python=multi_margin_loss, variants="function out", jit_autocast="full",
   autocast="full")  # fmt: skip
op(f"aten::multilabel_margin_loss(Tensor self, Tensor target, {_REDUCTION}", python=multilabel_margin_loss,
   variants="function out", autocast="full")  # fmt: skip
op(f"aten::soft_margin_loss(Tensor self, Tensor target, {_REDUCTION}", python=soft_margin_loss,
   composite="""
       if not self.is_floating_point():
           raise RuntimeError("whole numbers have no place for the loss")
       return reduced((-self * target).exp().log1p().to(self.dtype), reduction)
   """, variants="function out",
   jit_autocast="full", autocast="full")  # fmt: skip
op("aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
   autocast="full", composite="""
       loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
       if full:
           stirling = target * target.log() - target + 0.5 * (6.283185307179586 * target).log()
           loss = (loss + torch.where(target <= 1, 0.0, stirling)).to(loss.dtype)
       return reduced(loss, reduction)
   """)  # fmt: skip

# ------------------------------------------------------------------ alignment of sequences

_NEVER: Final = -np.inf


def alignments(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int
) -> tuple[Array, Array]:
    """For every sequence, minus the log-probability of all alignments, and the gradient for `log_probs`.

    `log_probs` is (times, batch, classes).  The gradient is the one for what a log-softmax made.
    """
    probs, lattice = _lattice(log_probs, targets, target_lengths, blank)
    states, emitted, skips, alive = lattice
    times, batch, _ = probs.shape
    forward = _forward(emitted, skips, alive)
    ends, total = _totals(forward, alive, input_lengths, target_lengths)
    backward = _backward(emitted, skips, alive, ends, input_lengths)
    weight = np.exp(forward + backward - emitted - np.where(np.isinf(total), 0, total)[:, None])
    gradient = np.exp(probs)
    rows = np.broadcast_to(np.arange(batch)[:, None], states.shape)
    for t in range(times):
        np.subtract.at(gradient[t], (rows, states), weight[t])
    inside = np.arange(times)[:, None] < input_lengths
    gradient = np.where(inside[:, :, None], gradient, 0)
    return (-total).astype(log_probs.dtype), gradient.astype(log_probs.dtype)


def unlikelihoods(log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int) -> Array:
    """The first of the two: half of the work."""
    _, (_, emitted, skips, alive) = _lattice(log_probs, targets, target_lengths, blank)
    _, total = _totals(_forward(emitted, skips, alive), alive, input_lengths, target_lengths)
    return (-total).astype(log_probs.dtype)


def _lattice(
    log_probs: Array, targets: Array, target_lengths: Array, blank: int
) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    """The log-probabilities in double; and (batch, states) what states there are, (times, batch, states) how likely
    each is at each time, where a blank may be left out before one, and which belong to their target."""
    probs = log_probs.astype(np.float64)
    states = _states(targets, target_lengths, blank)
    emitted = np.take_along_axis(probs, np.broadcast_to(states, (len(probs), *states.shape)), 2)
    skips = np.zeros(states.shape, np.bool_)
    skips[:, 2:] = states[:, 2:] != states[:, :-2]
    alive = np.arange(states.shape[1]) < 2 * target_lengths[:, None] + 1
    return probs, (states, emitted, skips, alive)


def _totals(forward: Array, alive: Array, input_lengths: Array, target_lengths: Array) -> tuple[Array, Array]:
    """Mask of the states in which an alignment may end, and the log-probability of all alignments."""
    place = np.arange(forward.shape[2])
    last = forward[np.maximum(input_lengths - 1, 0), np.arange(forward.shape[1])]
    ends = (place // 2 == target_lengths[:, None] - (place % 2)) & alive
    total = np.logaddexp.reduce(np.where(ends, last, _NEVER), axis=1)
    return ends, np.where(input_lengths == 0, np.where(target_lengths == 0, 0.0, _NEVER), total)


def _states(targets: Array, lengths: Array, blank: int) -> Array:
    """(batch, 2 * longest + 1): the target's labels with blanks between."""
    longest = int(lengths.max()) if lengths.size else 0
    labels = np.full((len(lengths), longest), blank, np.int64)
    inside = np.arange(longest) < lengths[:, None]
    if targets.ndim == 1:
        labels[inside] = targets[: int(lengths.sum())]
    else:
        labels[inside] = targets[:, :longest][inside]
    states = np.full((len(lengths), 2 * longest + 1), blank, np.int64)
    states[:, 1::2] = labels
    return states


def _moved(x: Array, by: int) -> Array:
    """Each state's number moved to a later (or earlier) one."""
    moved = np.full_like(x, _NEVER)
    if by > 0:
        moved[:, by:] = x[:, :-by]
    else:
        moved[:, :by] = x[:, -by:]
    return moved


def _forward(emitted: Array, skips: Array, alive: Array) -> Array:
    times, batch, count = emitted.shape
    room = np.full((times, batch, count + 2), _NEVER)  # two states before the first, which nothing reaches
    possible = np.where(alive, emitted, _NEVER)
    room[:1, :, 2:4] = possible[:1, :, :2]
    for t in range(1, times):
        before = room[t - 1]
        reached = np.logaddexp(before[:, 2:], before[:, 1:-1])
        if count > 2:
            reached = np.logaddexp(reached, np.where(skips, before[:, :-2], _NEVER))
        np.add(reached, possible[t], out=room[t, :, 2:])
    return room[:, :, 2:]


def _backward(emitted: Array, skips: Array, alive: Array, ends: Array, input_lengths: Array) -> Array:
    result = np.full(emitted.shape, _NEVER)
    leaps = np.zeros_like(skips)
    leaps[:, :-2] = skips[:, 2:]
    after = np.full(emitted.shape[1:], _NEVER)
    for t in range(len(emitted) - 1, -1, -1):
        reached = np.logaddexp(after, _moved(after, -1))
        if skips.shape[1] > 2:
            reached = np.logaddexp(reached, np.where(leaps, _moved(after, -2), _NEVER))
        starts = (input_lengths - 1 == t)[:, None]
        reached = np.where(starts, np.where(ends, 0.0, _NEVER), reached)
        after = np.where(alive, reached + emitted[t], _NEVER)
        result[t] = after
    return result


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int, reduction: int,
    zero_infinity: bool,
) -> Tensor:  # fmt: skip
    """Negative log-likelihood of the targets, summed over all alignments."""
    if log_probs.ndim not in (2, 3):
        raise OperatorError(f"ctc_loss: expected log_probs of 2 or 3 dimensions, got {log_probs.ndim}")
    whole = log_probs if log_probs.ndim == 3 else log_probs.unsqueeze(1)
    lengths = [_lengths(given) for given in (input_lengths, target_lengths)]
    if not 0 <= blank < whole.shape[2]:
        raise OperatorError("blank must be in label range")
    for name, given in zip(("input_lengths", "target_lengths"), lengths, strict=True):
        if given.array.size != whole.shape[1]:
            raise OperatorError(f"{name} must be of size batch_size")
    if lengths[0].array.size and lengths[0].array.max() > whole.shape[0]:
        raise OperatorError(
            f"Expected input_lengths to have value at most {whole.shape[0]}, but got value {lengths[0].array.max()}"
        )
    labels = targets if targets.ndim == 1 or log_probs.ndim == 3 else targets.reshape([-1])
    if type(whole.array) is np.ndarray and not (MODE.enabled and whole.requires_grad) and HOOKS.trace is None:
        with np.errstate(all="ignore"):
            found = unlikelihoods(whole.array, labels.array, lengths[0].array, lengths[1].array, blank)
        loss = Tensor(found)
    else:
        loss = run("_alignments", whole, labels, *lengths, blank)[0]
    if zero_infinity:
        loss = where(run("isinf", loss), 0.0, loss)
    if reduction == MEAN:
        loss = loss / run("clamp_min", lengths[1], 1).to(loss.dtype)
    return reduced(loss if log_probs.ndim == 3 else loss.squeeze(0), reduction)


def _lengths(given: Tensor | Sequence[int]) -> Tensor:
    return Tensor(np.asarray(given.array if isinstance(given, Tensor) else given, np.int64).reshape(-1))


op("aten::_alignments(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> "
   "(Tensor loss, Tensor slope)", kernel=alignments,
   gradient={"log_probs": "where(isinf(result0), zeros_like(grad), grad).unsqueeze(0).unsqueeze(-1) * result1"}
   )  # fmt: skip
_CTC: Final = "int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor"
op("aten::ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, " + _CTC,
   python=ctc_loss, data_dependent=True, autocast="full")  # fmt: skip
op("aten::ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, " + _CTC,
   python=ctc_loss, data_dependent=True, autocast="full")  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("cdist", refuses=no_code("h", "cdist"))
describe("pdist", refuses=no_code("h", "pdist"))
describe("ctc_loss", refuses=no_code("bihc", "ctc_loss_cpu"))
describe("multilabel_margin_loss", refuses=no_code("bih", "multilabel_margin_loss_forward_out_frame"))
describe("pdist", refuses=unsupported("bic", "pdist only supports floating-point dtypes"))
describe("soft_margin_loss.out", out_check=out_checks.check_found)
describe("multi_margin_loss.out", out_check=out_checks.only_same("expected scalar type {wanted} but found {given}"))
