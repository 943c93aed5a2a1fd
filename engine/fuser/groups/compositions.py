"""Operators that are made of several steps: norms, softmax, normalizations by channels.

In: the description of a tensor and the operator's other arguments.  Out: the description of the result; `COMPOSITIONS`
has a function for each operator, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final

from engine.fuser.groups.extents import ONE, Extent, known
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.fusion_group import TYPES, Group, Handler, Lowered, Operands, shown
from engine.fuser.groups.reductions import (
    accumulated,
    as_sample,
    as_type,
    count,
    dimensions,
    extreme_of,
    mapped,
    mean_of,
    squares_of,
    wide,
)
from engine.fuser.groups.reshaping import chunks, extent_of, reshaped
from engine.fuser.groups.schedule import Value
from engine.fuser.ir.kernel import FLOATS, HALVES, Constant, Expression, apply, constant, convert

Given = Operands


def floats(group: Group, value: Lowered) -> Value:
    """A tensor of floats as it is computed with."""
    if not isinstance(value, Value) or value.type not in (*FLOATS, *HALVES):
        raise Unsupported("no tensor of floats")
    return wide(group, value)


def number_of(value: Lowered, type: str) -> Expression:
    if isinstance(value, (int, float)):
        return constant(value, type)
    if value is None or isinstance(value, (list, str, Value)):
        raise Unsupported("a number that is not known")
    return convert(value, type)


# ------------------------------------------------------------------ norms


def _exponentials(group: Group, name: str, given: Given, sample: Any) -> tuple[Value, list[int], Value]:
    """The argument in the type of computation, the dimension, and the largest elements."""
    given.without_effect("half_to_float")  # but for the dtype, which is the sample's
    type = TYPES.get(sample.array.dtype)
    if type is None or type not in (*FLOATS, *HALVES):
        raise Unsupported("no floats")
    value = group.kept_if_costly(wide(group, as_type(group, given["self"], type)))
    if not value.shape:
        raise Unsupported("a tensor without dimensions")
    dims = dimensions(value, given["dim"])
    return value, dims, extreme_of(group, f"{name}_top", value, dims, largest=True)


def _softmax(group: Group, name: str, given: Given, sample: Any) -> Value:
    value, dims, top = _exponentials(group, name, given, sample)
    powers = mapped(group, f"{name}_exp", lambda x, t: apply("exp", apply("sub", x, t)), value, top)
    powers = group.keep(powers)
    total = accumulated(group, f"{name}_sum", powers, dims, "add", 0)
    return as_sample(group, mapped(group, name, _part, powers, total), sample)


def _part(power: Expression, total: Expression) -> Expression:
    """The quotient, as a product with what is the same for a whole row, so that a row has one division."""
    return apply("mul", power, apply("div", constant(1, total.type), total))


def log_softmax(group: Group, name: str, given: Given, sample: Any) -> Value:
    """Along the last dimension the sum and its logarithm are rounded to the result's dtype."""
    value, dims, top = _exponentials(group, name, given, sample)
    powers = mapped(group, f"{name}_exp", lambda x, t: apply("exp", apply("sub", x, t)), value, top)
    total = accumulated(group, f"{name}_sum", powers, dims, "add", 0)
    kept = TYPES[sample.array.dtype] if dims == [len(value.shape) - 1] else value.type

    def rounded(x: Expression) -> Expression:
        return convert(convert(x, kept), value.type)

    share = mapped(group, f"{name}_log", lambda s: rounded(apply("log", rounded(s))), total)
    found = mapped(group, name, lambda x, t, s: apply("sub", apply("sub", x, t), s), value, top, share)
    return as_sample(group, found, sample)


def _logsumexp(group: Group, name: str, given: Given, sample: Any) -> Value:
    """By distances from the largest element, unless that is infinite."""
    value = group.kept_if_costly(floats(group, given["self"]))
    dims, keepdim = dimensions(value, given["dim"]), bool(given["keepdim"])
    top = extreme_of(group, f"{name}_top", value, dims, largest=True)
    zero = constant(0, value.type)

    def finite(x: Expression) -> Expression:
        return apply("select", apply("eq", apply("abs", x), constant(inf, x.type)), zero, x)

    powers = mapped(group, f"{name}_exp", lambda x, t: apply("exp", apply("sub", x, finite(t))), value, top)
    total = accumulated(group, f"{name}_sum", powers, dims, "add", 0)
    found = mapped(group, name, lambda s, t: apply("add", apply("log", s), finite(t)), total, top)
    if not keepdim:
        found = _without(found, name, dims)
    return as_sample(group, found, sample)


