"""Operators on lists and dicts of numbers as calls of `container_helpers`: one row each.

In: an operator's qualified name.  Out: a `Rule`, as in `scalar_rules`.  What is short is written in place: the length,
and elements by their index, so that LLVM sees it together with the loop around.
"""

from __future__ import annotations

from typing import Final

from engine.fuser.ir.kernel import Constant, Expression, Load, Store, apply, convert, index
from engine.fuser.scalars.container_helpers import DATA, LENGTH, VALUE
from engine.fuser.scalars.containers import element_type, kind_of
from engine.fuser.scalars.scalar_rules import Rule
from engine.fuser.scalars.scalar_writer import NUMBERS, Operand, ScalarWriter, Unsupported, either, is_container, word
from engine.ir.graph import Node
from engine.lang.types import FLOAT, NONE, Type

Values = list[Expression]
_MOST: Final = 2**63 - 1
_DONE: Final[Operand] = ()
"""The result of an operator that has none."""


def number_in(value: Expression, type: str) -> Expression:
    """The number that a word holds."""
    if type == "f64":
        return apply("bits_to_f64", value)
    return convert(value, type)


def _kind(type: Type) -> Expression:
    return index(kind_of(type))


def _length(w: ScalarWriter, address: Expression) -> Expression:
    return w.word(address, LENGTH)


# ------------------------------------------------------------------ lists


def _constant(w: ScalarWriter, node: Node, v: Values) -> Operand:
    """A list or dict of these elements."""
    return _new_list(w, node, v) if kind_of(node.output.type) < 16 else _new_dict(w, node, v)


def _new_list(w: ScalarWriter, node: Node, v: Values) -> Operand:
    if not is_container(node.output.type):
        raise Unsupported(node, f"no list of numbers: {node.output.type}")
    it = w.check(w.help("new_list", w.state, _kind(node.output.type), index(len(v))))
    if v:
        view = w.view(w.word(it, DATA), "i64")
        for place, each in enumerate(v):
            w.emit(Store(view.name, (index(place),), word(each)))
    return it


def _place(w: ScalarWriter, node: Node, length: Expression, given: Expression) -> Expression:
    """The index from the beginning; fails out of range."""
    negative = apply("lt", given, index(0))
    is_known = isinstance(given, Constant) and given.value >= 0
    place = given if is_known else w.choose(negative, apply("add", given, length), given)
    w.fail_if(either(apply("lt", place, index(0)), apply("ge", place, length)), node)
    return place


def _getitem(w: ScalarWriter, node: Node, v: Values) -> Operand:
    place = _place(w, node, _length(w, v[0]), v[1])
    type = element_type(node.inputs[0].type)
    if type == "f64":
        return Load(w.view(w.word(v[0], DATA), "f64").name, (place,), "f64")
    return number_in(Load(w.view(w.word(v[0], DATA), "i64").name, (place,), "i64"), type)


def _set_item(w: ScalarWriter, node: Node, v: Values) -> Operand:
    place = _place(w, node, _length(w, v[0]), v[1])
    view = w.view(w.word(v[0], DATA), "i64")
    w.emit(Store(view.name, (place,), word(v[2])))
    return v[0]


