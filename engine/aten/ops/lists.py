"""Operators on lists.

In: Python lists and their elements.  Out: elements, new lists, or the list that was changed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import cmp_to_key, reduce
from typing import Any, Final

from engine.aten.dispatch.table import op
from engine.aten.formatting.values import type_name
from engine.aten.kernels.memory import check_memory
from engine.aten.values import arithmetic
from engine.aten.values.hooks import HOOKS
from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import INT64
from engine.lang.errors import OperatorError, OperatorIndexError
from engine.lang.types import BOOL

ELEMENTS: Final = ("int", "float", "bool", "str")

# ------------------------------------------------------------------ places


def out_of_range(values: list[Any], index: int) -> OperatorIndexError:
    return OperatorIndexError("list index out of range", hints=(f"index {index} of a list of {len(values)}",))


def getitem(values: list[Any], index: int) -> Any:
    try:
        return values[index]
    except IndexError:
        raise out_of_range(values, index) from None


def set_item(values: list[Any], index: int, value: Any) -> list[Any]:
    try:
        values[index] = value
    except IndexError:
        raise out_of_range(values, index) from None
    return values


def delete(values: list[Any], index: int) -> None:
    if not values:
        raise OperatorIndexError("pop index out of range")
    pop(values, index)


def pop(values: list[Any], index: int) -> Any:
    if not values:
        raise OperatorIndexError("pop from empty list")
    try:
        return values.pop(index)
    except IndexError:
        raise out_of_range(values, index) from None


def get_slice(values: list[Any], start: int | None, end: int | None, step: int) -> list[Any]:
    return values[arithmetic.slice_of(start, end, step)]


op("aten::__getitem__.t(t[](a) list, int idx) -> t(*)", python=getitem)
op("aten::select.t(t[](a) list, int idx) -> t(*)", python=getitem)
op("aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)", python=set_item)
op("aten::Delete.t(t[](a!) self, int idx) -> ()", python=delete)
op("aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]", python=get_slice)
op("aten::pop.t(t[](a!) self, int idx=-1) -> t(*)", python=pop)

# ------------------------------------------------------------------ changing, joining, copying


def append(values: list[Any], value: Any) -> list[Any]:
    values.append(value)
    return values


def repeat(values: list[Any], count: int) -> list[Any]:
    if count < 0 and values:
        raise OperatorError(f"cannot repeat a list {count} times")
    check_memory((len(values), max(count, 0)), INT64)
    return values * count


def repeat_(values: list[Any], count: int) -> list[Any]:
    check_memory((len(values), max(count, 0)), INT64)
    values *= count
    return values


def copy(values: Iterable[Any]) -> list[Any]:
    return list(values)


op("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)", python=append)
op("aten::extend.t(t[](a!) self, t[] other) -> ()", python=list.extend)
op("aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()", python=list.insert)
op("aten::clear.t(t[](a!) self) -> ()", python=list.clear)
op("aten::copy.t(t[](a) self) -> t[]", python=copy)
op("aten::reverse.t(t[](a!) self) -> ()", python=list.reverse)
op("aten::list.t(t[] l) -> t[]", python=copy)
op("aten::Size(int[] sizes) -> int[]", python=copy)
op("aten::add.t(t[] a, t[] b) -> t[]", python=operator.add)
op("aten::add_.t(t[](a!) self, t[] b) -> t[]", python=operator.iadd)
op("aten::mul.left_t(t[] l, int n) -> t[]", python=repeat)
op("aten::mul.right_(int n, t[] l) -> t[]", python=lambda count, values: repeat(values, count))
op("aten::mul_.t(t[](a!) l, int n) -> t[](a!)", python=repeat_)

# ------------------------------------------------------------------ searching


def _position(values: list[Any], value: Any) -> int:
    """Index of the first equal element, or -1; nan is never found."""
    for i, element in enumerate(values):
        if element == value:
            return i
    return -1


def contains(values: list[Any], value: Any) -> bool:
    return value in values and value == value


def _shown(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def index(values: list[Any], value: Any) -> int:
    place = _position(values, value)
    if place < 0:
        raise OperatorError(f"'{_shown(value)}' is not in list")
    return place


def count(values: list[Any], value: Any) -> int:
    return values.count(value) if value == value else 0


def remove(values: list[Any], value: Any) -> None:
    place = _position(values, value)
    if place < 0:
        raise OperatorError("list.remove(x): x not in list")
    del values[place]


def _of_tensors(body: Callable[[list[Any], Any], Any]) -> Callable[[list[Tensor], Tensor], Any]:
    """A search for a tensor: the elements' answers to `==` as bools."""
    return lambda values, value: body([bool(v.eq(value)) for v in values], True)


