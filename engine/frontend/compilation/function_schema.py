"""The schema of a function, read from its definition.

In: parameters with annotations and defaults.  Out: a `FunctionSchema`.  A parameter without annotation is a
Tensor; defaults are compiled on their own and evaluated once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.frontend.matching.convert import convert
from engine.frontend.names.type_annotations import TypeReader
from engine.frontend.syntax.tree import DefaultIfFits, PythonDefault, Tree
from engine.frontend.syntax.views import Const, Def, Param
from engine.ir.constants import NOT_CONSTANT, constant_value, insert_constant
from engine.ir.graph import Node, Value
from engine.ir.ops import op_of
from engine.lang.deferred import deferred
from engine.lang.errors import CompileError
from engine.lang.literals import INT_LIMIT
from engine.lang.schema import NO_DEFAULT, Argument, FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.types import (
    BOOL,
    FLOAT,
    INFERRED_TENSOR,
    INT,
    NONE,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    unwrap_optional,
)

if TYPE_CHECKING:
    from engine.frontend.diagnostics import hints
else:
    hints = deferred("engine.frontend.diagnostics.hints")

if TYPE_CHECKING:
    from engine.frontend.emit import Emitter

_CONSTRUCT: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "prim::ListConstruct": list,
    "prim::EmptyListLiteral": list,
    "prim::TupleConstruct": tuple,
    "prim::DictConstruct": lambda parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    "prim::unchecked_cast": lambda parts: parts[0],
}


def read_signature(
    view: Def, name: str, self_type: Type | None, types: TypeReader, fresh: Callable[[], Emitter]
) -> FunctionSchema:
    """The schema as declared; it has no returns where none are annotated.

    `fresh` makes an emitter with an empty graph, for the defaults.  Raises CompileError.
    """
    params = view.decl.params
    if self_type is not None and not params:
        raise CompileError("methods must have a self argument", view.decl.range, hints=("write `def m(self)`",))
    own = [] if self_type is None else [Argument(params[0].name, self_type)]
    arguments = own + [_argument(param, types) for param in params[len(own) :]]
    defaults = _defaults(params, arguments, view.decl.range, fresh)
    if defaults:
        arguments = [replace(argument, default=defaults.get(i, NO_DEFAULT)) for i, argument in enumerate(arguments)]
    _check_order(arguments, params)
    returns = view.decl.returns
    declared = () if returns is None else (Argument("", types.read(returns)),)
    return FunctionSchema(name, arguments=tuple(arguments), returns=declared)


def _argument(param: Param, types: TypeReader) -> Argument:
    if param.annotation is None:
        return Argument(param.name, INFERRED_TENSOR, kwarg_only=param.kwarg_only, is_inferred=True)
    type, broadcast = types.read_broadcasting(param.annotation) or (types.read(param.annotation), None)
    return Argument(param.name, type, kwarg_only=param.kwarg_only, broadcast=broadcast)


def _defaults(
    params: Sequence[Param], arguments: Sequence[Argument], range: SourceRange, fresh: Callable[[], Emitter]
) -> dict[int, Any]:
    """Index of a parameter -> its default; the defaults are compiled together, as one tuple that a function returns."""
    given = [(i, param.default) for i, param in enumerate(params) if param.default is not None]
    written = [(i, tree) for i, tree in given if not isinstance(tree, PythonDefault)]
    lists = [(i, tree) for i, tree in written if arguments[i].broadcast is not None]
    found = {i: _broadcast_default(tree, arguments[i], fresh()) for i, tree in lists}
    for i, tree in written:
        if isinstance(tree, DefaultIfFits):
            with suppress(CompileError):
                found[i] = evaluate_default(tree.default, arguments[i].type, params[i].name, fresh())
    found |= {i: None for i, tree in given if _leaves_out(tree, arguments[i].type)}
    annotated = [(i, tree) for i, tree in written if i not in found and params[i].annotation is not None]
    values = {i: _literal(tree, arguments[i].type) for i, tree in annotated}
    found |= {i: value for i, value in values.items() if value is not NO_DEFAULT}
    given = [(i, tree) for i, tree in given if i not in found and not isinstance(tree, DefaultIfFits)]
    if not given:
        return found
    for i, tree in given:
        if params[i].annotation is None and not isinstance(tree, PythonDefault):
            text = "Keyword arguments with defaults need to be type-hinted (TorchScript C++ frontend)"
            raise CompileError(text, tree.range, hints=(f"write `{params[i].name}: int = …`",))
    e, wanted = fresh(), TupleType(tuple(arguments[i].type for i, _ in given))
    made = e.tuple([_default_value(tree, e) for _, tree in given])
    value = convert(e.graph, made, wanted, True, range)
    if not value.type.is_subtype_of(wanted):
        assert isinstance(value.type, TupleType)
        actual = value.type.elements
        at = next(i for i, part in enumerate(actual) if not part.is_subtype_of(wanted.elements[i]))
        (index, tree), type = given[at], wanted.elements[at]
        text = f'Expected a default value of type {type.annotation_str} on parameter "{params[index].name}"'
        given_type = f" but it is of type {actual[at].annotation_str}"
        raise CompileError(
            f"{text}{given_type}", tree.range, hints=hints.conversion_hints(actual[at], type, tree.range)
        )
    return found | dict(zip((i for i, _ in given), _value_of(e, value, range), strict=True))


def _literal(tree: Tree, type: Type) -> Any:
    """The value of a literal that is of this type as it stands; `NO_DEFAULT` of others, which have to be compiled."""
    if tree.kind == "None":
        return None if type is NONE or isinstance(type, OptionalType) else NO_DEFAULT
    wanted = unwrap_optional(type)
    if tree.kind in ("True", "False"):
        return tree.kind == "True" if wanted is BOOL else NO_DEFAULT
    if tree.kind != "const" or wanted not in (INT, FLOAT):
        return NO_DEFAULT
    value = Const(tree).value
    if wanted is INT:
        return value if isinstance(value, int) and -INT_LIMIT <= value < INT_LIMIT else NO_DEFAULT
    return value if isinstance(value, float) else NO_DEFAULT


def _leaves_out(tree: Tree, type: Type) -> bool:
    """True for a tensor that Python's default None leaves out."""
    return isinstance(tree, PythonDefault) and tree.value is None and isinstance(type, TensorType)