def _without(value: Value, name: str, dims: Sequence[int]) -> Value:
    """The value without dimensions of size 1."""
    kept = [d for d in range(len(value.shape)) if d not in dims]
    zero = constant(0, "i64")

    def choose(at: tuple[Expression, ...]) -> tuple[Expression, ...]:
        places = dict(zip(kept, at, strict=True))
        return tuple(places.get(d, zero) for d in range(len(value.shape)))

    return shown(value, name, [value.shape[d] for d in kept], choose)


def _square(x: Expression) -> Expression:
    return apply("mul", x, x)


_NORMS: Final[dict[float, tuple[Callable[[Expression], Expression], str, str]]] = {
    1: (lambda x: apply("abs", x), "add", ""),
    2: (_square, "add", "sqrt"),
    inf: (lambda x: apply("abs", x), "maximum", ""),
}
"""For orders: what is done with each element, how these are combined, and what is done with the result."""


def _norm(group: Group, name: str, given: Given, sample: Any) -> Value:
    order = given["p"] if "p" in given else given["ord"]
    if (order := 2 if order is None else order) not in _NORMS or not isinstance(order, (int, float)):
        raise Unsupported(f"a norm of order {order}")
    each, function, last = _NORMS[order]
    value = floats(group, as_type(group, floats(group, given["self"]), TYPES[sample.array.dtype]))
    dims = dimensions(value, given.get("dim"))
    if function != "add" and any(group.extents.canonical(value.shape[d]).example == 0 for d in dims):
        raise Unsupported("nothing to choose from")
    parts = mapped(group, f"{name}_of", each, value)
    found = accumulated(group, name, parts, dims, function, 0, bool(given.get("keepdim", False)))
    if last:
        found = mapped(group, name, lambda x: apply(last, x), found)
    return as_sample(group, found, sample)


def _glu(group: Group, name: str, given: Given, sample: Any) -> Value:
    """One half along a dimension times the sigmoid of the other."""
    value = floats(group, given["self"])
    if not value.shape:
        raise Unsupported("nothing to halve")
    (dim,) = dimensions(value, given["dim"])
    group.samples[value] = sample
    a, b = chunks(group, value, 2, dim, f"{name}_half")
    gated = mapped(group, name, lambda x, y: apply("mul", x, apply("sigmoid", y)), a, b)
    return as_sample(group, gated, sample)


# ------------------------------------------------------------------ normalizations


def _channels(group: Group, value: Value, other: Lowered) -> Value | None:
    """One number for each channel, as it meets (batch, channels, *space)."""
    if other is None:
        return None
    found = as_type(group, floats(group, other), value.type)
    if len(found.shape) != 1 or len(value.shape) < 2:
        raise Unsupported("no channels")
    after = len(value.shape) - 2
    group.extents.require(found.shape[0], value.shape[1])
    return shown(found, found.name, [found.shape[0], *[ONE] * after], lambda at: at[:1])


def _scaled(group: Group, name: str, value: Value, weight: Value | None, bias: Value | None) -> Value:
    """Times the weight, plus the bias, as far as there are any."""
    for other, function in ((weight, "mul"), (bias, "add")):
        if other is not None:
            value = mapped(group, name, lambda x, y, f=function: apply(f, x, y), value, other)
    return value


def _normalized(value: Expression, mean: Expression, variance: Expression, eps: Expression) -> Expression:
    return apply("mul", apply("sub", value, mean), _inverse_root(variance, eps))


def _inverse_root(variance: Expression, eps: Expression) -> Expression:
    return apply("div", constant(1, variance.type), apply("sqrt", apply("add", variance, eps)))


def _batch_norm(group: Group, name: str, given: Given, sample: Any) -> Value:
    """By the running mean and variance."""
    if given["training"] is not False:
        raise Unsupported("statistics that are updated")
    given.without_effect("momentum")  # but on the statistics
    value = floats(group, given["input"])
    eps = number_of(given["eps"], value.type)
    mean, variance, weight, bias = (
        _channels(group, value, given[key]) for key in ("running_mean", "running_var", "weight", "bias")
    )
    if mean is None or variance is None:
        raise Unsupported("no running statistics")
    found = mapped(group, name, lambda x, m, v: _normalized(x, m, v, eps), value, mean, variance)
    return as_sample(group, _scaled(group, name, found, weight, bias), sample)


