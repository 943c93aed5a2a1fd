"""Questions about a tensor's form, as LLVM's text: its methods and attributes that need no operator.

In: a `Layout`, `Places`.  Out: the text of `method.NAME`, a method of tensors, and `get.NAME`, an attribute.  Tensors
on arrays of other libraries, traces, and arguments that are not simple go to the Python functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from engine.fuser import cpython_abi as abi
from engine.fuser.entries.entry import forwarded
from engine.fuser.hot_helpers.helpers import Places
from engine.fuser.writing import Layout, Text, define, pointer

_C_CONTIGUOUS: Final = 1
"""Flags of a contiguous array."""


def functions(at: Layout, places: Places, fallbacks: Mapping[str, int]) -> Iterator[str]:
    """Their text; `fallbacks` are the Python functions, of attributes by `get.NAME`."""
    for name in METHODS:
        yield _method(at, places, name, fallbacks[name])
    for name in GETTERS:
        yield _getter(at, places, name, fallbacks[f"get.{name}"])


def exported() -> Sequence[str]:
    """The functions that are called from outside."""
    return [*(f"method.{name}" for name in METHODS), *(f"get.{name}" for name in GETTERS)]


_Question = Callable[[Text, Places, str], str]
"""Writes the answer for a tensor's array; what it gives is a new reference, null for none."""


def _ask(text: Text, places: Places, question: _Question) -> None:
    array = text.make("call ptr @array_of(ptr %self)")
    text.need(text.make(f"icmp ne ptr {array}, null"))
    result = question(text, places, array)
    text.need(text.make(f"icmp ne ptr {result}, null"))
    text.put(f"ret ptr {result}")


def _getter(at: Layout, places: Places, name: str, fallback: int) -> str:
    text = Text(at)
    if name == "shape":  # traces follow it
        text.need(text.make("call i1 @quiet()"))
    _ask(text, places, GETTERS[name])
    text.label("miss")
    text.put("%one = alloca ptr")
    text.put("store ptr %self, ptr %one")
    called = f"ptr {pointer(fallback)}, ptr %one, i64 1, ptr null"
    text.put(f"ret ptr {text.call('PyObject_Vectorcall', 'ptr', called)}")
    return define(f'ptr @"get.{name}"(ptr %self, ptr %closure)', text)


def _method(at: Layout, places: Places, name: str, fallback: int) -> str:
    """A method without arguments, or, where there is `number`, with one."""
    text = Text(at)
    text.need(text.is_("%names", "null"))
    text.need(text.make("call i1 @quiet()"))
    if name in WITH_NUMBER:
        text.put(f"br i1 {text.is_('%n', '1', 'i64')}, label %one, label %other")
        text.label("one")
        _ask_with_number(text, WITH_NUMBER[name])
        text.label("other")
    text.need(text.is_("%n", "0", "i64"))
    _ask(text, places, METHODS[name])
    text.label("miss")
    text.lines += forwarded(at, fallback)
    return define(f'ptr @"method.{name}"(ptr %self, ptr %args, i64 %n, ptr %names)', text)


def _ask_with_number(text: Text, offset: int) -> None:
    """The entry of a row of 64-bit numbers, counted from the front or from the end."""
    array = text.make("call ptr @array_of(ptr %self)")
    text.need(text.make(f"icmp ne ptr {array}, null"))
    number = text.make("alloca i64")
    text.need(text.make(f"call i1 @whole(ptr {text.load('%args', 0)}, ptr {number})"))
    ndim = text.make(f"zext i32 {text.load(array, abi.NDIM, 'i32')} to i64")
    given = text.make(f"load i64, ptr {number}")
    from_end = text.make(f"add i64 {given}, {ndim}")
    place = text.make(f"select i1 {text.make(f'icmp slt i64 {given}, 0')}, i64 {from_end}, i64 {given}")
    text.need(text.make(f"icmp ult i64 {place}, {ndim}"))
    row = text.load(array, offset)
    value = text.make(f"load i64, ptr {text.make(f'getelementptr i64, ptr {row}, i64 {place}')}")
    text.put(f"ret ptr {text.call('PyLong_FromLongLong', 'ptr', f'i64 {value}')}")


def _size(text: Text, places: Places, array: str) -> str:
    return text.make(f"call ptr @row_of(ptr {array}, ptr {pointer(places.size_type)}, i64 {abi.DIMENSIONS}, i64 1)")


def _ndim(text: Text, places: Places, array: str) -> str:
    ndim = text.make(f"zext i32 {text.load(array, abi.NDIM, 'i32')} to i64")
    return text.call("PyLong_FromLongLong", "ptr", f"i64 {ndim}")