def _default_value(tree: Tree, e: Emitter) -> Value:
    if isinstance(tree, PythonDefault):
        return insert_constant(e.graph, tree.value, range=tree.range)
    return e.expression(tree)


def _check_order(arguments: Sequence[Argument], params: Sequence[Param]) -> None:
    seen = False
    for argument, param in zip(arguments, params, strict=True):
        if seen and not argument.has_default and not argument.kwarg_only:
            text = f"Non-default positional argument follows default argument. Parameter {argument.name}"
            raise CompileError(text, param.range, hints=("give it a default, too, or write it before",))
        seen = seen or argument.has_default


def _broadcast_default(tree: Tree, argument: Argument, e: Emitter) -> Any:
    """The default of a broadcasting list, which may be one number for all elements."""
    listed = unwrap_optional(argument.type)
    if tree.kind == "const" and isinstance(listed, ListType):
        return evaluate_default(tree, listed.element, argument.name, e)
    return evaluate_default(tree, argument.type, argument.name, e)


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
                hints=hints.conversion_hints(value.type, type, tree.range),
            )
    return _value_of(e, value, tree.range)


def _value_of(e: Emitter, value: Value, range: SourceRange) -> Any:
    """The Python value that the graph computes from constants."""
    values: dict[Value, Any] = {}
    for node in e.graph.nodes():
        values.update(zip(node.outputs, _evaluate(node, values, range), strict=False))
    return values[value]


def _evaluate(node: Node, values: dict[Value, Any], range: SourceRange) -> tuple[Any, ...]:
    inputs = [values[value] for value in node.inputs]
    if node.kind == "prim::Constant":
        known = constant_value(node.output)
        assert known is not NOT_CONSTANT
        return (known,)
    if node.kind in _CONSTRUCT:
        return (_CONSTRUCT[node.kind](inputs),)
    operator = op_of(node)
    if operator is None:
        raise CompileError(
            "default values must be constants", range, hints=("make the default None, and the value in the function",)
        )
    result = operator.run(*inputs)
    return result if len(node.outputs) > 1 else (result,)
