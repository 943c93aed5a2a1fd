"""Operators taken apart, where kernels know the parts.

In: a graph that is to be grouped.  Out: the same graph, in which attention in one piece is products and a softmax.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from engine.ir.clone import inline_graph
from engine.ir.constants import constant_value
from engine.ir.graph import Graph, Node
from engine.ir.parser import parse_ir

_ATTENTION: Final = "aten::_native_multi_head_attention"
_PARTS: Final = """
graph(%x : Tensor, %heads : int, %qkv_weight : Tensor, %qkv_bias : Tensor, %weight : Tensor, %bias : Tensor):
  %none : NoneType = prim::Constant()
  %root : float = prim::Constant[value=0.5]()
  %last : int = prim::Constant[value=-1]()
  %before : int = prim::Constant[value=-2]()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %batch : int = aten::size(%x, %0)
  %time : int = aten::size(%x, %1)
  %width : int = aten::size(%x, %2)
  %each : int = aten::floordiv(%width, %heads)
  %divisor : float = aten::pow(%each, %root)
  %projected : Tensor = aten::linear(%x, %qkv_weight, %qkv_bias)
  %shape : int[] = prim::ListConstruct(%batch, %time, %3, %heads, %each)
  %split : Tensor = aten::view(%projected, %shape)
  %all : Tensor = aten::transpose(%split, %1, %3)
  %q : Tensor = aten::select(%all, %2, %0)
  %k : Tensor = aten::select(%all, %2, %1)
  %v : Tensor = aten::select(%all, %2, %2)
  %turned : Tensor = aten::transpose(%k, %before, %last)
  %products : Tensor = aten::matmul(%q, %turned)
  %scores : Tensor = aten::div(%products, %divisor)
  %shares : Tensor = aten::softmax(%scores, %last, %none)
  %joined : Tensor = aten::matmul(%shares, %v)
  %ordered : Tensor = aten::transpose(%joined, %1, %2)
  %flat_shape : int[] = prim::ListConstruct(%batch, %time, %width)
  %flat : Tensor = aten::reshape(%ordered, %flat_shape)
  %result : Tensor = aten::linear(%flat, %weight, %bias)
  return (%result)
"""
_NOTHING: Final = """
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %0 : int = prim::Constant[value=0]()
  %shape : int[] = prim::ListConstruct(%0)
  %result : Tensor = aten::new_zeros(%x, %shape, %none, %none, %none, %none)
  return (%result)
"""
"""The weights that are given where nobody asks for them."""


@cache
def _parts() -> Graph:
    return parse_ir(_PARTS)


@cache
def _nothing() -> Graph:
    return parse_ir(_NOTHING)


def decompose(graph: Graph) -> bool:
    """Take apart self-attention without a mask, whose weights nobody asks for; True if there was any."""
    found = [node for node in graph.find_all_nodes(_ATTENTION) if _is_plain(node)]
    for node in found:
        x, _, _, _, heads, *weights = node.inputs[:9]
        with graph.inserting_at(node):
            (result,) = inline_graph(graph, _parts(), [x, heads, *weights], place=node.range)
            node.outputs[0].replace_all_uses_with(result)
            if node.outputs[1].has_uses:
                (nothing,) = inline_graph(graph, _nothing(), [x], place=node.range)
                node.outputs[1].replace_all_uses_with(nothing)
        node.destroy()
    return bool(found)


def _is_plain(node: Node) -> bool:
    query, key, value, mask, wants_weights = (*node.inputs[:3], *node.inputs[9:11])
    return query is key is value and constant_value(mask) is None and constant_value(wants_weights) is False
