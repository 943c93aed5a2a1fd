"""The helpers of `engine.aten.values.hot_helpers`, as LLVM's text.

In: a `Layout`, and where the things lie that only these helpers read (`Places`).  Out: the text of a module with
`entry.NAME(self, args, n)` for each primitive, and the methods and attributes of tensors that `questions` has.
What an entry is not made for it hands to Python's definition, which is the one that says what has to be done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from engine.fuser import cpython_abi as abi
from engine.fuser.hot_helpers import questions
from engine.fuser.hot_helpers.helpers import ARRAY_BASE, Places, put, shared
from engine.fuser.prelude import helpers
from engine.fuser.writing import Layout, Text, define, pointer


def module_text(at: Layout, places: Places, fallbacks: Mapping[str, int]) -> str:
    """All of it; `fallbacks` are the Python functions by the names of helpers and methods."""
    parts = [*helpers(at), *shared(at, places)]
    for name, (count, write) in ENTRIES.items():
        parts.append(_entry(at, name, count, fallbacks[name], places, write))
    parts += questions.functions(at, places, fallbacks)
    return "\n\n".join(parts)


def exported() -> list[str]:
    """The functions that are called from outside."""
    return [*(f"entry.{name}" for name in ENTRIES), *questions.exported()]


_OWN_DATA: Final = 4
"""Flags of an array with memory of its own."""
_Write = Callable[[Text, Places], None]


def _entry(at: Layout, name: str, count: int, fallback: int, places: Places, write: _Write) -> str:
    text = Text(at)
    text.need(text.is_("%n", str(count), "i64"))
    for i in range(count):
        text.put(f"%a{i} = load ptr, ptr {text.place('%args', 8 * i)}")
    write(text, places)
    text.label("miss")
    called = f"ptr {pointer(fallback)}, ptr %args, i64 %n, ptr null"
    text.put(f"ret ptr {text.call('PyObject_Vectorcall', 'ptr', called)}")
    return define(f'ptr @"entry.{name}"(ptr %self, ptr %args, i64 %n)', text)


def _fresh(text: Text, places: Places) -> None:
    """A tensor of a new array."""
    text.need(text.is_(text.load("%a0", abi.TYPE_OFFSET), pointer(text.at.array)))
    text.put("call void @retain(ptr %a0)")
    made = text.make("call ptr @wrap(ptr %a0)")
    text.need(text.make(f"icmp ne ptr {made}, null"))
    text.put(f"ret ptr {made}")


def _wrapped(text: Text, places: Places) -> None:
    """A tensor of an array on a storage, or on none."""
    at = text.at
    text.need(text.is_(text.load("%a0", abi.TYPE_OFFSET), pointer(at.array)))
    is_storage = text.is_(text.load("%a1", abi.TYPE_OFFSET), pointer(at.storage_type))
    text.need(text.make(f"or i1 {is_storage}, {text.is_('%a1', pointer(at.none))}"))
    text.put("call void @retain(ptr %a0)")
    made = text.make("call ptr @wrap(ptr %a0)")
    text.need(text.make(f"icmp ne ptr {made}, null"))
    before = text.load(made, places.tensor["_storage"])
    put(text, made, places.tensor["_storage"], "%a1")
    text.do("Py_DecRef", f"ptr {before}")
    text.put(f"ret ptr {made}")


def _view(text: Text, places: Places) -> None:
    """A tensor on the same storage, of an array that shows memory of the other tensor's."""
    at = text.at
    text.need(text.is_(text.load("%a0", abi.TYPE_OFFSET), pointer(at.array)))
    array = text.make("call ptr @array_of(ptr %a1)")
    text.need(text.make(f"icmp ne ptr {array}, null"))
    text.need(text.make(f"icmp ne ptr {array}, %a0"))
    base = text.load("%a0", ARRAY_BASE)
    text.put(f"br i1 {text.is_(base, 'null')}, label %own, label %other")
    text.label("own")
    owns = text.make(f"and i32 {text.load('%a0', abi.ARRAY_FLAGS, 'i32')}, {_OWN_DATA}")
    text.need(text.make(f"icmp ne i32 {owns}, 0"))
    text.need(text.make(f"icmp ne ptr {text.load(array, ARRAY_BASE)}, %a0"))
    text.put("call void @retain(ptr %a0)")
    fresh = text.make("call ptr @wrap(ptr %a0)")
    text.need(text.make(f"icmp ne ptr {fresh}, null"))
    text.put(f"ret ptr {fresh}")
    text.label("other")
    shares = text.make(f"or i1 {text.is_(base, array)}, {text.is_(base, text.load(array, ARRAY_BASE))}")
    text.need(shares)
    storage = text.make(f"call ptr @storage_of(ptr %a1, ptr {array})")
    text.need(text.make(f"icmp ne ptr {storage}, null"))
    before = text.load("%a1", places.tensor["_base"])
    version = text.load(storage, places.storage["version"])
    text.need(text.make(f"icmp ne ptr {before}, null"))
    text.need(text.make(f"icmp ne ptr {version}, null"))
    made = text.call("PyType_GenericAlloc", "ptr", f"ptr {pointer(at.tensor)}, i64 0")
    text.need(text.make(f"icmp ne ptr {made}, null"), "failed")
    is_first = text.is_(before, pointer(at.none))
    slots = {
        "array": "%a0", "_storage": storage, "_seen": version, "_requires_grad": pointer(at.false),
        "_grad_fn": pointer(at.none), "output_nr": pointer(at.zero),
        "_base": text.make(f"select i1 {is_first}, ptr %a1, ptr {before}"),
    }  # fmt: skip
    for name, value in slots.items():
        put(text, made, places.tensor[name], value)
    text.put(f"ret ptr {made}")
    _failed(text)


