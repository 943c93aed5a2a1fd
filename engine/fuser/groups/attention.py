"""Attention and layers of transformers as stages of a kernel: products, a softmax between them, what comes around.

In: descriptions of the operands.  Out: the description of the result; `ATTENTION` has a function for each operator, by
name.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, Final, TypeVar

import numpy as np

from engine.aten.dispatch.table import overloads
from engine.aten.values.tensor import Tensor
from engine.fuser.groups.compositions import COMPOSITIONS
from engine.fuser.groups.extents import known
from engine.fuser.groups.from_expression import Unsupported, element
from engine.fuser.groups.fusion_group import DTYPES, Group, Handler, Lowered, Operands, shown
from engine.fuser.groups.gemm import TYPES
from engine.fuser.groups.products import linear, multiplied
from engine.fuser.groups.reductions import accumulated, extreme_of, mapped
from engine.fuser.groups.reshaping import reshaped
from engine.fuser.groups.schedule import Body, Indices, Value
from engine.fuser.ir.kernel import BOOL, Constant, Expression, apply, constant

Given = Operands
T = TypeVar("T")


def _tensor(given: Given, name: str, rank: int = 0) -> Value:
    value = given[name]
    if not isinstance(value, Value) or value.type not in TYPES or (rank and len(value.shape) != rank):
        raise Unsupported(f"{name} is no tensor of float32 or float64 of that rank")
    return value


def _turned(value: Value) -> Value:
    """With its last two dimensions exchanged."""
    shape = (*value.shape[:-2], value.shape[-1], value.shape[-2])
    return shown(value, value.name, shape, lambda at: (*at[:-2], at[-1], at[-2]))


def _shares(group: Group, name: str, scores: Value) -> Value:
    """The softmax over the last dimension; zeros in rows that attend to nothing."""
    dims = [len(scores.shape) - 1]
    top = extreme_of(group, f"{name}_top", scores, dims, largest=True)
    powers = group.keep(mapped(group, f"{name}_exp", lambda x, t: apply("exp", apply("sub", x, t)), scores, top))
    total = accumulated(group, f"{name}_sum", powers, dims, "add", 0)

    def share(power: Expression, whole: Expression, largest: Expression) -> Expression:
        is_dead = apply("eq", largest, constant(-inf, scores.type))
        return apply("select", is_dead, constant(0, scores.type), apply("div", power, whole))

    return mapped(group, f"{name}_shares", share, powers, total, top)


# ------------------------------------------------------------------ attention


def _attention(group: Group, name: str, given: Given, sample: Any) -> Value:
    """softmax(query key^T * scale + mask) value."""
    q, k, v = (_tensor(given, each) for each in ("query", "key", "value"))
    if min(map(len, (q.shape, k.shape, v.shape))) < 2 or given["dropout_p"] != 0 or given["enable_gqa"] is not False:
        raise Unsupported("attention with dropout, or with fewer heads of keys")
    scale = given["scale"]
    if scale is None:
        size = group.extents.canonical(q.shape[-1])
        group.extents.require(size, known(size.example))
        scale = 1 / sqrt(size.example)
    if not isinstance(scale, (int, float)):
        raise Unsupported("a factor that is not known")
    factor = constant(scale, q.type)
    products = multiplied(group, f"{name}_scores", q, _turned(k))
    scores = mapped(group, f"{name}_scaled", lambda x: apply("mul", x, factor), products)
    if given["is_causal"] is not False:
        scores = _causal(scores)
    if given["attn_mask"] is not None:
        scores = _masked(group, scores, given["attn_mask"])
    return multiplied(group, name, _shares(group, name, scores), v)


def _causal(scores: Value) -> Value:
    """Minus infinity where the key comes after the query."""

    def at(body: Body, indices: Indices) -> Expression:
        is_seen = apply("le", indices[-1], indices[-2])
        return apply("select", is_seen, body.element(scores, indices), constant(-inf, scores.type))

    return Value(scores.name, scores.type, scores.shape, at, scores.stages)


def _masked(group: Group, scores: Value, mask: Lowered) -> Value:
    """Where the mask holds; or with the mask added."""
    if not isinstance(mask, Value) or mask.type not in (BOOL, scores.type):
        raise Unsupported("a mask of another dtype")
    if mask.type == BOOL:
        return mapped(group, scores.name, lambda x, m: apply("select", m, x, constant(-inf, scores.type)), scores, mask)
    return mapped(group, scores.name, lambda x, m: apply("add", x, m), scores, mask)


# ------------------------------------------------------------------ a layer of an encoder


def _encoder_layer(group: Group, name: str, given: Given, sample: Any) -> Value:
    """Attention and two linear layers, each with a norm before or after and the input added."""
    x = _tensor(given, "src", 3)
    like = Tensor(np.ones((1,), DTYPES[x.type]))
    if given["mask"] is not None:
        raise Unsupported("a layer with a mask")

    def normed(value: Value, number: int) -> Value:
        of = Operands({
            "input": value, "normalized_shape": [given["embed_dim"]], "eps": given["eps"],
            "weight": given[f"norm_weight_{number}"], "bias": given[f"norm_bias_{number}"],
        })  # fmt: skip
        found: Value = COMPOSITIONS["aten::layer_norm"](group, f"{name}_norm{number}", of, like)
        return found

    def added(a: Value, b: Value) -> Value:
        return mapped(group, f"{name}_sum", lambda p, q: apply("add", p, q), a, b)

    if given["norm_first"] is True:
        x = group.keep(added(x, _heads(group, name, given, normed(x, 1))))
        return added(x, _fed(group, name, given, normed(x, 2)))
    x = group.keep(normed(group.keep(added(x, _heads(group, name, given, x))), 1))
    return normed(group.keep(added(x, _fed(group, name, given, x))), 2)


def _heads(group: Group, name: str, given: Given, x: Value) -> Value:
    """Attention of several heads, with projections before and after."""
    heads, width = given["num_heads"], given["embed_dim"]
    if type(heads) is not int or type(width) is not int or heads < 1 or width % heads:
        raise Unsupported("heads that are not known")
    batch, time, _ = (group.extents.canonical(each) for each in x.shape)
    weight, bias = (_tensor(given, f"qkv_{each}") for each in ("weight", "bias"))
    projected = group.keep(linear(group, f"{name}_qkv", x, weight, bias))
    split = reshaped(group, f"{name}_heads", projected, [batch, time, known(3), known(heads), known(width // heads)])
    q, k, v = (_head(split, i) for i in range(3))
    divisor = constant(sqrt(width // heads), x.type)
    products = multiplied(group, f"{name}_scores", q, _turned(k))
    scores = mapped(group, f"{name}_scaled", lambda each: apply("div", each, divisor), products)
    joined = multiplied(group, f"{name}_heads", _shares(group, name, scores), v)
    flat = reshaped(group, name, shown(joined, name, _order(joined.shape), _order), [batch, time, known(width)])
    weight, bias = (_tensor(given, f"proj_{each}") for each in ("weight", "bias"))
    return linear(group, f"{name}_attended", flat, weight, bias)


def _head(split: Value, i: int) -> Value:
    """One of queries, keys and values: (batch, heads, time, size)."""
    batch, time, _, heads, size = split.shape
    part = Constant(i, "i64")
    return shown(split, split.name, (batch, heads, time, size), lambda at: (at[0], at[2], part, at[1], at[3]))


def _order(of: tuple[T, ...]) -> tuple[T, ...]:
    """With the second and third dimension exchanged."""
    return (of[0], of[2], of[1], *of[3:])


def _fed(group: Group, name: str, given: Given, x: Value) -> Value:
    """Two linear layers with an activation between."""
    weights, biases = ([_tensor(given, f"ffn_{kind}_{i}") for i in (1, 2)] for kind in ("weight", "bias"))
    hidden = linear(group, f"{name}_hidden", x, weights[0], biases[0])
    rows = overloads("aten::gelu" if given["use_gelu"] is True else "aten::relu")
    operands = {"approximate": "none"} if given["use_gelu"] is True else {}
    text = next(str(row.scalar or row.expression) for row in rows if row.scalar or row.expression)
    active = mapped(group, f"{name}_active", lambda e: element(text, {"self": e, **operands}, hidden.type), hidden)
    return linear(group, f"{name}_fed", group.keep(active), weights[1], biases[1])


ATTENTION: Final[dict[str, Handler]] = {
    "aten::scaled_dot_product_attention": _attention,
    "aten::_transformer_encoder_layer_fwd": _encoder_layer,
}  # fmt: skip