def _contiguous(text: Text, places: Places, array: str) -> str:
    """The tensor itself, if its array is in order."""
    flag = text.make(f"and i32 {text.load(array, abi.ARRAY_FLAGS, 'i32')}, {_C_CONTIGUOUS}")
    text.need(text.make(f"icmp ne i32 {flag}, 0"))
    text.put("call void @retain(ptr %self)")
    return "%self"


def _detached(text: Text, places: Places, array: str) -> str:
    """A tensor without history on the same array and storage."""
    storage = text.make(f"call ptr @storage_of(ptr %self, ptr {array})")
    text.need(text.make(f"icmp ne ptr {storage}, null"))
    text.put(f"call void @retain(ptr {array})")
    made = text.make(f"call ptr @wrap(ptr {array})")
    text.need(text.make(f"icmp ne ptr {made}, null"))
    none = text.load(made, places.tensor["_storage"])
    text.put(f"call void @retain(ptr {storage})")
    text.store(made, places.tensor["_storage"], storage)
    text.do("Py_DecRef", f"ptr {none}")
    return made


def _dtype(text: Text, places: Places, array: str) -> str:
    return _by_dtype(text, places, array, "ptr", {name: pointer(ours) for name, (_, ours, _) in places.dtypes.items()})


def _by_dtype(text: Text, places: Places, array: str, type: str, values: Mapping[str, str]) -> str:
    """The object that belongs to the dtype of an array, with one more reference."""
    dtype = text.load(array, abi.DTYPE)
    found: list[str] = []
    for name, value in values.items():
        text.put(f"br i1 {text.is_(dtype, pointer(places.dtypes[name][0]))}, label %is.{name}, label %not.{name}")
        text.label(f"is.{name}")
        text.put("br label %found")
        text.label(f"not.{name}")
        found.append(f"[{value}, %is.{name}]")
    text.put("br label %miss")
    text.label("found")
    result = text.make(f"phi {type} {', '.join(found)}")
    if type == "ptr":
        text.put(f"call void @retain(ptr {result})")
    return result


def _device(text: Text, places: Places, array: str) -> str:
    text.put(f"call void @retain(ptr {pointer(places.device)})")
    return pointer(places.device)


def _numel(text: Text, places: Places, array: str) -> str:
    return text.call("PyLong_FromLongLong", "ptr", f"i64 {text.make(f'call i64 @count_of(ptr {array})')}")


def _is_contiguous(text: Text, places: Places, array: str) -> str:
    flag = text.make(f"and i32 {text.load(array, abi.ARRAY_FLAGS, 'i32')}, {_C_CONTIGUOUS}")
    is_so = text.make(f"icmp ne i32 {flag}, 0")
    answer = text.make(f"select i1 {is_so}, ptr {pointer(text.at.true)}, ptr {pointer(text.at.false)}")
    text.put(f"call void @retain(ptr {answer})")
    return answer


def _stride(text: Text, places: Places, array: str) -> str:
    text.need(text.make(f"icmp ne i64 {text.make(f'call i64 @count_of(ptr {array})')}, 0"))
    sizes = {name: str(size) for name, (_, _, size) in places.dtypes.items()}
    itemsize = _by_dtype(text, places, array, "i64", sizes)
    return text.make(f"call ptr @row_of(ptr {array}, ptr null, i64 {abi.STRIDES}, i64 {itemsize})")


def _as_it_is(name: str) -> _Question:
    """The tensor itself where it has the dtype already."""

    def question(text: Text, places: Places, array: str) -> str:
        text.need(text.is_(text.load(array, abi.DTYPE), pointer(places.dtypes[name][0])))
        text.put("call void @retain(ptr %self)")
        return "%self"

    return question


GETTERS: Final[dict[str, _Question]] = {"shape": _size, "ndim": _ndim, "dtype": _dtype, "device": _device}
METHODS: Final[dict[str, _Question]] = {
    "size": _size, "dim": _ndim, "numel": _numel, "stride": _stride, "is_contiguous": _is_contiguous,
    "contiguous": _contiguous, "detach": _detached, "float": _as_it_is("float32"), "double": _as_it_is("float64"),
    "half": _as_it_is("float16"), "bfloat16": _as_it_is("bfloat16"), "long": _as_it_is("int64"),
    "int": _as_it_is("int32"), "bool": _as_it_is("bool"),
}  # fmt: skip
WITH_NUMBER: Final = {"size": abi.DIMENSIONS}
"""Methods that take the number of a dimension: where arrays keep the row that has the answer."""