def _append(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.check(w.help("append", v[0], word(v[1])))
    return v[0]


def _insert(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.check(w.help("insert", v[0], v[1], word(v[2]), cost=1000))
    return _DONE


def _pop(w: ScalarWriter, node: Node, v: Values) -> Operand:
    place = _place(w, node, _length(w, v[0]), v[1])
    return number_in(w.help("remove_at", v[0], place), element_type(node.inputs[0].type))


def _delete(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.help("remove_at", v[0], _place(w, node, _length(w, v[0]), v[1]))
    return _DONE


def _clear(w: ScalarWriter, node: Node, v: Values) -> Operand:
    view = w.view(v[0], "i64")
    w.emit(Store(view.name, (index(LENGTH),), index(0)))
    return _DONE


def _extend(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.check(w.help("extend", v[0], v[1], cost=200))
    return v[0] if node.outputs else _DONE


def _made_by(helper: str) -> Rule:
    """A new list of one or two lists."""
    return lambda w, _, v: w.check(w.help(helper, w.state, *v, cost=200))


def _repeat(w: ScalarWriter, node: Node, v: Values) -> Operand:
    it, times = v if is_container(node.inputs[0].type) else reversed(v)
    some = apply("gt", _length(w, it), index(0))
    w.fail_if(apply("bitand", some, apply("lt", times, index(0))), node)
    return w.check(w.help("repeated", w.state, it, times, cost=200))


def _slice(w: ScalarWriter, node: Node, v: Values) -> Operand:
    """Of a positive step; others are left to the interpreter."""
    it, begin, end, step = v
    kinds = [value.type for value in node.inputs]
    begin = index(0) if kinds[1] == NONE else begin
    end = index(_MOST) if kinds[2] == NONE else end
    w.fail_if(apply("le", step, index(0)), node)
    return w.check(w.help("sliced", w.state, it, begin, end, step, cost=200))


def _reverse(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.help("reverse", v[0], cost=200)
    return _DONE


def _sort(w: ScalarWriter, node: Node, v: Values) -> Operand:
    descends = v[1] if len(v) > 1 else Constant(False, "bool")
    if element_type(node.inputs[0].type) == "f64":
        w.fail_if(apply("ne", w.help("has_nan", v[0], cost=200), index(0)), node)
        w.check(w.help("sort_floats", v[0], descends, cost=5000))
    else:
        w.check(w.help("sort_words", v[0], descends, cost=5000))
    return _DONE


def _sorted(w: ScalarWriter, node: Node, v: Values) -> Operand:
    made = w.check(w.help("copy_list", w.state, v[0], cost=200))
    _sort(w, node, [made])
    return made


def _search(w: ScalarWriter, node: Node, v: Values, what: str) -> Expression:
    is_float = node.inputs[1].type == FLOAT
    return w.help(f"{what}_float" if is_float else f"{what}_word", v[0], v[1] if is_float else word(v[1]), cost=200)


def _contains(w: ScalarWriter, node: Node, v: Values) -> Operand:
    return apply("ge", _search(w, node, v, "find"), index(0))


def _count(w: ScalarWriter, node: Node, v: Values) -> Operand:
    return _search(w, node, v, "count")


def _index(w: ScalarWriter, node: Node, v: Values) -> Expression:
    found = _search(w, node, v, "find")
    w.fail_if(apply("lt", found, index(0)), node)
    return found


def _remove(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.help("remove_at", v[0], _index(w, node, v))
    return _DONE


def _equal(helper: str, wanted: int) -> Rule:
    return lambda w, _, v: apply("eq", w.help(helper, v[0], v[1], cost=200), index(wanted))


def _folded(helper: str) -> Rule:
    """A number made of all elements, whose bits the helper gives."""

    def rule(w: ScalarWriter, node: Node, v: Values) -> Operand:
        return number_in(w.help(helper, v[0], cost=200), NUMBERS[node.output.type])

    return rule


def _extreme(helper: str) -> Rule:
    def rule(w: ScalarWriter, node: Node, v: Values) -> Operand:
        w.fail_if(apply("eq", _length(w, v[0]), index(0)), node)
        return _folded(helper)(w, node, v)

    return rule


def _rangelist(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.fail_if(apply("lt", v[0], index(0)), node)
    return w.check(w.help("first_numbers", w.state, _kind(node.output.type), v[0], cost=200))


def _unpack(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.fail_if(apply("ne", _length(w, v[0]), index(len(node.outputs))), node)
    view = w.view(w.word(v[0], DATA), "i64")
    types = [NUMBERS[value.type] for value in node.outputs]
    return tuple(w.let(number_in(Load(view.name, (index(i),), "i64"), type)) for i, type in enumerate(types))


# ------------------------------------------------------------------ dicts


def _key(w: ScalarWriter, node: Node, key: Expression) -> Expression:
    """The key as a word; NaN and -0.0 are left to the interpreter."""
    found = w.let(word(key))
    if key.type == "f64":
        w.fail_if(either(apply("ne", key, key), apply("eq", found, index(-(2**63)))), node)
    return found


def _new_dict(w: ScalarWriter, node: Node, v: Values) -> Operand:
    if not is_container(node.output.type):
        raise Unsupported(node, f"no dict of numbers: {node.output.type}")
    it = w.check(w.help("new_object", w.state, _kind(node.output.type)))
    for key, value in zip(v[::2], v[1::2], strict=True):
        w.check(w.help("set_key", it, _key(w, node, key), word(value)))
    return it


def _find(w: ScalarWriter, node: Node, v: Values) -> Expression:
    return w.help("find_key", v[0], _key(w, node, v[1]))


def _found(w: ScalarWriter, node: Node, v: Values) -> Expression:
    """The number of the key's entry; fails if there is none."""
    place = _find(w, node, v)
    w.fail_if(apply("lt", place, index(0)), node)
    return place


def _get(w: ScalarWriter, node: Node, v: Values) -> Operand:
    return number_in(w.help("value_at", v[0], _found(w, node, v)), element_type(node.inputs[0].type))


def _get_or_default(w: ScalarWriter, node: Node, v: Values) -> Operand:
    found = w.help("value_or", v[0], _key(w, node, v[1]), word(v[2]))
    return number_in(found, element_type(node.inputs[0].type))


def _has(w: ScalarWriter, node: Node, v: Values) -> Operand:
    return apply("ge", _find(w, node, v), index(0))


def _put(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.check(w.help("set_key", v[0], _key(w, node, v[1]), word(v[2])))
    return _DONE


def _delete_key(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.help("remove_entry", v[0], _found(w, node, v))
    return _DONE


def _pop_key(w: ScalarWriter, node: Node, v: Values) -> Operand:
    return number_in(w.help("remove_entry", v[0], _found(w, node, v)), element_type(node.inputs[0].type))


def _parts(part: int) -> Rule:
    def rule(w: ScalarWriter, node: Node, v: Values) -> Operand:
        return w.check(w.help("parts_of_entries", w.state, v[0], _kind(node.output.type), index(part), cost=200))

    return rule


def _update(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.check(w.help("update_dict", v[0], v[1], cost=1000))
    return _DONE


def _clear_dict(w: ScalarWriter, node: Node, v: Values) -> Operand:
    w.help("clear_dict", v[0])
    return _DONE


# ------------------------------------------------------------------ the table


def _rows() -> dict[str, Rule]:
    rows: dict[str, Rule] = {
        "prim::Constant": _constant, "prim::ListConstruct": _new_list, "prim::DictConstruct": _new_dict,
        "prim::ListUnpack": _unpack, "prim::rangelist": _rangelist,
        "aten::len.t": lambda w, _, v: _length(w, v[0]),
        "aten::__getitem__.t": _getitem, "aten::select.t": _getitem, "aten::_set_item.t": _set_item,
        "aten::append.t": _append, "aten::insert.t": _insert, "aten::pop.t": _pop, "aten::Delete.t": _delete,
        "aten::clear.t": _clear, "aten::extend.t": _extend, "aten::add_.t": _extend, "aten::reverse.t": _reverse,
        "aten::copy.t": _made_by("copy_list"), "aten::list.t": _made_by("copy_list"), "aten::add.t": _made_by("joined"),
        "aten::mul.left_t": _repeat, "aten::mul.right_": _repeat, "aten::slice.t": _slice,
        "aten::sum.int": _folded("sum_words"), "aten::sum.bool": _folded("sum_words"),
        "aten::sum.float": _folded("sum_floats"),
        "prim::min.self_int": _extreme("least_word"), "prim::max.self_int": _extreme("greatest_word"),
        "prim::min.self_bool": _extreme("least_word"), "prim::max.self_bool": _extreme("greatest_word"),
        "prim::min.self_float": _extreme("least_float"), "prim::max.self_float": _extreme("greatest_float"),
    }  # fmt: skip
    for kind in ("int", "float", "bool"):
        equal = "equal_floats" if kind == "float" else "equal_words"
        rows[f"aten::eq.{kind}_list"], rows[f"aten::ne.{kind}_list"] = _equal(equal, 1), _equal(equal, 0)
        rows[f"aten::__contains__.{kind}_list"] = _contains
        rows[f"aten::index.list_{kind}"], rows[f"aten::count.{kind}"] = _index, _count
        rows[f"aten::remove.{kind}"] = _remove
        rows[f"aten::sort.{kind}"], rows[f"aten::sorted.{kind}"] = _sort, _sorted
        rows[f"aten::len.Dict_{kind}"] = lambda w, _, v: _length(w, v[0])
        rows[f"aten::__getitem__.Dict_{kind}"], rows[f"aten::__contains__.{kind}"] = _get, _has
        rows[f"aten::_set_item.{kind}"], rows[f"aten::Delete.Dict_{kind}"] = _put, _delete_key
        rows[f"aten::pop.Dict_{kind}"], rows[f"aten::get.default_{kind}"] = _pop_key, _get_or_default
        rows[f"aten::keys.{kind}"], rows[f"aten::values.{kind}"] = _parts(0), _parts(VALUE)
        rows[f"aten::update.{kind}"], rows[f"aten::clear.{kind}"] = _update, _clear_dict
        rows[f"aten::copy.Dict_{kind}"] = rows[f"aten::dict.Dict_{kind}"] = _made_by("copy_dict")
    return rows


CONTAINER_RULES: Final[dict[str, Rule]] = _rows()
WRITERS: Final = frozenset(
    "aten::_set_item aten::append aten::insert aten::pop aten::Delete aten::clear aten::extend aten::add_ "
    "aten::reverse aten::remove aten::sort aten::update".split()
)
"""Kinds of nodes that may change a list or dict."""
