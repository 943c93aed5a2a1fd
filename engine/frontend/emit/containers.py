"""`list(...)`, `dict(...)` and `tuple(...)`.

In: their calls.  Out: copies of lists and dicts, lists gathered by a loop, tuples of what is unpacked.
"""

from __future__ import annotations

from engine.frontend.convert import EMPTY_LIST
from engine.frontend.emit.arguments import actuals_of, keywords_of
from engine.frontend.emit.emitter import Emitter
from engine.frontend.emit.loops import dict_comprehension, list_comprehension
from engine.frontend.sugar import SugaredValue
from engine.frontend.tree import Tree
from engine.frontend.values import BuiltinFunction, SimpleValue, SpecialForm
from engine.frontend.views import Apply, DictComp, ListComp, TupleLiteral, Var
from engine.lang.errors import CompileError
from engine.lang.types import STR, TENSOR, DictType, ListType, TupleType, Type


def list_form(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`list()`, `list(xs)`: what can be iterated is gathered as `[x for x in xs]` does."""
    if not view.inputs:
        if isinstance(hint, ListType):
            return SimpleValue(e.list([], hint.element))
        return SimpleValue(e.value(EMPTY_LIST, [], ListType(TENSOR), view.range))
    if len(view.inputs) > 1:
        raise CompileError(f"list expected at most 1 arguments, got {len(view.inputs)}", view.range)
    items = e.sugared(view.inputs[0])
    if isinstance(items, SimpleValue) and (isinstance(items.type, ListType) or items.type is STR):
        return SimpleValue(e.insert("aten::list", [items.value], view.range))
    name = e.temporary()
    loop = ListComp.make(view.range, _name(view, name), _name(view, name), view.inputs[0])
    return list_comprehension(e, loop, hint)


def tuple_form(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`tuple(xs)` for something whose length is known."""
    if len(view.inputs) != 1:
        raise CompileError(f"tuple expected exactly 1 arguments but found {len(view.inputs)}", view.range)
    size = len(hint.elements) if isinstance(hint, TupleType) else None
    parts = e.sugared(view.inputs[0]).as_tuple(e, size, view.range)
    return SimpleValue(e.tuple([part.as_value(e, view.range) for part in parts]))


def dict_form(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`dict()`, `dict(d)`, `dict(pairs)`, `dict(a=1)`."""
    if not view.inputs and not view.attributes:
        type = hint if isinstance(hint, DictType) else DictType(STR, TENSOR)
        return SimpleValue(e.value("prim::DictConstruct", [], type, view.range))
    if not view.inputs:
        return _from_keywords(e, view)
    if view.attributes:
        raise CompileError("dict with both a positional and keyword arguments is not supported", view.range)
    if view.inputs[0].kind in ("list_comp", "dict_comp"):
        return _from_comprehension(e, view, hint)
    args = actuals_of(e, view.inputs)
    return BuiltinFunction("aten::dict").call(e, args, (), view.range)


def _from_keywords(e: Emitter, view: Apply) -> SugaredValue:
    pairs = keywords_of(e, view.attributes)
    flat = [part for pair in pairs for part in (e.constant(pair.name, pair.range), pair.value)]
    return SimpleValue(e.value("prim::DictConstruct", flat, DictType(STR, pairs[0].value.type), view.range))


def _from_comprehension(e: Emitter, view: Apply, hint: Type | None) -> SugaredValue:
    """`dict([(k, v) for x in xs])` is `{k: v for x in xs}`."""
    inner = view.inputs[0]
    if inner.kind == "dict_comp":
        return dict_comprehension(e, inner, hint)
    loop = ListComp(inner)
    pair = TupleLiteral(loop.element).inputs if loop.element.kind == "tuple_literal" else ()
    if len(pair) != 2:
        return BuiltinFunction("aten::dict").call(e, actuals_of(e, view.inputs), (), view.range)
    return dict_comprehension(e, DictComp.make(view.range, *pair, loop.target, loop.iterable), hint)


def _name(view: Apply, name: str) -> Tree:
    return Var.make(view.range, name)
