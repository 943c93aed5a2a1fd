"""Gradient formulas of the operator table as graphs.

In: an entry and the number of an argument.  Out: a `FormulaGraph`: the text compiled as TorchScript, and what its
inputs stand for.  Formulas are written for Python, which evaluates them in eager mode; the operator of one that is no
TorchScript would stay on the eager tape.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import Final

from engine.aten.autograd.formula import NO_FORMULA, NOT_IMPLEMENTED
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.frontend.compilation.compile import compile_source
from engine.ir.graph import Graph
from engine.lang.errors import EngineError
from engine.lang.python_syntax import parse_python_expression
from engine.lang.records import dataclass
from engine.lang.types import ListType
from engine.passes.pipeline import run_pipeline

_BUILTIN: Final = frozenset({"len", "float", "int", "list"})
"""Functions of a formula that are no operators."""
_CLEAN: Final = ("inline", "peephole", "constant_propagation", "dce")


@dataclass(frozen=True, slots=True)
class Source:
    """One input of a formula: the gradient of a result (zeros if there is none, or None where it `may_miss`), an
    argument, or a result, by its number."""

    kind: str
    place: int
    may_miss: bool = False


@dataclass(frozen=True, slots=True)
class FormulaGraph:
    """`graph` gives the gradient of the argument from values of the `sources`."""

    argument: int
    sources: tuple[Source, ...]
    graph: Graph

    @property
    def gradients(self) -> tuple[int, ...]:
        """The numbers of the results whose gradients it reads."""
        return tuple(each.place for each in self.sources if each.kind == "gradient")


def differentiable_arguments(op: Op) -> list[int]:
    """The numbers of the arguments that have a formula."""
    found = (op.schema.index_of(name) for name, text in op.gradient.items() if text not in NO_FORMULA)
    return sorted(place for place in found if place is not None)


def not_implemented(op: Op) -> set[int | None]:
    """The numbers of the arguments whose gradients exist, but are not known."""
    return {op.schema.index_of(name) for name, text in op.gradient.items() if text == NOT_IMPLEMENTED}


@cache
def owner_of_formulas(op: Op) -> Op:
    """The operator that has the formulas: the one that it is recorded as, if that begins with the same arguments, and
    formulas read only results that both have."""
    other = table.find(f"aten::{op.recorded_as}") if op.recorded_as and not op.gradient else None
    if other is None or other.side_effects:
        return op
    shared, count = [a.name for a in other.schema.arguments], len(op.schema.returns)
    graphs = [formula_graph(other, place) for place in differentiable_arguments(other)]
    is_alike = [a.name for a in op.schema.arguments[: len(shared)]] == shared and all(
        graph is not None and all(each.kind == "argument" or each.place < count for each in graph.sources)
        for graph in graphs
    )
    return other if is_alike else op


@cache
def formula_graph(op: Op, argument: int) -> FormulaGraph | None:
    """The formula of that argument; None where it is no TorchScript."""
    for may_miss in (True, False):
        try:
            return _compiled(op, argument, may_miss)
        except EngineError:
            continue
    return None


def _compiled(op: Op, argument: int, may_miss: bool) -> FormulaGraph:
    """Gradients that a formula takes out of `grads` are optional if they `may_miss`."""
    schema = op.schema
    gives_list = bool(schema.returns) and isinstance(schema.returns[0].type, ListType)
    tree = ast.Expression(parse_python_expression(op.gradient[schema.arguments[argument].name]))
    tree = ast.fix_missing_locations(_Gradients(gives_list, len(schema.returns)).visit(tree))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    known = _parameters(op, may_miss)
    used = [name for name in known if name in names]
    parameters = ", ".join(f"{name}: {known[name][1]}" for name in used)
    returns = "List[Tensor]" if isinstance(schema.arguments[argument].type, ListType) else "Tensor"
    program = f"def gradient({parameters}) -> {returns}:\n    return {ast.unparse(tree)}\n"
    unit = compile_source(program, filename=f"<gradient of {op.qualified_name}>", strict=False)
    graph = unit.functions["gradient"].graph
    run_pipeline(_CLEAN, graph)
    return FormulaGraph(argument, tuple(known[name][0] for name in used), graph)


def _parameters(op: Op, may_miss: bool) -> dict[str, tuple[Source, str]]:
    """All that a formula may name: what it is, and its type."""
    schema = op.schema
    found = {a.name: (Source("argument", i), a.type.annotation_str) for i, a in enumerate(schema.arguments)}
    found |= {"result": (Source("result", 0), schema.returns[0].type.annotation_str)}
    for i, result in enumerate(schema.returns):
        given = Source("result", i), result.type.annotation_str
        found |= {f"result{i}": given}
        if result.name:
            found.setdefault(result.name, given)
        text = result.type.annotation_str
        found |= {_gradient(i): (Source("gradient", i), text)}
        found |= {_any_gradient(i): (Source("gradient", i, may_miss), f"Optional[{text}]" if may_miss else text)}
    return found


def _gradient(place: int) -> str:
    return f"gradient_of_{place}"


def _any_gradient(place: int) -> str:
    return f"any_gradient_of_{place}"


class _Gradients(ast.NodeTransformer):
    """Names the gradients of single results, which Python finds in a list."""

    def __init__(self, gives_list: bool, count: int) -> None:
        self._gives_list, self._count = gives_list, count

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        is_one = isinstance(node.value, ast.Name) and node.value.id == "grads" and not self._gives_list
        if is_one and isinstance(place, int):
            return ast.Name(_any_gradient(place), ast.Load())
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id not in _BUILTIN:
            node.func = ast.Attribute(ast.Name("torch", ast.Load()), node.func.id, ast.Load())
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "grad" or (node.id == "grads" and self._gives_list):
            return ast.Name(_gradient(0), ast.Load())
        if node.id == "grads":
            return ast.List([ast.Name(_gradient(i), ast.Load()) for i in range(self._count)], ast.Load())
        return node
