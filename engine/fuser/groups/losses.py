"""Losses: the distances of elements or the scores of classes, and their mean or sum.

In: descriptions of scores and targets, weights, and the number of a reduction (0 none, 1 mean, 2 sum).  Out: the
description of the loss; `LOSSES` has a function for each operator, by name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from engine.aten.dispatch.table import overloads
from engine.fuser.groups.compositions import floats, log_softmax
from engine.fuser.groups.extents import Extent
from engine.fuser.groups.from_expression import Unsupported, element
from engine.fuser.groups.fusion_group import TYPES, Group, Handler, Lowered, Operands, stages_of
from engine.fuser.groups.lookups import checked, places_of
from engine.fuser.groups.reductions import accumulated, as_sample, as_type, leave_if_any, mapped, mean_of, wide
from engine.fuser.groups.schedule import Body, Indices, Value
from engine.fuser.ir.kernel import HALVES, Expression, apply, constant, convert, index

Given = Operands
_NONE: Final = 0
_MEAN: Final = 1
_SUM: Final = 2


def _reduced(group: Group, name: str, value: Value, reduction: Lowered) -> Value:
    """The value, or its mean or sum."""
    if reduction not in (_NONE, _MEAN, _SUM):
        raise Unsupported("a reduction that is not known")
    dims = [*range(len(value.shape))]
    if reduction == _MEAN:
        return mean_of(group, name, value, dims, keepdim=False)
    return accumulated(group, name, value, dims, "add", 0, keepdim=False) if reduction == _SUM else value


# ------------------------------------------------------------------ distances of elements


def _pair(group: Group, given: Given, sample: Any) -> list[Value]:
    """Input and target, as they are computed with."""
    type = TYPES[sample.array.dtype]
    used = "f32" if type in HALVES else type
    return [as_type(group, floats(group, given[key]), used) for key in ("self", "target")]


def _weighted(group: Group, name: str, loss: Value, weight: Lowered) -> Value:
    if weight is None:
        return loss
    other = as_type(group, floats(group, weight), loss.type)
    return mapped(group, f"{name}_weighted", lambda x, w: apply("mul", x, w), loss, other)


def _loss(text: str) -> Handler:
    """The expression of `self` and `target`, and of the numbers that are given."""

    def handler(group: Group, name: str, given: Given, sample: Any) -> Value:

        def distance(a: Expression, b: Expression) -> Expression:
            return element(text, given.with_others({"self": a, "target": b}), a.type)

        found = mapped(group, f"{name}_of", distance, *_pair(group, given, sample))
        return as_sample(group, _reduced(group, name, found, given["reduction"]), sample)

    return handler


def _smooth(threshold: str, factor: str = "") -> Handler:
    """Squares near zero, distances beyond a threshold, times a factor."""
    (row,) = overloads("aten::_smooth_distance")
    handler = _loss(f"({row.scalar}){factor}")

    def checked(group: Group, name: str, given: Given, sample: Any) -> Value:
        beta = given[threshold]
        if not isinstance(beta, (int, float)) or beta <= 0:
            raise Unsupported("a distance that is not known")
        found: Value = handler(group, name, given.with_others({"beta": beta}), sample)
        return found

    return checked


def _divergence(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`kl_div`, of targets or their logarithms."""
    text = "exp(target) * (target - self)" if given["log_target"] is True else (
        "target * log(where(target == 0, 1, target)) - target * self"
    )  # fmt: skip
    found: Value = _loss(text)(group, name, given, sample)
    return found


# ------------------------------------------------------------------ probabilities