for _kind in ("int", "str"):
    op(f"aten::__contains__.{_kind}_list({_kind}[] l, {_kind} item) -> bool", python=contains)
op("aten::__contains__.float_list(float[] l, float item) -> bool", python=contains)

for _kind in ("int", "float", "bool", "Tensor", "str"):
    _tensors = _kind == "Tensor"
    op(
        f"aten::index.list_{_kind}({_kind}[] self, {_kind} el) -> int",
        python=_of_tensors(index) if _tensors else index,
    )
    op(
        f"aten::count.{_kind}({_kind}[] self, {_kind} el) -> int",
        python=_of_tensors(count) if _tensors else count,
    )
for _kind in ELEMENTS:
    op(f"aten::remove.{_kind}({_kind}[](a!) self, {_kind} el) -> ()", python=remove)


def remove_tensor(values: list[Tensor], value: Tensor) -> None:
    for i, element in enumerate(values):
        if bool(element.eq(value)):
            del values[i]
            return
    raise OperatorError("list.remove(x): x not in list")


op("aten::remove.Tensor(Tensor[](a!) self, Tensor el) -> ()", python=remove_tensor)

# ------------------------------------------------------------------ sorting


def sort(values: list[Any], reverse: bool) -> None:
    values.sort(reverse=reverse)


def sort_floats(values: list[float], reverse: bool) -> None:
    if any(value != value for value in values):
        _insertion_sort(values, reverse)
    else:
        values.sort(reverse=reverse)


def _insertion_sort(values: list[float], reverse: bool) -> None:
    """C++'s sort of short lists that hold nan, which Python's sort would order otherwise."""

    def before(x: float, y: float) -> bool:
        return x != y and (x < y) != reverse

    for i in range(1, len(values)):
        value, j = values[i], i
        if before(value, values[0]):
            j = 0
        else:
            while before(value, values[j - 1]):
                j -= 1
        values[j : i + 1] = [value, *values[j:i]]


def _compare_tensors(x: Tensor, y: Tensor) -> int:
    return -1 if bool(x.lt(y)) else int(bool(y.lt(x)))


def sort_tensors(values: list[Tensor], reverse: bool) -> None:
    values.sort(key=cmp_to_key(_compare_tensors), reverse=reverse)


_SORTABLE: Final = (int, float, str, Tensor, Object)


def sort_any(values: list[Any], reverse: bool) -> None:
    """Tuples and objects with `__lt__`.  Raises OperatorError for elements that have no order."""
    for value in values:
        _check_sortable(value, whole=values)
        if (found := type_name(value)) != (first := type_name(values[0])):
            raise OperatorError(f"Only values of same type can be compared. Found {first} and {found}")
    values.sort(key=cmp_to_key(_compare), reverse=reverse)


def _check_sortable(value: Any, whole: list[Any]) -> None:
    if isinstance(value, tuple):
        if not all(isinstance(part, (*_SORTABLE, tuple)) for part in value):
            raise OperatorError(
                f"Contained elements in {type_name(value)} are not sortable. Only Int, Bool, Float, String, Tensor, a "
                "User Defined Class with __lt__ method defined or Tuples of aforementioned types can be sorted"
            )
    elif not isinstance(value, _SORTABLE) or (isinstance(value, Object) and not _has_order(value)):
        lacks = ", which must define a __lt__ method (self, other) -> bool" if isinstance(value, Object) else ""
        raise OperatorError(
            "Only list of Tensors, ints, floats, bools, strs, a User Defined Class that defines the __lt__ compare "
            f"method or Tuples of aforementioned types can be sorted, got list of {type_name(whole[0])}{lacks}"
        )


