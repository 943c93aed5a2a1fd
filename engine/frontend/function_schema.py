"""The schema of a function, read off its definition.

In: parameters with annotations and defaults.  Out: a `FunctionSchema`.  A parameter without annotation is a
Tensor; defaults are compiled on their own and evaluated once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from engine.aten import op
from engine.frontend.convert import convert, unwrap_optional
from engine.frontend.emit import Emitter
from engine.frontend.tree import Tree
from engine.frontend.views import Def, Param
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Node, Value
from engine.lang.errors import CompileError
from engine.lang.schema import NO_DEFAULT, Argument, FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.types import TENSOR, ListType, Type

_CONSTRUCT: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "prim::ListConstruct": list,
    "prim::EmptyListLiteral": list,
    "prim::TupleConstruct": tuple,
    "prim::DictConstruct": lambda parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    "prim::unchecked_cast": lambda parts: parts[0],
}


def read_signature(view: Def, name: str, self_type: Type | None, fresh: Callable[[], Emitter]) -> FunctionSchema:
    """The schema as declared; it has no returns where none are annotated.

    `fresh` makes an emitter with an empty graph, for the defaults.  Raises CompileError.
    """
    e = fresh()
    if self_type is not None and not view.decl.params:
        raise CompileError("methods must have a self argument", view.decl.range)
    arguments = []
    for index, param in enumerate(view.decl.params):
        if index == 0 and self_type is not None:
            arguments.append(Argument(param.name, self_type))
        else:
            arguments.append(_argument(param, e, fresh))
    returns = view.decl.returns
    declared = () if returns is None else (Argument("", e.types.read(returns)),)
    return FunctionSchema(name, arguments=tuple(arguments), returns=declared)


def _argument(param: Param, e: Emitter, fresh: Callable[[], Emitter]) -> Argument:
    annotation = param.annotation
    type: Type = TENSOR
    broadcast: int | None = None
    if annotation is not None:
        type, broadcast = e.types.read_broadcasting(annotation) or (e.types.read(annotation), None)
    default = NO_DEFAULT if param.default is None else _default(param.default, type, broadcast, param.name, fresh())
    return Argument(param.name, type, default, kwarg_only=param.kwarg_only, broadcast=broadcast)


def _default(tree: Tree, type: Type, broadcast: int | None, name: str, e: Emitter) -> Any:
    """The default's value; of a broadcasting list one number stands for all."""
    listed = unwrap_optional(type)
    if broadcast is not None and tree.kind == "const" and isinstance(listed, ListType):
        return [evaluate_default(tree, listed.element, name, e)] * broadcast
    return evaluate_default(tree, type, name, e)


def evaluate_default(tree: Tree, type: Type | None, name: str, e: Emitter) -> Any:
    """The value of an expression of constants, as a `type` if one is given.  Raises CompileError."""
    value = e.expression(tree, type)
    if type is not None:
        value = convert(e.graph, value, type, True, tree.range)
        if not value.type.is_subtype_of(type):
            raise CompileError(
                f'Expected a default value of type {type.annotation_str} on parameter "{name}" but it is of type '
                f"{value.type.annotation_str}",
                tree.range,
            )
    values: dict[Value, Any] = {}
    for node in e.graph.nodes():
        values.update(zip(node.outputs, _evaluate(node, values, tree.range), strict=False))
    return values[value]


def _evaluate(node: Node, values: dict[Value, Any], range: SourceRange) -> tuple[Any, ...]:
    inputs = [values[value] for value in node.inputs]
    if node.kind == "prim::Constant":
        known = constant_value(node.output)
        assert known is not NOT_CONSTANT
        return (known,)
    if node.kind in _CONSTRUCT:
        return (_CONSTRUCT[node.kind](inputs),)
    if not isinstance(node.op, op.Op):
        raise CompileError("default values must be constants", range)
    result = node.op.run(*inputs)
    return result if len(node.outputs) > 1 else (result,)