def _attach(text: Text, places: Places) -> None:
    """Give a tensor a node of that plan, with these sources and what it keeps."""
    at = text.at
    array = text.make("call ptr @array_of(ptr %a0)")
    text.need(text.make(f"icmp ne ptr {array}, null"))
    form = text.make(f"call ptr @form_of(ptr {array})")
    text.need(text.make(f"icmp ne ptr {form}, null"))
    outputs = text.call("PyTuple_New", "ptr", "i64 1")
    text.need(text.make(f"icmp ne ptr {outputs}, null"), "no.outputs")
    text.make(f"call i32 {pointer(at.functions['PyTuple_SetItem'])}(ptr {outputs}, i64 0, ptr {form})")
    node = text.call("PyType_GenericAlloc", "ptr", f"ptr {pointer(places.node_type)}, i64 0")
    text.need(text.make(f"icmp ne ptr {node}, null"), "no.node")
    text.store(node, places.node["outputs"], outputs)
    number = text.call("PyIter_Next", "ptr", f"ptr {pointer(places.numbers)}")
    text.need(text.make(f"icmp ne ptr {number}, null"), "no.number")
    text.store(node, places.node["sequence"], number)
    for i, name in enumerate(("plan", "sources", "kept"), 1):
        put(text, node, places.node[name], f"%a{i}")
    for name in ("_edges", "tensor_hooks", "retained", "hooks", "prehooks"):
        put(text, node, places.node[name], pointer(at.none))
    text.put(f"call void @retain(ptr {pointer(at.true)})")
    for name, value in (("_grad_fn", node), ("_requires_grad", pointer(at.true))):
        before = text.load("%a0", places.tensor[name])
        text.store("%a0", places.tensor[name], value)
        text.do("Py_DecRef", f"ptr {before}")
    text.put("call void @retain(ptr %a0)")
    text.put("ret ptr %a0")
    for label, left in (("no.number", node), ("no.node", outputs), ("no.outputs", form)):
        text.label(label)
        text.do("Py_DecRef", f"ptr {left}")
        text.put("br label %failed")
    _failed(text)