def _has_order(value: Object) -> bool:
    """True if the object's class compares it by `__lt__`."""
    method: Any = value.type.methods.get("__lt__")
    return method is not None and [each.type for each in method.schema.returns] == [BOOL]


def _compare(x: Any, y: Any) -> int:
    if _less(x, y):
        return -1
    return int(_less(y, x))


def _less(x: Any, y: Any) -> bool:
    if isinstance(x, tuple):
        for p, q in zip(x, y, strict=True):
            order = _compare(p, q)
            if order:
                return order < 0
        return False
    if isinstance(x, Tensor):
        return bool(x.lt(y))
    if isinstance(x, Object):
        return bool(call_method(x, "__lt__", y))
    return bool(x < y)


def call_method(receiver: Object, name: str, *args: Any) -> Any:
    """A script method from inside an operator, through whatever runs functions."""
    if HOOKS.call is None:
        raise AssertionError(f"{receiver.type.qualname}.{name} is needed, and nothing that runs methods has registered")
    return HOOKS.call(receiver.type.methods[name], [receiver, *args])


def _sorted_by(sort_in_place: Callable[[list[Any], bool], None]) -> Callable[[list[Any]], list[Any]]:
    def in_order(values: list[Any]) -> list[Any]:
        copied = list(values)
        sort_in_place(copied, False)
        return copied

    return in_order


for _kind, _sort in (
    ("int", sort), ("float", sort_floats), ("Tensor", sort_tensors), ("bool", sort), ("str", sort),
):  # fmt: skip
    op(f"aten::sort.{_kind}({_kind}[](a!) self, bool reverse=False) -> ()", python=_sort)
    op(f"aten::sorted.{_kind}({_kind}[](a) input) -> {_kind}[]", python=_sorted_by(_sort))
op("aten::sort.any(t[](a!) self, bool reverse=False) -> ()", python=sort_any)
op("aten::sorted.any(t[](a) self) -> t[]", python=_sorted_by(sort_any))

# ------------------------------------------------------------------ all of a list


def sum_ints(values: list[int]) -> int:
    """The sum in C's int, which has 32 bits."""
    return arithmetic.wrap32(sum(values))


def sum_from(zero: Any) -> Callable[[list[Any]], Any]:
    """From left to right, without the compensation that newer Pythons' `sum` has."""
    return lambda values: reduce(operator.add, values, zero)


for _kind in ("str", "int", "float", "bool"):
    op(f"aten::any.{_kind}({_kind}[] self) -> bool", python=any)
for _kind in ("int", "float", "bool"):
    op(f"aten::all.{_kind}({_kind}[] self) -> bool", python=all)
op("aten::sum.int(int[] self) -> int", python=sum_ints)
op("aten::sum.float(float[] self) -> float", python=sum_from(0.0))
op("aten::sum.complex(complex[] self) -> complex", python=sum_from(0j))
op("aten::sum.bool(bool[] self) -> int", python=sum_ints)


def rangelist(n: int) -> list[int]:
    if n < 0:
        raise OperatorError(f"a list cannot have {n} elements")
    check_memory((n,), INT64)
    return list(range(n))


def size_if_not_equal(size: list[int], other: list[int]) -> list[int] | None:
    return None if size == other else list(size)


op("prim::rangelist(int n) -> int[]", python=rangelist)
op("aten::_size_if_not_equal(int[] self_size, int[] other_size) -> int[]?", python=size_if_not_equal)
op("aten::len.t(t[] a) -> int", python=len)
op("aten::len.Tensor(Tensor t) -> int", python=len)
