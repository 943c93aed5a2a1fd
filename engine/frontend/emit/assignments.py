"""Assignments: `a = b`, `a, *b = c`, `a.b = c`, `a[i] = c`, `a += b`.

In: assignment trees.  Out: stores of variables; for other targets, operators and writes of attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.frontend.emit.emitter import Emitter
from engine.frontend.emit.operators import BINARY
from engine.frontend.emit.subscripts import assign_subscript, slice_tensor, tensor_list
from engine.frontend.matching.schema_match import Actual
from engine.frontend.sugared.sugared_value import SugaredValue
from engine.frontend.sugared.values import MethodValue, SimpleValue
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Assign, AugAssign, Select, Starred, Subscript, TupleLiteral, Var
from engine.ir.graph import Value
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import ClassType, DictType, ListType, TensorType, Type

_IN_PLACE: Final = {
    "+": "aten::add_", "-": "aten::sub_", "*": "aten::mul_", "/": "aten::div_", "%": "aten::fmod_",
    "|": "aten::bitwise_or", "&": "aten::bitwise_and", "^": "aten::bitwise_xor", "<<": "aten::__ilshift__",
    ">>": "aten::__irshift__", "**": "aten::pow",
}  # fmt: skip
"""Operators of `+=` and the like on tensors; as in PyTorch, some have no in-place form and make a new tensor."""
_LIST_IN_PLACE: Final = {"+": "aten::add_", "*": "aten::mul_"}


def assign(e: Emitter, tree: Tree) -> None:
    """`target = value`, `a = b = value`, `target: T = value`."""
    view = Assign(tree)
    if view.value is None:
        raise CompileError(
            "For an assignment, expected an expression on the right-hand side",
            tree.range,
            hints=("write `x: int = 0`",),
        )
    if len(view.targets) == 1:
        _assign_one(e, view.targets[0], view.value, view.annotation, tree)
        return
    name = e.temporary()
    e.assign(name, e.sugared(view.value), view.value.range)
    for target in view.targets:
        assign_targets(e, [target], [e.lookup(name, view.value.range)], view.value.range)


def _assign_one(e: Emitter, target: Tree, rhs: Tree, annotation: Tree | None, tree: Tree) -> None:
    if target.kind == "variable":
        type = None if annotation is None else e.types.read(annotation)
        e.assign(Var(target).name, e.sugared(rhs, type), target.range, type)
    elif target.kind == ".":
        _assign_attribute(e, target, lambda hint: e.expression(rhs, hint), tree.range, annotation)
    elif target.kind == "subscript":
        assign_subscript(e, target, e.expression(rhs), tree.range)
    elif target.kind == "tuple_literal":
        _unpack(e, target, e.sugared(rhs), rhs.range)
    else:
        raise CompileError(
            "unexpected expression on left-hand side of assignment",
            target.range,
            hints=("a target is a name, x[i], x.a, or several of these",),
        )


def assign_targets(e: Emitter, targets: Sequence[Tree], values: Sequence[SugaredValue], range: SourceRange) -> None:
    """Assign each value to its target; a starred one takes what the others leave."""
    spare = len(values) - len(targets) + 1
    rest = list(values)
    for target in targets:
        if target.kind == "starred":
            _assign_rest(e, target, rest[:spare], range)
            del rest[:spare]
            continue
        _assign_value(e, target, rest.pop(0), range)


def _assign_value(e: Emitter, target: Tree, value: SugaredValue, range: SourceRange) -> None:
    if target.kind == "variable":
        e.assign(Var(target).name, value, target.range)
    elif target.kind == "subscript":
        assign_subscript(e, target, value.as_value(e, range), range)
    elif target.kind == "tuple_literal":
        _unpack(e, target, value, range)
    elif target.kind == ".":
        _assign_attribute(e, target, lambda hint: value.as_value(e, range), range)
    else:
        raise CompileError(
            "unexpected expression on left-hand side of assignment",
            target.range,
            hints=("a target is a name, x[i], x.a, or several of these",),
        )


def _assign_rest(e: Emitter, target: Tree, values: Sequence[SugaredValue], range: SourceRange) -> None:
    inner = Starred(target).value
    if inner.kind != "variable":
        raise CompileError("Cannot pack a tuple into a non-variable", inner.range)
    packed = e.tuple([value.as_value(e, range) for value in values])
    e.assign_value(Var(inner).name, packed, inner.range)


def _unpack(e: Emitter, target: Tree, value: SugaredValue, range: SourceRange) -> None:
    targets = TupleLiteral(target).inputs
    starred = check_targets(targets, target.range)
    wanted = len(targets) - starred
    parts = value.as_tuple(e, None if starred else wanted, range)
    if len(parts) < wanted:
        least = "at least " if starred else ""
        raise CompileError(f"need {least}{wanted} values to unpack but found only {len(parts)}", target.range)
    if len(parts) > wanted and not starred:
        raise CompileError(f"too many values to unpack: need {wanted} but found {len(parts)}", target.range)
    assign_targets(e, targets, parts, range)


def check_targets(targets: Sequence[Tree], range: SourceRange) -> bool:
    """True if one of the targets is starred.  Raises CompileError when one is no target at all."""
    stars = [target for target in targets if target.kind == "starred"]
    for target in targets:
        if target.kind not in ("variable", "subscript", "starred", "tuple_literal", "."):
            raise CompileError(
                "lhs of assignment must be a variable, subscript, or starred expression",
                target.range,
                hints=("a target is a name, x[i], x.a, or several of these",),
            )
    if len(stars) > 1:
        raise CompileError(
            "Only one starred expression is allowed on the lhs", range, hints=("take the middle by index",)
        )
    if stars and len(targets) == 1:
        raise CompileError(
            "A Starred expression may only appear on the lhs within the presence of another non-starred expression",
            range,
            hints=("write `a, *b = x`",),
        )
    return bool(stars)


def _assign_attribute(
    e: Emitter, target: Tree, value: object, range: SourceRange, annotation: Tree | None = None
) -> None:
    """`obj.name = value`; an attribute's declared type is a hint for the value."""
    view = Select(target)
    assert callable(value)
    owner = e.sugared(view.value)
    hint: Type | None = None if annotation is None else e.types.read(annotation)
    if hint is None and isinstance(owner, SimpleValue) and isinstance(owner.type, ClassType):
        known = owner.type.attribute(view.name)
        hint = known.type if known is not None else None
    owner.set_attr(e, view.name, value(hint), range)