def _as_strided(text: Text, places: Places) -> None:
    """An array of that shape and these steps that shows the memory of another one."""
    at = text.at
    text.need(text.is_(text.load("%a0", abi.TYPE_OFFSET), pointer(at.array)))
    for i in (1, 2):
        text.need(text.is_(text.load(f"%a{i}", abi.TYPE_OFFSET), pointer(places.tuple_type)))
        text.put(f"%row{i} = alloca i64, i64 {_MOST_DIMENSIONS}")
    count = text.load("%a1", _TUPLE_SIZE, "i64")
    text.need(text.is_(text.load("%a2", _TUPLE_SIZE, "i64"), count, "i64"))
    text.need(text.make(f"icmp ule i64 {count}, {_MOST_DIMENSIONS}"))
    for i in (1, 2):
        text.need(text.make(f"call i1 @numbers_of(ptr %a{i}, i64 {count}, ptr %row{i}, i1 {int(i == 1)})"))
    dtype = text.load("%a0", abi.DTYPE)
    flags = text.make(f"and i32 {text.load('%a0', abi.ARRAY_FLAGS, 'i32')}, {abi.WRITEABLE}")
    text.put(f"call void @retain(ptr {dtype})")  # PyArray_NewFromDescr takes the reference over
    made = text.make(
        f"call ptr {pointer(at.array_new)}(ptr {pointer(at.array)}, ptr {dtype}, "
        f"i32 {text.make(f'trunc i64 {count} to i32')}, ptr %row1, ptr %row2, ptr {text.load('%a0', abi.DATA)}, "
        f"i32 {flags}, ptr null)"
    )
    text.need(text.make(f"icmp ne ptr {made}, null"), "failed")
    text.put("call void @retain(ptr %a0)")
    is_set = text.make(f"call i32 {pointer(places.set_base)}(ptr {made}, ptr %a0)")
    text.need(text.is_(is_set, "0", "i32"), "no.base")
    text.put(f"ret ptr {made}")
    text.label("no.base")
    text.do("Py_DecRef", f"ptr {made}")
    text.put("br label %failed")
    _failed(text)


_MOST_DIMENSIONS: Final = 32
_TUPLE_SIZE: Final = 16
"""The offset of a tuple's length."""


def _form(text: Text, places: Places) -> None:
    array = text.make("call ptr @array_of(ptr %a0)")
    text.need(text.make(f"icmp ne ptr {array}, null"))
    form = text.make(f"call ptr @form_of(ptr {array})")
    text.need(text.make(f"icmp ne ptr {form}, null"))
    text.put(f"ret ptr {form}")


def _saved(text: Text, places: Places) -> None:
    """A `Saved` of a tensor, with the version of its memory (0 if it has no storage yet)."""
    at = text.at
    array = text.make("call ptr @array_of(ptr %a0)")
    text.need(text.make(f"icmp ne ptr {array}, null"))
    storage = text.load("%a0", at.slots["_storage"])
    text.need(text.make(f"icmp ne ptr {storage}, null"))
    text.put(f"br i1 {text.is_(storage, pointer(at.none))}, label %no.storage, label %storage")
    text.label("storage")
    text.need(text.is_(text.load(storage, abi.TYPE_OFFSET), pointer(at.storage_type)))
    known = text.load(storage, places.storage["version"])
    text.need(text.make(f"icmp ne ptr {known}, null"))
    text.put("br label %known")
    text.label("no.storage")
    text.put("br label %known")
    text.label("known")
    # the check before `known` begins a block of its own
    version = text.make(f"phi ptr [{known}, %go{text.count}], [{pointer(at.zero)}, %no.storage]")
    _keep(text, places, {"held": "%a0", "version": version, "output": pointer(places.minus_one)})


def _saved_result(text: Text, places: Places) -> None:
    """A `Saved` of the array and the storage of a node's own result."""
    array = text.make("call ptr @array_of(ptr %a0)")
    text.need(text.make(f"icmp ne ptr {array}, null"))
    storage = text.make(f"call ptr @storage_of(ptr %a0, ptr {array})")
    text.need(text.make(f"icmp ne ptr {storage}, null"))
    version = text.load(storage, places.storage["version"])
    text.need(text.make(f"icmp ne ptr {version}, null"))
    kept = {"held": array, "storage": storage, "version": version, "output": pointer(text.at.zero)}
    _keep(text, places, kept)


def _keep(text: Text, places: Places, slots: Mapping[str, str]) -> None:
    made = text.call("PyType_GenericAlloc", "ptr", f"ptr {pointer(places.saved_type)}, i64 0")
    text.need(text.make(f"icmp ne ptr {made}, null"), "failed")
    for name, value in slots.items():
        put(text, made, places.saved[name], value)
    text.put(f"ret ptr {made}")
    _failed(text)


def _failed(text: Text) -> None:
    text.label("failed")
    text.do("PyErr_Clear", "")
    text.put("br label %miss")


ENTRIES: Final[dict[str, tuple[int, _Write]]] = {
    "fresh": (1, _fresh), "wrapped": (2, _wrapped), "view": (2, _view), "attach": (4, _attach), "form_of": (1, _form),
    "saved": (1, _saved), "saved_result": (1, _saved_result), "as_strided": (3, _as_strided),
}  # fmt: skip
"""Number of arguments of each hot helper, and the writer of its text over `%a0` and so on."""
