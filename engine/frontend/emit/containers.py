"""`list(...)`, `dict(...)` and `tuple(...)`.

In: their calls.  Out: copies of lists and dicts, lists gathered by a loop, tuples of what is unpacked.
"""

from __future__ import annotations

from engine.frontend.emit.arguments import no_keywords
from engine.frontend.emit.emitter import Emitter
from engine.frontend.emit.loops import dict_comprehension, list_comprehension
from engine.frontend.matching.convert import EMPTY_LIST
from engine.frontend.sugared.sugared_value import SugaredValue
from engine.frontend.sugared.values import SimpleValue, SpecialForm
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import (
    Apply,
    Attribute,
    DictComp,
    DictLiteral,
    ListComp,
    ListLiteral,
    StringLiteral,
    TupleLiteral,
    Var,
)
from engine.ir.graph import Value
from engine.lang.errors import CompileError
from engine.lang.types import STR, TENSOR, DictType, ListType, Type, members_of


def list_form(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`list()`, `list(xs)`: what can be iterated is gathered as `[x for x in xs]` does."""
    if view.inputs:
        no_keywords(view, "list")
    if not view.inputs:
        if isinstance(hint, ListType):
            return SimpleValue(e.list([], hint.element))
        return SimpleValue(e.value(EMPTY_LIST, [], ListType(TENSOR), view.range))
    if len(view.inputs) > 1:
        raise CompileError(f"list expected exactly 1 arguments but found {len(view.inputs)}", view.range)
    items = e.sugared(view.inputs[0])
    if isinstance(items, SimpleValue) and (isinstance(items.type, ListType) or items.type is STR):
        return SimpleValue(e.insert("aten::list", [items.value], view.range))
    element = _name(view, e.temporary())
    return list_comprehension(e, ListComp.make(view.range, element, element, _stored(e, view, items)), hint)


def tuple_form(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`tuple(xs)` for something whose length is known."""
    no_keywords(view, "tuple")
    if len(view.inputs) != 1:
        raise CompileError(f"tuple expected exactly 1 arguments but found {len(view.inputs)}", view.range)
    parts = e.sugared(view.inputs[0]).as_tuple(e, None, view.range)
    return SimpleValue(e.tuple([part.as_value(e, view.range) for part in parts]))


def dict_form(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`dict()`, `dict(d)`, `dict(pairs)`, `dict(a=1)`: pairs are gathered as `{k: v for k, v in pairs}` does."""
    hint = _dict_hint(hint, view)
    source = view.inputs[0] if view.inputs else ListLiteral.make(view.range, [])
    if source.kind == "list_literal":
        pairs = [*ListLiteral(source).inputs, *(_pair(attribute) for attribute in view.attributes)]
        if not pairs:
            return e.sugared(DictLiteral.make(view.range, [], []), hint)
        return _gathered(e, view, e.sugared(ListLiteral.make(view.range, pairs)), hint)
    value = e.sugared(source, hint if source.kind == "dict_literal" else None)
    if isinstance(value, SimpleValue) and isinstance(value.type, DictType):
        result = e.insert("aten::dict", [value.value], view.range)
    elif view.attributes:
        raise CompileError(
            "dict takes no keyword arguments", view.range, hints=("make one dict, and set the other keys after it",)
        )
    else:
        result = _gathered(e, view, value, hint).as_value(e, view.range)
    _set_keywords(e, view, result)
    return SimpleValue(result)


def _dict_hint(hint: Type | None, view: Apply) -> Type | None:
    """The dict type that the annotation allows; the annotation itself where it allows none.  Raises CompileError."""
    fitting = [] if hint is None else [member for member in members_of(hint) if isinstance(member, DictType)]
    if hint is not None and len(fitting) > 1:
        raise CompileError(
            f"There are multiple candidate Dict types in the Union type annotation `{hint.annotation_str}`, and full "
            "type inference is not yet supported for the `dict()` constructor.",
            view.range,
            hints=("annotate the dict alone first: `items: Dict[str, int] = dict(...)`",),
        )
    return fitting[0] if fitting else hint


def _pair(attribute: Attribute) -> Tree:
    """`name=value` as `("name", value)`."""
    return TupleLiteral.make(attribute.range, [StringLiteral.make(attribute.range, attribute.name), attribute.value])


def _gathered(e: Emitter, view: Apply, pairs: SugaredValue, hint: Type | None) -> SugaredValue:
    key, value = _name(view, e.temporary()), _name(view, e.temporary())
    target = TupleLiteral.make(view.range, [key, value])
    return dict_comprehension(e, DictComp.make(view.range, key, value, target, _stored(e, view, pairs)), hint)


def _set_keywords(e: Emitter, view: Apply, result: Value) -> None:
    """`dict(d, name=value)`."""
    for attribute in view.attributes:
        key, value = e.constant(attribute.name, attribute.range), e.expression(attribute.value)
        assert isinstance(result.type, DictType)
        if not value.type.is_subtype_of(result.type.value):
            found, wanted = value.type.annotation_str, result.type.value.annotation_str
            text = f"Generated value type {found} did not match the annotated value type, which was {wanted}"
            raise CompileError(text, attribute.range)
        e.insert("aten::_set_item", [result, key, value], attribute.range)


def _stored(e: Emitter, view: Apply, value: SugaredValue) -> Tree:
    """A tree that names the value, which is stored under a fresh name."""
    name = e.temporary()
    e.assign(name, value, view.range)
    return _name(view, name)


def _name(view: Apply, name: str) -> Tree:
    return Var.make(view.range, name)