def _group_norm(group: Group, name: str, given: Given, sample: Any) -> Value:
    value, count = group.kept_if_costly(floats(group, given["input"])), given["num_groups"]
    if type(count) is not int or count < 1 or len(value.shape) < 2:
        raise Unsupported("groups that are not known")
    batch, channels, *space = (group.extents.canonical(each) for each in value.shape)
    if channels.example % count or not channels.example:
        raise Unsupported("groups of different sizes")
    own = Extent(apply("quotient", channels.size, known(count).size), channels.example // count)
    if isinstance(channels.size, Constant):
        own = known(channels.example // count)
    split = reshaped(group, f"{name}_groups", value, [batch, known(count), own, *space])
    dims, eps = [*range(2, len(split.shape))], number_of(given["eps"], value.type)
    mean, variance = _moments(group, name, split, dims)
    found = mapped(group, name, lambda x, m, v: _normalized(x, m, v, eps), split, mean, variance)
    found = reshaped(group, name, found, value.shape)
    weight, bias = (_channels(group, value, given[key]) for key in ("weight", "bias"))
    return as_sample(group, _scaled(group, name, found, weight, bias), sample)


def _moments(group: Group, name: str, value: Value, dims: Sequence[int]) -> tuple[Value, Value]:
    """The mean and the variance over dimensions."""
    mean = mean_of(group, f"{name}_mean", value, dims)
    squares = squares_of(group, f"{name}_squares", value, mean, dims)
    number = count(value, dims, value.type)
    return mean, mapped(group, f"{name}_var", lambda x: apply("div", x, number), squares)


def _last_dimensions(group: Group, value: Value, sizes: Lowered) -> list[int]:
    """The last dimensions, which have these sizes."""
    if not isinstance(sizes, list) or not 0 < len(sizes) <= len(value.shape):
        raise Unsupported("sizes that are not known")
    dims = [*range(len(value.shape) - len(sizes), len(value.shape))]
    for d, wanted in zip(dims, sizes, strict=True):
        group.extents.require(value.shape[d], extent_of(group, wanted))
    return dims


def _like(group: Group, value: Value, other: Lowered) -> Value | None:
    return None if other is None else as_type(group, floats(group, other), value.type)


def _layer_norm(group: Group, name: str, given: Given, sample: Any) -> Value:
    """Over the last dimensions; weight and bias are optional."""
    value = group.kept_if_costly(floats(group, given["input"]))
    dims, eps = _last_dimensions(group, value, given["normalized_shape"]), number_of(given["eps"], value.type)
    mean, variance = _moments(group, name, value, dims)
    found = mapped(group, name, lambda x, m, v: _normalized(x, m, v, eps), value, mean, variance)
    weight, bias = (_like(group, value, given[key]) for key in ("weight", "bias"))
    return as_sample(group, _scaled(group, name, found, weight, bias), sample)


def _rms_norm(group: Group, name: str, given: Given, sample: Any) -> Value:
    value, eps = group.kept_if_costly(floats(group, given["input"])), given["eps"]
    dims = _last_dimensions(group, value, given["normalized_shape"])
    small = number_of(_EPSILON[value.type] if eps is None else eps, value.type)
    mean = mean_of(group, f"{name}_mean", mapped(group, f"{name}_squares", _square, value), dims)
    found = mapped(group, name, lambda x, m: apply("mul", x, _inverse_root(m, small)), value, mean)
    return as_sample(group, _scaled(group, name, found, _like(group, value, given["weight"]), None), sample)


_EPSILON: Final = {"f32": 2.0**-23, "f64": 2.0**-52}

LIKE_INPUT: Final = frozenset(f"aten::{name}" for name in "batch_norm group_norm rms_norm glu layer_norm".split())
"""Operators whose result has the dtype of their first argument."""
COMPOSITIONS: Final[dict[str, Handler]] = {
    "aten::logsumexp": _logsumexp, "aten::glu": _glu, "aten::norm": _norm, "aten::linalg_vector_norm": _norm,
    "aten::batch_norm": _batch_norm, "aten::group_norm": _group_norm, "aten::rms_norm": _rms_norm,
    "aten::layer_norm": _layer_norm, "aten::softmax": _softmax, "aten::_softmax": _softmax,
    "aten::log_softmax": log_softmax, "aten::_log_softmax": log_softmax,
}  # fmt: skip
