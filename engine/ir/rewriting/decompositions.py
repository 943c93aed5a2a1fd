"""Graphs that do what an operator does, by the schemas of the operators.

In: a node.  Out: the graph of its decomposition: those that are written here, and those that programs register.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from engine.ir.graph import Graph, Node
from engine.ir.ops import schema_of
from engine.ir.parser import parse_ir
from engine.lang.errors import ArgumentError
from engine.lang.schema import FunctionSchema

_WRITTEN: Final = {
    "aten::var(Tensor self, bool unbiased=True) -> Tensor": """
graph(%x : Tensor, %unbiased : bool):
  %none : NoneType = prim::Constant()
  %yes : bool = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %least : int = prim::Constant[value=0]()
  %dims : int[] = prim::ListConstruct()
  %mean : Tensor = aten::mean(%x, %dims, %yes, %none)
  %difference : Tensor = aten::sub(%x, %mean, %one)
  %distance : Tensor = aten::abs(%difference)
  %square : Tensor = aten::mul(%distance, %distance)
  %sum : Tensor = aten::sum(%square, %dims, %no, %none)
  %count : int = aten::numel(%x)
  %correction : int = aten::Int(%unbiased)
  %free : int = aten::sub(%count, %correction)
  %divisor : int = prim::max(%least, %free)
  %result : Tensor = aten::div(%sum, %divisor)
  return (%result)
""",
    "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor": """
graph(%x : Tensor, %dims : int[]?, %correction : Scalar?, %keepdim : bool):
  %none : NoneType = prim::Constant()
  %yes : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %single : float = prim::Constant[value=1.]()
  %least : float = prim::Constant[value=0.]()
  %mean : Tensor = aten::mean(%x, %dims, %yes, %none)
  %difference : Tensor = aten::sub(%x, %mean, %one)
  %distance : Tensor = aten::abs(%difference)
  %square : Tensor = aten::mul(%distance, %distance)
  %sum : Tensor = aten::sum(%square, %dims, %keepdim, %none)
  %all : int = aten::numel(%x)
  %results : int = aten::numel(%sum)
  %groups : int = prim::max(%results, %one)
  %each : int = aten::floordiv(%all, %groups)
  %count : float = aten::Float(%each)
  %is_default : bool = aten::__is__(%correction, %none)
  %taken : float = prim::If(%is_default)
    block0():
      -> (%single)
    block1():
      %given : Scalar = prim::unchecked_cast(%correction)
      %number : float = aten::Float(%given)
      -> (%number)
  %free : float = aten::sub(%count, %taken)
  %divisor : float = prim::max(%least, %free)
  %result : Tensor = aten::div(%sum, %divisor)
  return (%result)
""",
}
_REGISTERED: Final[dict[str, Graph]] = {}


def register(schema: FunctionSchema, graph: Graph) -> None:
    """Let the graph stand for the operator.  Raises ArgumentError where it takes or gives another number of values."""
    if len(graph.inputs) != len(schema.arguments) or len(graph.outputs) != len(schema.returns):
        raise ArgumentError(
            f"the graph takes {len(graph.inputs)} values and gives {len(graph.outputs)}, where '{schema}' takes "
            f"{len(schema.arguments)} and gives {len(schema.returns)}",
            hints=("a decomposition has the operator's arguments, those with defaults too, in their order",),
        )
    _REGISTERED[str(schema)] = graph


def decomposition_of(node: Node) -> Graph | None:
    """The graph that does what the node's operator does; None where there is none."""
    schema = schema_of(node)
    if schema is None:
        return None
    text = str(schema)
    return _REGISTERED.get(text) or (_parsed(text) if text in _WRITTEN else None)


@cache
def _parsed(schema: str) -> Graph:
    return parse_ir(_WRITTEN[schema])
