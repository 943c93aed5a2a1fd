"""Gradient formulas of the operator table as graphs.

In: an entry and the number of an argument.  Out: a `FormulaGraph`: the text compiled as TorchScript, and what its inputs
stand for.  Formulas are written for Python, which evaluates them in eager mode; a few are no TorchScript, and their
operators stay on the eager tape.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import Final

from engine.aten.autograd.formula import NO_GRADIENT
from engine.aten.dispatch.op import Op
from engine.frontend.compilation.compile import compile_source
from engine.ir.graph import Graph
from engine.lang.errors import EngineError
from engine.lang.types import ListType
from engine.passes.pipeline import run_pipeline

_BUILTIN: Final = frozenset({"len", "float", "int", "list"})
"""Functions of a formula that are no operators."""
_CLEAN: Final = ("inline", "peephole", "constant_propagation", "dce")


@dataclass(frozen=True, slots=True)
class Source:
    """One input of a formula: the gradient of a result, an argument, or a result, by its number."""

    kind: str
    place: int


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
    found = (op.schema.index_of(name) for name, text in op.gradient.items() if text != NO_GRADIENT)
    return sorted(place for place in found if place is not None)


@cache
def formula_graph(op: Op, argument: int) -> FormulaGraph | None:
    """The formula of that argument; None where it is no TorchScript."""
    schema = op.schema
    text = op.gradient[schema.arguments[argument].name]
    tree = ast.parse(text, mode="eval")
    gives_list = bool(schema.returns) and isinstance(schema.returns[0].type, ListType)
    known = _parameters(op)
    tree = ast.fix_missing_locations(_Gradients(gives_list, len(schema.returns)).visit(tree))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used = [name for name in known if name in names]
    parameters = ", ".join(f"{name}: {known[name][1]}" for name in used)
    result = schema.arguments[argument].type
    returns = "List[Tensor]" if isinstance(result, ListType) else "Tensor"
    program = f"def gradient({parameters}) -> {returns}:\n    return {ast.unparse(tree)}\n"
    try:
        unit = compile_source(program, filename=f"<gradient of {op.qualified_name}>", strict=False)
        graph = unit.functions["gradient"].graph
        run_pipeline(_CLEAN, graph)
    except EngineError:
        return None
    return FormulaGraph(argument, tuple(known[name][0] for name in used), graph)


def _parameters(op: Op) -> dict[str, tuple[Source, str]]:
    """All that a formula may name: what it is, and its type."""
    schema = op.schema
    found = {a.name: (Source("argument", i), a.type.annotation_str) for i, a in enumerate(schema.arguments)}
    found |= {"result": (Source("result", 0), schema.returns[0].type.annotation_str)}
    for i, result in enumerate(schema.returns):
        given = Source("result", i), result.type.annotation_str
        found |= {f"result{i}": given}
        if result.name:
            found.setdefault(result.name, given)
        found |= {_gradient(i): (Source("gradient", i), result.type.annotation_str)}
    return found


def _gradient(place: int) -> str:
    return f"gradient_of_{place}"


class _Gradients(ast.NodeTransformer):
    """Names the gradients of single results, which Python finds in a list."""

    def __init__(self, gives_list: bool, count: int) -> None:
        self._gives_list, self._count = gives_list, count

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not self._gives_list and isinstance(node.value, ast.Name) and node.value.id == "grads":
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
                return ast.Name(_gradient(node.slice.value), ast.Load())
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
