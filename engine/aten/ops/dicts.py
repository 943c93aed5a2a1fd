"""Operators on dictionaries.

In: Python dicts, which keep the order of insertion as TorchScript's do.  Out: keys, values, or the dict changed.
"""

from __future__ import annotations

from typing import Any, Final

from engine.aten.dispatch.table import op
from engine.aten.formatting.values import to_text
from engine.lang.errors import OperatorError

KEYS: Final = ("str", "int", "bool", "float", "complex", "Tensor")
Dict = dict[Any, Any]


def missing(key: Any) -> OperatorError:
    return OperatorError(f"KeyError: {to_text(key)}")


def getitem(values: Dict, key: Any) -> Any:
    try:
        return values[key]
    except KeyError:
        raise missing(key) from None


def set_item(values: Dict, key: Any, value: Any) -> None:
    values[key] = value


def delete(values: Dict, key: Any) -> None:
    try:
        del values[key]
    except KeyError:
        raise missing(key) from None


def pop(values: Dict, key: Any) -> Any:
    try:
        return values.pop(key)
    except KeyError:
        raise missing(key) from None


def popitem(values: Dict) -> tuple[Any, Any]:
    """The oldest item, where Python takes the newest."""
    if not values:
        raise OperatorError("popitem(): dictionary is empty")
    key = next(iter(values))
    return key, values.pop(key)


def contains(values: Dict, key: Any) -> bool:
    return key in values


for _key in KEYS:
    _d = f"Dict({_key}, t)"
    for _overload, _rest, _body in (
        # name.overload, the rest of the schema, body
        (f"len.Dict_{_key}", f"({_d} self) -> int", len),
        (f"__getitem__.Dict_{_key}", f"({_d} self, {_key} key) -> t(*)", getitem),
        (f"__contains__.{_key}", f"({_d} dict, {_key} key) -> bool", contains),
        (f"_set_item.{_key}", f"({_d}(a!) l, {_key}(b -> *) idx, t(c -> *) v) -> ()", set_item),
        (f"Delete.Dict_{_key}", f"({_d}(a!) self, {_key} key) -> ()", delete),
        (f"pop.Dict_{_key}", f"({_d}(a!) self, {_key} key) -> t(*)", pop),
        (f"pop.Dict_default_{_key}", f"({_d}(a!) self, {_key} key, t default_value) -> t(*)", dict.pop),
        (f"clear.{_key}", f"({_d}(a!) self) -> ()", dict.clear),
        (f"copy.Dict_{_key}", f"({_d}(a) self) -> {_d}", dict),
        (f"keys.{_key}", f"({_d} self) -> {_key}[](*)", list),
        (f"values.{_key}", f"({_d} self) -> t[](*)", lambda d: list(d.values())),
        (f"items.{_key}", f"({_d} self) -> (({_key}, t)[])", lambda d: list(d.items())),
        (f"get.{_key}", f"({_d} self, {_key} key) -> t(*)?", dict.get),
        (f"get.default_{_key}", f"({_d} self, {_key} key, t default_value) -> t(*)", dict.get),
        (
            f"setdefault.{_key}", f"({_d}(a!) self, {_key}(b -> *) key, t(c -> *) default_value) -> t(*)",
            dict.setdefault,
        ),
        (f"update.{_key}", f"({_d}(a!) self, {_d}(a!) to_add) -> ()", dict.update),
        (f"popitem.{_key}", f"({_d}(a!) self) -> (({_key}, t))", popitem),
        (f"dict.{_key}", f"(({_key}, tVal)[] inputs) -> Dict({_key}, tVal)", dict),
        (f"dict.Dict_{_key}", f"({_d}(a) self) -> {_d}", dict),
    ):  # fmt: skip
        op(f"aten::{_overload}{_rest}", python=_body)

op("aten::dict() -> Dict(str, Tensor)", python=dict)
# Behind all others: it takes whatever can pass for a list, tuples among them.
op("aten::len.any(Any[] a) -> int", python=len)
