"""Scalar expressions: the bodies of pointwise operators, as array code.

In: the text of an expression over argument names, `where(self > 0, self, alpha * self)`, and which
arguments are arrays.  Out: a Python function of the arguments.  Operators on arrays become calls of
functions of `engine.aten.kernels.pointwise`; what involves only numbers stays ordinary Python, so that a number
never decides a dtype.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from engine.aten.kernels.pointwise import FUNCTIONS
from engine.lang.generated import define
from engine.lang.python_syntax import parse_python_expression

OPERATORS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
    ast.LShift: "left_shift", ast.RShift: "right_shift", ast.USub: "neg", ast.Invert: "bitwise_not",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip


def compile_expression(text: str, parameters: Sequence[str], arrays: Collection[str]) -> Callable[..., Any]:
    """The expression as a function of `parameters`; those in `arrays` are arrays, the others numbers."""
    lines = [f"return {array_code(text, arrays)}"]
    return define("expression", parameters, lines, dict(FUNCTIONS), f"<scalar {text}>")


def array_code(
    text: str, arrays: Collection[str], known: Mapping[str, Any] | None = None, spelled: Mapping[str, str] | None = None
) -> str:
    """The expression as Python text that calls the functions of `pointwise`; names in `known` become constants, those
    in `spelled` other names."""
    lowered = array_tree(text, arrays, known or {})
    for node in ast.walk(lowered):
        if isinstance(node, ast.Name) and spelled and node.id in spelled:
            node.id = spelled[node.id]
    return ast.unparse(lowered)


def array_tree(text: str, arrays: Collection[str], known: Mapping[str, Any]) -> ast.Expression:
    """`array_code`, as a tree of its own."""
    tree: ast.Expression = _Lowering(arrays, known).visit(ast.Expression(parse_python_expression(text)))
    return tree


class _Lowering(ast.NodeTransformer):
    """Rewrites operators on arrays as calls.  (The one transformer: Python's own trees come with this protocol.)"""

    def __init__(self, arrays: Collection[str], known: Mapping[str, Any]) -> None:
        self.arrays = arrays
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(self.known[node.id]) if node.id in self.known else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult) and _is_one(node.left):
            return node.right
        return self._call(node.op, node.left, node.right) if self._has_array(node) else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self._call(node.op, node.operand) if self._has_array(node) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        return self._call(node.ops[0], node.left, node.comparators[0]) if self._has_array(node) else node

    def _call(self, operator: ast.AST, *operands: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(OPERATORS[type(operator)], ast.Load()), list(operands), [])

    def _has_array(self, node: ast.AST) -> bool:
        return any(isinstance(part, ast.Name) and part.id in self.arrays for part in ast.walk(node))


def _is_one(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1