# -- a += b


def augmented(e: Emitter, tree: Tree) -> None:
    """`target op= value`: in place for tensors and lists, but not for values of dictionaries."""
    view = AugAssign(tree)
    if view.target.kind == "variable":
        value = e.expression(view.target)
        e.assign_value(Var(view.target).name, _apply(e, view, value), view.target.range)
    elif view.target.kind == ".":
        select = Select(view.target)
        owner = e.sugared(select.value)
        value = owner.attr(e, select.name, view.target.range).as_value(e, view.target.range)
        owner.set_attr(e, select.name, _apply(e, view, value), tree.range)
    elif view.target.kind == "subscript":
        _augment_subscript(e, view)
    else:
        raise CompileError(
            "unexpected expression on left-hand side of augmented assignment",
            view.target.range,
            hints=("a target is a name, x[i] or x.a",),
        )


def _apply(e: Emitter, view: AugAssign, value: Value) -> Value:
    new = e.expression(view.value)
    if not isinstance(value.type, ClassType):
        return e.insert(_operator(view, value.type), [value, new], view.tree.range)
    plain = BINARY[view.operator][1]
    in_place = plain.replace("__", "__i", 1)
    method = next((name for name in (in_place, plain) if name in value.type.methods), None)
    if method is None:
        raise CompileError(
            f"Cannot emit inplace op on {value.type.annotation_str} since it does not define an {in_place} or {plain} "
            "method",
            view.tree.range,
            hints=("define the method, or assign the attribute",),
        )
    result = MethodValue(value, method).call(e, [Actual(new, view.value.range)], (), view.tree.range)
    return result.as_value(e, view.tree.range)


def _operator(view: AugAssign, type: Type) -> str:
    if isinstance(type, TensorType):
        return _IN_PLACE[view.operator]
    if isinstance(type, ListType) and view.operator in _LIST_IN_PLACE:
        return _LIST_IN_PLACE[view.operator]
    return _plain(view.operator)


def _plain(operator: str) -> str:
    """The operator of `a = a <op> b` for values that do not change in place; `%=` truncates, unlike `%`."""
    return "aten::fmod" if operator == "%" else BINARY[operator][0]


def _augment_subscript(e: Emitter, view: AugAssign) -> None:
    target = Subscript(view.target)
    owner = e.expression(target.value)
    if isinstance(owner.type, TensorType):
        _augment_tensor(e, view, target, owner)
        return
    parts, type, range = target.subscripts, owner.type, view.tree.range
    if len(parts) != 1:
        raise CompileError(
            f"Sliced expression not yet supported for {type.annotation_str} augmented assignment. File a bug if you "
            "want this",
            range,
            hints=("change the elements one by one, in a loop",),
        )
    if not isinstance(type, (ListType, DictType)):
        raise CompileError(
            f"{type.annotation_str} does not support augmented assignment.",
            view.target.range,
            hints=("write `x = x + y` with a new value",),
        )
    index, new = e.expression(parts[0]), e.expression(view.value)
    before = e.insert("aten::__getitem__", [owner, index], range)
    operator = _operator(view, before.type) if isinstance(type, ListType) else _plain(view.operator)
    changed = e.insert(operator, [before, new], range)
    e.insert("aten::_set_item", [owner, index, changed], range)


def _augment_tensor(e: Emitter, view: AugAssign, target: Subscript, owner: Value) -> None:
    range = view.tree.range
    sliced, tensors = slice_tensor(e, owner, target.subscripts, view.target.range)
    new = e.expression(view.value)
    operator = _operator(view, owner.type)
    if not tensors:
        e.insert(operator, [sliced, new], range)
        return
    indices = tensor_list(e, tensors)
    picked = e.insert("aten::index", [sliced, indices], range)
    e.insert("aten::index_put_", [sliced, indices, e.insert(operator, [picked, new], range)], range)
