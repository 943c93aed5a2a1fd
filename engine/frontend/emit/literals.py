"""Literals: numbers, strings, tuples, lists, dicts.

In: literal trees, perhaps with the type that an annotation wants.  Out: constants and the nodes that
construct containers, whose element type is what the elements share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.frontend.emit.arguments import values_of
from engine.frontend.emit.emitter import Emitter
from engine.frontend.matching.convert import EMPTY_LIST
from engine.frontend.sugared.classes import ConstantValue
from engine.frontend.sugared.sugared_value import SugaredValue
from engine.frontend.sugared.values import SimpleValue
from engine.frontend.syntax.parser import parse_expression
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Const, DictLiteral, ListLiteral, Select, StringLiteral, TupleLiteral, Var
from engine.ir.constants import type_of
from engine.ir.graph import Value
from engine.lang.errors import CompileError, ParseError
from engine.lang.literals import LiteralError, TableName, row_values
from engine.lang.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    STR,
    TENSOR,
    DictType,
    ListType,
    OptionalType,
    TensorType,
    Type,
    UnionType,
    members_of,
    unify,
)


def number(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    return SimpleValue(e.literal(Const(tree).value, tree.range))


def string(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    return SimpleValue(e.constant(StringLiteral(tree).text, tree.range))


def true(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    return SimpleValue(e.constant(True, tree.range))


def false(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    return SimpleValue(e.constant(False, tree.range))


def none(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    return SimpleValue(e.constant(None, tree.range))


def tuple_literal(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    return SimpleValue(e.tuple(values_of(e, TupleLiteral(tree).inputs, unpack=True)))


def list_literal(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    wanted = wanted_container(hint, ListType, tree)
    element_hint = wanted.element if isinstance(wanted, ListType) else None
    values = values_of(e, ListLiteral(tree).inputs, unpack=True)
    if not values and wanted is None and isinstance(hint, UnionType):
        raise _ambiguous("List", "items: List[int] = []", hint, tree)
    if not values and wanted is None:
        return SimpleValue(e.value(EMPTY_LIST, [], ListType(TENSOR), tree.range))
    element = element_hint or (common_type([value.type for value in values]) if values else TENSOR)
    if element_hint is not None:
        _check_elements(values, element_hint, tree)
    elif isinstance(hint, (UnionType, OptionalType)):
        found = f"which were unified to {element.annotation_str}"
        _check_member(ListType(element), hint, f"types match the types of the given list elements, {found}", tree)
    return SimpleValue(as_hinted(e, e.list(values, element), hint))


def dict_literal(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    view = DictLiteral(tree)
    keys: list[Value] = []
    values: list[Value] = []
    for key, value in zip(view.keys, view.values, strict=True):
        keys.append(e.expression(key))
        values.append(e.expression(value))
    wanted = wanted_container(hint, DictType, tree)
    if not keys and wanted is None and isinstance(hint, UnionType):
        raise _ambiguous("Dict", "items: Dict[str, int] = {}", hint, tree)
    if not keys:
        type = wanted or DictType(STR, TENSOR)
    elif isinstance(wanted, DictType):
        type = _checked_dict_type(keys, values, wanted, tree)
    else:
        type = DictType(_key_type(keys, tree), common_type([value.type for value in values]))
        if isinstance(hint, UnionType):
            found = f"which were unified to {type.annotation_str}"
            _check_member(type, hint, f"dict types can hold the types of the given keys and values, {found}", tree)
    pairs = [part for pair in zip(keys, values, strict=True) for part in pair]
    return SimpleValue(as_hinted(e, e.value("prim::DictConstruct", pairs, type, tree.range), hint))


def _ambiguous(kind: str, example: str, hint: Type, tree: Tree) -> CompileError:
    return CompileError(
        f"Cannot assign an empty {kind.lower()} to a variable annotated to be type {hint.annotation_str} because there "
        f"are multiple possible {kind} type candidates in the Union annotation",
        tree.range,
        hints=(f"annotate the {kind.lower()} alone first: `{example}`",),
    )


def list_row(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    """A list of many literals of one type: a copy of one constant."""
    values, wanted = _row(e, tree), wanted_container(hint, ListType, tree)
    return _copied(e, tree, "aten::list", values if _is_of_one_type(values) else None, wanted, hint)


def dict_row(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    """A dict of many literals whose keys are of one type, and its values: a copy of one constant."""
    row, wanted = _row(e, tree), wanted_container(hint, DictType, tree)
    keys, values = row[::2], row[1::2]
    pairs = dict(zip(keys, values, strict=True)) if _is_of_one_type(keys) and _is_of_one_type(values) else None
    return _copied(e, tree, "aten::dict", pairs, wanted, hint)


def _copied(
    e: Emitter,
    tree: Tree,
    operator: str,
    values: list[Any] | dict[Any, Any] | None,
    wanted: Type | None,
    hint: Type | None,
) -> SugaredValue:
    """The operator's copy of the constant; as the row's literals one by one, if their type is not the wanted one."""
    if values is None or isinstance(hint, UnionType) or wanted not in (None, type := type_of(values)):
        whole = tree.range
        return e.sugared(parse_expression(whole.source, begin=whole.start, end=whole.end, rows=False), hint)
    constant = e.constant(values, tree.range, type)
    return SimpleValue(as_hinted(e, e.value(operator, [constant], type, tree.range), hint))


def _row(e: Emitter, tree: Tree) -> list[Any]:
    """The values of the literals in the row.  Raises ParseError for those that have none."""
    try:
        values = row_values(tree.text, archived=tree.range.source.is_generated)
    except LiteralError as error:
        raise ParseError(str(error), tree.range) from None
    return [_of_table(e, each, tree) if isinstance(each, TableName) else each for each in values]


def _of_table(e: Emitter, name: TableName, tree: Tree) -> Any:
    table = Var.make(tree.range, "CONSTANTS")
    found = e.sugared(Select.make(tree.range, table, name.name))
    return found.constant if isinstance(found, ConstantValue) else None


def _is_of_one_type(values: list[Any]) -> bool:
    kinds = set(map(type, values))
    return len(kinds) == 1 and kinds <= {int, float, str, bool}


def wanted_container(hint: Type | None, kind: type, tree: Tree) -> Type | None:
    """The list or dict type among the types that the annotation allows.  Raises CompileError when there is none."""
    if hint is None or hint is ANY:
        return None
    fitting = [member for member in members_of(hint) if isinstance(member, kind)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        return None
    name = "List" if kind is ListType else "Dict"
    text = f"Expected an annotation of type {name}"
    if isinstance(hint, UnionType):
        text = f"Expected an Union type annotation with an inner {name} type,"
    raise CompileError(
        f"{text} but got {hint.annotation_str}",
        tree.range,
        hints=(f"annotate it, as in `x: {'List[int]' if kind is ListType else 'Dict[str, int]'}`",),
    )


def as_hinted(e: Emitter, value: Value, hint: Type | None) -> Value:
    """The literal, cast to the annotated type at once if that is an Optional or a Union."""
    return e.cast(value, hint) if isinstance(hint, (OptionalType, UnionType)) else value


def common_type(types: Sequence[Type]) -> Type:
    """The least type that all share, a Union if need be."""
    common = types[0]
    for type in types[1:]:
        common = unify(common, type, default_to_union=True) or ANY
    return common


def _check_member(type: ListType | DictType, hint: Type, mismatch: str, tree: Tree) -> None:
    """Raises CompileError for a list or dict that is none of several in the annotated Union; `mismatch` says why."""
    members = [member for member in members_of(hint) if isinstance(member, type.__class__)]
    if not any(type.is_subtype_of(member) for member in members):
        allowed = " or ".join(member.annotation_str for member in members)
        text = f"Union type annotation `{hint.annotation_str}` can hold {allowed}, but none of those {mismatch}"
        raise CompileError(text, tree.range)


def _check_elements(values: Sequence[Value], element: Type, tree: Tree) -> None:
    for value, part in zip(values, ListLiteral(tree).inputs, strict=False):
        if not value.type.is_subtype_of(element):
            error = wrong_elements(element, common_type([value.type for value in values]), tree)
            error.hints += (f"{part.range.text} is of type {value.type.annotation_str}",)
            raise error


def wrong_elements(element: Type, found: Type, tree: Tree) -> CompileError:
    """The error for a list whose elements are not of the annotated type."""
    return CompileError(
        f"List type annotation `List[{element.annotation_str}]` did not match the types of the given list elements, "
        f"which were unified to {found.annotation_str}",
        tree.range,
    )


def check_key(type: Type, tree: Tree) -> None:
    """Raises CompileError when no dict can have such keys."""
    if type not in (INT, FLOAT, COMPLEX, DEVICE, STR, BOOL) and not isinstance(type, TensorType):
        raise CompileError(
            f"Cannot create dict for key type '{type}', only int, float, complex, Tensor, device and string keys are "
            "supported",
            tree.range,
            hints=("use str(key)",),
        )


def _key_type(keys: Sequence[Value], tree: Tree) -> Type:
    type = _only_type(keys, tree)
    check_key(type, tree)
    return type


def _only_type(keys: Sequence[Value], tree: Tree) -> Type:
    """The type that all keys share.  Raises CompileError when there is none."""
    type = common_type([key.type for key in keys])
    if isinstance(type, (UnionType, OptionalType)):
        first, other = keys[0].type, next((key.type for key in keys if key.type != keys[0].type), None)
        if other is None:
            return type
        raise CompileError(
            "Dict keys must contain only a single type. Expected: "
            f"{first.annotation_str} but found {other.annotation_str} instead",
            tree.range,
            hints=("use keys of one type, such as str",),
        )
    return type


def _checked_dict_type(keys: Sequence[Value], values: Sequence[Value], wanted: DictType, tree: Tree) -> Type:
    key, value = _only_type(keys, tree), common_type([value.type for value in values])
    for what, found, expected in (("keys", key, wanted.key), ("values", value, wanted.value)):
        if not found.is_subtype_of(expected):
            inferred = f"`{wanted.annotation_str}`, " if what == "values" else wanted.annotation_str
            raise CompileError(
                f"Type annotation was inferred to be {inferred}but the type of {what} given by the dict literal is "
                f"{found.annotation_str}",
                tree.range,
            )
    return wanted
