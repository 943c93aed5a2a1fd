"""Names, attributes and calls.

In: `x`, `x.y`, `f(a, b=c)`.  Out: the sugared values that they stand for.  Calls of special forms, like `isinstance` or
`zip`, compile their arguments in their own way: the table at the end has a function for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from engine.frontend.emit.arguments import actuals_of, keywords_of, no_keywords, values_of
from engine.frontend.emit.conditions import has_attribute, type_test
from engine.frontend.emit.containers import dict_form, list_form, tuple_form
from engine.frontend.emit.emitter import Emitter
from engine.frontend.emit.fork import LATER, fork
from engine.frontend.emit.loops import FOREVER
from engine.frontend.emit.subscripts import index_tensor
from engine.frontend.matching.convert import convert
from engine.frontend.sugared.classes import ClassValue
from engine.frontend.sugared.iterables import IterableTree, RangeValue
from engine.frontend.sugared.sugared_value import SugaredValue
from engine.frontend.sugared.values import SimpleValue, SpecialForm
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Apply, Select, StringLiteral, Var
from engine.ir.constants import insert_constant
from engine.lang.errors import CompileError
from engine.lang.types import BOOL, COMPLEX, FLOAT, INT, NONE, TENSOR, ListType, OptionalType, Type

Form = Callable[[Emitter, Apply, SpecialForm, Type | None], SugaredValue]


def variable(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    return e.lookup(Var(tree).name, tree.range)


def select(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    view = Select(tree)
    return e.sugared(view.value).attr(e, view.name, tree.range)


def apply(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    view = Apply(tree)
    callee = e.sugared(view.callee)
    if isinstance(callee, SpecialForm):
        form = FORMS.get(callee.form)
        if form is None:
            raise CompileError(f"'{callee.form}' is not supported", tree.range)
        return form(e, view, callee, hint)
    args = actuals_of(e, view.inputs)
    done = tree.range.underlined_to(view.callee.range.underlined)
    return callee.call(e, args, keywords_of(e, view.attributes), done)


def check_count(view: Apply, form: str, wanted: int) -> None:
    """Raises CompileError unless the call has exactly so many positional arguments."""
    if len(view.inputs) != wanted:
        raise CompileError(f"{form} expected exactly {wanted} arguments but found {len(view.inputs)}", view.range)
    no_keywords(view, form)


def _annotate(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`annotate(T, x)`: `x`, known to be a `T`."""
    check_count(view, "annotate", 2)
    type = e.types.read(view.inputs[0])
    value = convert(e.graph, e.expression(view.inputs[1], type), type, True, view.range)
    if not value.type.is_subtype_of(type):
        raise CompileError(
            f"expected an expression of type {type.annotation_str} but found {value.type.annotation_str}",
            view.inputs[1].range,
        )
    if isinstance(type, OptionalType) and value.type is NONE:
        value = insert_constant(e.graph, None, type, view.range)
    return SimpleValue(value)