def _of_probabilities(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`binary_cross_entropy`: of numbers from 0 to 1, whose logarithms are cut off at -100."""
    x, t = (group.kept_if_costly(each) for each in _pair(group, given, sample))
    _require_alike(group, x, t)

    def is_none(a: Expression, b: Expression) -> Expression:
        return element("logical_or(logical_or(a < 0, a > 1), logical_or(b < 0, b > 1))", {"a": a, "b": b}, a.type)

    wrong = mapped(group, f"{name}_wrong", is_none, x, t)
    left = leave_if_any(group, f"{name}_check", wrong)
    text = "(t - 1) * maximum(log1p(-x), -100) - t * maximum(log(x), -100)"
    found = mapped(group, f"{name}_of", lambda a, b: element(text, {"x": a, "t": b}, a.type), x, t)
    weighted = _weighted(group, name, replace(found, stages=(*found.stages, left)), given["weight"])
    return as_sample(group, _reduced(group, name, weighted, given["reduction"]), sample)


def _require_alike(group: Group, x: Value, target: Value) -> None:
    if len(x.shape) != len(target.shape):
        raise Unsupported("targets of another rank")
    for own, other in zip(x.shape, target.shape, strict=True):
        group.extents.require(own, other)


def _of_logits(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`binary_cross_entropy_with_logits`."""
    x, t = _pair(group, given, sample)
    extra = given["pos_weight"]
    if extra is None:
        text = "(1 - t) * x - log_sigmoid(x)"
        found = mapped(group, f"{name}_of", lambda a, b: element(text, {"x": a, "t": b}, a.type), x, t)
    else:
        text = "(1 - t) * x - log_sigmoid(x) * ((w - 1) * t + 1)"
        more = as_type(group, floats(group, extra), x.type)
        found = mapped(
            group, f"{name}_of", lambda a, b, c: element(text, {"x": a, "t": b, "w": c}, a.type), x, t, more
        )  # fmt: skip
    weighted = _weighted(group, name, found, given["weight"])
    return as_sample(group, _reduced(group, name, weighted, given["reduction"]), sample)


# ------------------------------------------------------------------ classes


def _of_classes(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`nll_loss`: minus the score of each target's class, weighted by class; targets of one class are ignored."""
    return _chosen(group, name, floats(group, given["self"]), given, sample)


def _cross_entropy(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`nll_loss` of the log-softmax; or of targets that are probabilities."""
    x, target = floats(group, given["self"]), given["target"]
    if given["label_smoothing"] != 0 or len(x.shape) < 2 or not isinstance(target, Value):
        raise Unsupported("targets that are smoothed, or of one example")
    group.samples[x] = group.samples[given["self"]]
    scores = wide(group, log_softmax(group, f"{name}_scores", Operands({"self": x, "dim": 1}), sample))
    if len(target.shape) < len(x.shape):
        return _chosen(group, name, scores, given, sample)
    _require_alike(group, x, target)
    shares = as_type(group, floats(group, target), scores.type)
    products = mapped(group, f"{name}_of", lambda s, t: apply("neg", apply("mul", s, t)), scores, shares)
    if given["weight"] is not None:
        raise Unsupported("weights of probabilities")
    losses = accumulated(group, f"{name}_each", products, [1], "add", 0, keepdim=False)
    return as_sample(group, _reduced(group, name, losses, given["reduction"]), sample)


def _chosen(group: Group, name: str, scores: Value, given: Given, sample: Any) -> Value:
    """Minus the scores of the targets' classes."""
    target, ignored = places_of(group, given["target"]), given["ignore_index"]
    if len(scores.shape) < 2 or len(target.shape) != len(scores.shape) - 1 or type(ignored) is not int:
        raise Unsupported("targets of another rank")
    if given["weight"] is not None and group.samples[given["weight"]].array.dtype is not sample.array.dtype:
        raise Unsupported("weights of another dtype")
    batch, classes, *space = scores.shape
    for own, wanted in zip(target.shape, (batch, *space), strict=True):
        group.extents.require(own, wanted)
    kept = mapped(group, f"{name}_kept", lambda t: apply("ne", t, index(ignored)), target)
    of_kept = mapped(group, f"{name}_class", lambda t, k: apply("select", k, t, index(0)), target, kept)
    found = checked(group, name, of_kept, classes)

    def score(body: Body, at: Indices) -> Expression:
        return apply("neg", body.element(scores, (at[0], body.element(found, at), *at[1:])))

    picked = Value(f"{name}_picked", scores.type, target.shape, score, stages_of([scores, found]))
    weights = _weights(group, name, found, kept, given["weight"], classes, scores.type)
    losses = mapped(
        group, f"{name}_of", lambda s, w, k: apply("select", k, apply("mul", s, w), constant(0, s.type)),
        picked, weights, kept,
    )  # fmt: skip
    if given["reduction"] != _MEAN:
        return as_sample(group, _reduced(group, name, losses, given["reduction"]), sample)
    dims = [*range(len(target.shape))]
    total, counted = (
        accumulated(group, f"{name}_{what}", each, dims, "add", 0, keepdim=False)
        for what, each in (("sum", losses), ("count", weights))
    )
    return as_sample(group, mapped(group, name, lambda a, b: apply("div", a, b), total, counted), sample)


def _weights(group: Group, name: str, found: Value, kept: Value, weight: Lowered, classes: Extent, type: str) -> Value:
    """The weight of each target's class, 0 for those that are ignored."""
    counted = mapped(group, f"{name}_counted", lambda k: convert(k, type), kept)
    if weight is None:
        return counted
    of_classes = as_type(group, floats(group, weight), type)
    if len(of_classes.shape) != 1:
        raise Unsupported("weights that are no vector")
    group.extents.require(of_classes.shape[0], classes)

    def own(body: Body, at: Indices) -> Expression:
        return apply("mul", body.element(counted, at), body.element(of_classes, (body.element(found, at),)))

    return Value(f"{name}_weights", type, found.shape, own, stages_of([counted, of_classes, found]))


# ------------------------------------------------------------------ the table

_CLASSES: Final = tuple(f"aten::{name}" for name in ("nll_loss", "nll_loss_nd", "nll_loss2d"))
LIKE_SCORES: Final = frozenset((*_CLASSES, "aten::cross_entropy_loss"))
"""Those whose result has the dtype of their first argument, whatever the second holds."""
LOSSES: Final[dict[str, Handler]] = {
    "aten::mse_loss": _loss("(self - target) * (self - target)"),
    "aten::l1_loss": _loss("abs(self - target)"),
    "aten::smooth_l1_loss": _smooth("beta"),
    "aten::huber_loss": _smooth("delta", " * delta"),
    "aten::soft_margin_loss": _loss("log1p(exp(-target * self))"),
    "aten::kl_div": _divergence,
    "aten::binary_cross_entropy": _of_probabilities,
    "aten::binary_cross_entropy_with_logits": _of_logits,
    **dict.fromkeys(_CLASSES, _of_classes),
    "aten::cross_entropy_loss": _cross_entropy,
}  # fmt: skip
