"""Dtypes, layouts and memory formats at the prompt: programs see numbers, people names.

In: an entry's last expression and its value.  Out: the name that the reply shows, `torch.float32` for 6.
It stands alone because it goes by the expression, where `tsrepl.session.values` goes by the value.
"""

from __future__ import annotations

from typing import Any, Final

from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Select, Var
from engine.ir.graph import Graph
from engine.ir.match import callee_of
from engine.lang.scalars import DTYPE_ALIASES, DTYPE_BY_NAME, DTYPE_BY_NUMBER, MEMORY_FORMATS

_NAMES: Final = {
    **{name: name for name in (*DTYPE_BY_NAME, *MEMORY_FORMATS, "strided")},
    **{alias: dtype.name for alias, dtype in DTYPE_ALIASES.items()},
}
_DTYPE: Final = "prim::dtype"


def name_of_number(expression: Tree, graph: Graph, value: Any) -> str:
    """The name for the number that the expression, the last of the graph's entry, has given; "" for other values."""
    if type(value) is not int:
        return ""
    if expression.kind == Select.kind:
        select = Select(expression)
        if select.value.kind == Var.kind and Var(select.value).name == "torch" and select.name in _NAMES:
            return f"torch.{_NAMES[select.name]}"
    dtype = DTYPE_BY_NUMBER.get(value)
    return repr(dtype) if dtype is not None and _is_dtype(graph) else ""


def names_number(expression: Tree, graph: Graph) -> bool:
    """True if the value of the expression is shown by its name, where the value is a number that has one."""
    return expression.kind == Select.kind and _is_dtype(graph)


def _is_dtype(graph: Graph) -> bool:
    """True if the graph's last result is the dtype of a tensor, or that of a function which returns one."""
    result = graph.outputs[-1]
    if result.node.kind == "prim::TupleConstruct":
        result = result.node.inputs[-1]
    callee = callee_of(result.node)
    return result.node.kind == _DTYPE or (callee is not None and callee.body is not None and _is_dtype(callee.body))
