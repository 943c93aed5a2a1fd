"""The remaining statements: `return`, `raise`, `assert`, `with`, `del`, `pass`, expressions.

In: statement trees.  Out: nodes; `return` and `raise` also mark the block as left.
"""

from __future__ import annotations

from typing import Final

from engine.frontend.diagnostics.hints import conversion_hints
from engine.frontend.emit.branches import branch
from engine.frontend.emit.conditions import condition
from engine.frontend.emit.emitter import Emitter
from engine.frontend.matching.convert import convert
from engine.frontend.matching.schema_match import Actual
from engine.frontend.sugared.classes import ExceptionClass, ExceptionInstance
from engine.frontend.sugared.values import MethodValue
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import (
    Apply,
    Assert,
    Delete,
    ExprStmt,
    Raise,
    Return,
    StringLiteral,
    Subscript,
    Var,
    With,
)  # fmt: skip
from engine.ir.graph import Value
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import ANY, NONE, STR, TENSOR, ClassType, Type, unify


def pass_statement(e: Emitter, tree: Tree) -> None:
    """Nothing to do."""


def expression_statement(e: Emitter, tree: Tree) -> None:
    e.sugared(ExprStmt(tree).expression)


def return_statement(e: Emitter, tree: Tree) -> None:
    value = Return(tree).value
    return_value(e, e.expression(value, e.declared), tree.range, value.range)


def return_value(e: Emitter, value: Value, range: SourceRange, written: SourceRange | None = None) -> None:
    """Leave the function with `value`, which must fit the declared type or those returned before.

    `range` is the statement's, `written` the value's.  Raises CompileError.
    """
    declared = e.declared
    if declared is not None:
        # None, of a `return` without a value, must not pass for a tensor.
        if not (value.type.is_subtype_of(TENSOR) and value.type.is_subtype_of(NONE)):
            value = convert(e.graph, value, declared, True, range)
        if not value.type.is_subtype_of(declared):
            raise CompileError(
                f"Return value was annotated as having type {declared.annotation_str} but is actually of type "
                f"{value.type.annotation_str}",
                range,
                hints=conversion_hints(value.type, declared, written or range),
            )
        e.returned = declared
    else:
        e.returned = _joined(e.returned or value.type, value.type, range)
    if e.returned is ANY and value.type is not ANY:
        value = e.cast(value, ANY)
    e.node("prim::ReturnStmt", [value], (), range)
    e.exits.add(e.environment.block)


def _joined(before: Type, type: Type, range: SourceRange) -> Type:
    joined = unify(before, type)
    if joined is None:
        raise CompileError(
            f"Previous return statement returned a value of type {before.annotation_str} but this return statement "
            f"returns a value of type {type.annotation_str}",
            range,
            hints=conversion_hints(type, before, range),
        )
    return joined


def raise_statement(e: Emitter, tree: Tree) -> None:
    view = Raise(tree)
    raised = e.sugared(view.value)
    if isinstance(raised, ExceptionInstance):
        message, qualname = raised.message, raised.qualname
    elif isinstance(raised, ExceptionClass):
        message, qualname = e.constant("", tree.range), None
    else:
        raise CompileError(
            "exceptions must derive from BaseException",
            view.value.range.if_beside(tree.range),
            hints=("write `raise ValueError('what is wrong')`",),
        )
    if not message.type.is_subtype_of(STR):
        message = e.insert("aten::str", [message])
    e.insert("prim::RaiseException", [message, *([qualname] if qualname else [])], tree.range)
    e.exits.add(e.environment.block)


def assert_statement(e: Emitter, tree: Tree) -> None:
    """`if test: pass; else: raise AssertionError(message)`."""
    view = Assert(tree)
    message = view.message if view.message is not None else StringLiteral.make(tree.range, "")
    error = Apply.make(tree.range, Var.make(tree.range, "AssertionError"), [message], [])
    branch(e, condition(e, view.condition), [], [Raise.make(tree.range, error)], tree.range)


def delete_statement(e: Emitter, tree: Tree) -> None:
    for target in Delete(tree).targets:
        if target.kind == "subscript":
            _delete_item(e, target)
        elif target.kind == "variable":
            name = Var(target).name
            e.lookup(name, target.range)
            e.environment.remove(name)
        else:
            raise CompileError(
                "del statements are only supported for deleting list and dict items and variables",
                target.range,
                hints=("set an attribute to None instead; its type is Optional then",),
            )


def _delete_item(e: Emitter, target: Tree) -> None:
    view = Subscript(target)
    part = view.subscripts[0]
    if part.kind == "slice_expr":
        raise CompileError(
            "del statements only support deletion at a single index, slicing is not supported (see "
            "https://github.com/pytorch/pytorch/issues/31430)",
            target.range,
            hints=("delete the elements one by one, or write `x = x[:i] + x[j:]`",),
        )
    value, index = e.expression(view.value), e.expression(part)
    if not isinstance(value.type, ClassType):
        e.insert("aten::Delete", [value, index], target.range)
        return
    if "__delitem__" not in value.type.methods:
        raise CompileError("Class does not define __delitem__", target.range, hints=("define __delitem__(self, key)",))
    MethodValue(value, "__delitem__").call(e, [Actual(index, part.range)], (), target.range)


def with_statement(e: Emitter, tree: Tree) -> None:
    """`prim::Enter` for each object, the body, and `prim::Exit` for each in reverse."""
    view = With(tree)
    entered: list[Value] = []
    for item in view.items:
        value = e.expression(item.value)
        result = e.value("prim::Enter", [value], _enter_type(value, item.value.range), item.value.range)
        entered.append(value)
        if item.target is not None:
            e.assign_value(Var(item.target).name, result, item.target.range)
    e.statements(view.body)
    for value in reversed(entered):
        e.node("prim::Exit", [value], [TENSOR], tree.range)


_MANAGERS: Final = "`with` takes torch.no_grad() and objects of classes that define __enter__ and __exit__"


def _enter_type(value: Value, range: SourceRange) -> Type:
    """The type that `__enter__` returns.  Raises CompileError when the object is no context manager."""
    type = value.type
    if not isinstance(type, ClassType):
        raise CompileError("With item expression must return an object", range, hints=(_MANAGERS,))
    enter, exit = type.methods.get("__enter__"), type.methods.get("__exit__")
    if enter is None or exit is None:
        raise CompileError(
            "Object returned by with item expression does not define __enter__ and __exit__ methods",
            range,
            hints=(_MANAGERS,),
        )
    if len(enter.schema.arguments) != 1:
        raise CompileError(
            "__enter__ must have only one argument and one return value", range, hints=("write `def __enter__(self)`",)
        )
    if len(exit.schema.arguments) != 4:
        raise CompileError(
            "__exit__ must have four arguments",
            range,
            hints=("write `def __exit__(self, type: Any, value: Any, tb: Any) -> None`",),
        )
    wrong = next((i for i, argument in enumerate(exit.schema.arguments) if i and argument.type is not ANY), None)
    if wrong is not None:
        raise CompileError(
            f"argument {wrong} of __exit__ must have Any type",
            range,
            hints=("write `def __exit__(self, type: Any, value: Any, tb: Any) -> None`",),
        )
    result = enter.schema.returns[0].type
    assert isinstance(result, Type)
    return result