def _unchecked_cast(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`unchecked_cast(T, x)`, written by the Python printer: a node even where x is a T, to be written again."""
    check_count(view, "unchecked_cast", 2)
    type = e.types.read(view.inputs[0])
    return SimpleValue(e.cast(e.expression(view.inputs[1]), type))


def _uninitialized(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    check_count(view, "uninitialized", 1)
    return SimpleValue(e.value("prim::Uninitialized", [], e.types.read(view.inputs[0]), view.range))


def _test(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    return SimpleValue(type_test(e, view.tree).value)


def _getattr(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`getattr(x, "name")`, with a default where there is no such attribute."""
    no_keywords(view, "getattr")
    if len(view.inputs) not in (2, 3):
        raise CompileError(
            f"getattr expected to have number of arguments between 2 and 3 but found {len(view.inputs)}",
            view.range,
            hints=("write getattr(x, 'name'), or getattr(x, 'name', default)",),
        )
    if view.inputs[1].kind != "string_literal":
        raise CompileError(
            "getattr's second argument must be a string literal",
            view.inputs[1].range,
            hints=("attributes are found while compiling; for names known at run time use a dict",),
        )
    target = e.sugared(view.inputs[0])
    name = StringLiteral(view.inputs[1]).text
    if len(view.inputs) == 3 and not has_attribute(e, target, name, "getattr", view.range, view.inputs[0].range):
        return e.sugared(view.inputs[2])
    return target.attr(e, name, view.range)


def _range(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    return RangeValue(e, values_of(e, view.inputs, unpack=True), view.range)


def _zip(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    if not view.inputs:
        raise CompileError("zip expected at least 1 arguments, got 0", view.range, hints=("write zip(xs, ys)",))
    return IterableTree([e.sugared(part).iterate(e, view.range) for part in view.inputs], view.range)


def _enumerate(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`zip(range(start, infinity), x)`."""
    if not view.inputs:
        raise CompileError("enumerate expected at least 1 arguments, got 0", view.range, hints=("write enumerate(xs)",))
    starts = [*view.inputs[1:], *(attribute.value for attribute in view.attributes)]
    if len(starts) > 1:
        raise CompileError(
            f"enumerate expected at most 2 arguments, got {len(starts) + 1}",
            view.range,
            hints=("write enumerate(xs, start)",),
        )
    bounds = [e.expression(start) for start in starts]
    bounds.append(e.literal(FOREVER, view.range))
    items = e.sugared(view.inputs[0]).iterate(e, view.range)
    return IterableTree([RangeValue(e, bounds, view.range, items.static_length), items], view.range)


def _tolist(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`x.tolist()`, whose result has the annotated type."""
    if view.inputs or view.attributes:
        raise CompileError("tolist expected no arguments", view.range, hints=("write x.tolist()",))
    if hint is None:
        raise CompileError(
            "Expected type hint for result of tolist()",
            view.range,
            hints=("annotate the variable, as in `x: List[float] = y.tolist()`",),
        )
    element, depth = hint, 0
    while isinstance(element, ListType):
        element, depth = element.element, depth + 1
    kinds = {INT: 0, FLOAT: 1, COMPLEX: 2, BOOL: 3}
    if element not in kinds:
        raise CompileError(
            f"{element.annotation_str} is not one of the supported element types for tolist: int, float, complex, bool",
            view.range,
        )
    assert form.value is not None
    inputs = [form.value, e.constant(depth), e.constant(kinds[element])]
    return SimpleValue(e.value("prim::tolist", inputs, hint, view.range))


def _index(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`x.__getitem__(i)` for a tensor: by tensors only, unlike `x[i]`."""
    assert form.value is not None
    if len(view.inputs) != 1:
        text = f"__getitem__ expected exactly 1 arguments, got {len(view.inputs)}"
        raise CompileError(text, view.range, hints=("write the index in brackets",))
    for value in values_of(e, view.inputs):
        if not value.type.is_subtype_of(OptionalType(TENSOR)):
            found = value.type.annotation_str
            raise CompileError(
                f"Expected a list element that subtypes 'Optional[Tensor]' but got an element of type '{found}'",
                view.range,
                hints=("write the index in brackets",),
            )
    return SimpleValue(index_tensor(e, form.value, view.inputs, view.range))


def _create_object(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    """`C.__new__(C)`, written by the Python printer."""
    check_count(view, "__new__", 1)
    target = e.sugared(view.inputs[0])
    if not isinstance(target, ClassValue):
        raise CompileError("the argument of __new__ must be a class", view.inputs[0].range)
    return SimpleValue(target.create(e, view.range))


FORMS: Final[Mapping[str, Form]] = {
    "annotate": _annotate, "unchecked_cast": _unchecked_cast, "uninitialized": _uninitialized, "isinstance": _test,
    "hasattr": _test, "getattr": _getattr, "range": _range, "zip": _zip, "enumerate": _enumerate, "tolist": _tolist,
    "index": _index, "create_object": _create_object, "list": list_form, "dict": dict_form, "tuple": tuple_form,
    **dict.fromkeys(LATER, fork),
}  # fmt: skip
