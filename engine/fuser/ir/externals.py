"""External functions that kernels call, by their symbols.

In: nothing.  Out: `EXTERNALS`, the types of their operands and results, as C has them.
"""

from __future__ import annotations

from typing import Final

from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class External:
    """`result`: "" where there is none.  `more`: the type of operands that may follow; "" where there are none."""

    operands: tuple[str, ...]
    result: str = ""
    more: str = ""

    def types(self, count: int) -> tuple[str, ...]:
        """The types of so many operands."""
        return self.operands + (self.more,) * (count - len(self.operands) if self.more else 0)


INVOKE: Final = "invoke"
"""A call of the function at an address, which takes whole numbers and addresses, and gives one of these."""
ADDRESS_OF: Final = "address_of"
"""The address itself, as a whole number for those who keep it."""
EXTERNALS: Final[dict[str, External]] = {
    INVOKE: External(("ptr",), "i64", more="ptr"),
    ADDRESS_OF: External(("ptr",), "ptr"),
    "aligned_alloc": External(("i64", "i64"), "ptr"),
    "malloc": External(("i64",), "ptr"),
    "realloc": External(("ptr", "i64"), "ptr"),
    "free": External(("ptr",)),
    "memcpy": External(("ptr", "ptr", "i64"), "ptr"),
    "memmove": External(("ptr", "ptr", "i64"), "ptr"),
    "memset": External(("ptr", "i32", "i64"), "ptr"),
    **{
        name: External(("f64",), "f64")
        for name in "exp expm1 log log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split()
    },
    **{name: External(("f64", "f64"), "f64") for name in "pow fmod remainder atan2".split()},
    "PyEval_SaveThread": External((), "ptr"),
    "PyEval_RestoreThread": External(("ptr",)),
    "PyGILState_Ensure": External((), "i32"),
    "PyGILState_Release": External(("i32",)),
    "tsrepl_poll": External((), "i64"),
    "tsrepl_watch": External(("i64",), "i64"),
    "PyErr_CheckSignals": External((), "i32"),
    "PyErr_Occurred": External((), "ptr"),
    "PyErr_Clear": External(()),
    "Py_IncRef": External(("ptr",)),
    "Py_DecRef": External(("ptr",)),
    "PyLong_AsLongLong": External(("ptr",), "i64"),
    "PyLong_FromLongLong": External(("i64",), "ptr"),
    "PyFloat_AsDouble": External(("ptr",), "f64"),
    "PyFloat_FromDouble": External(("f64",), "ptr"),
    "PyObject_IsTrue": External(("ptr",), "i32"),
    "PyBool_FromLong": External(("i64",), "ptr"),
    "PyLong_AsLongLongAndOverflow": External(("ptr", "ptr"), "i64"),
    "PyObject_GetAttr": External(("ptr", "ptr"), "ptr"),
    "PyObject_SetAttr": External(("ptr", "ptr", "ptr"), "i32"),
    "PyObject_Vectorcall": External(("ptr", "ptr", "i64", "ptr"), "ptr"),
    "PyType_GenericAlloc": External(("ptr", "i64"), "ptr"),
    "PyTraceMalloc_Track": External(("i32", "ptr", "i64"), "i32"),
    "PyTraceMalloc_Untrack": External(("i32", "ptr"), "i32"),
    "PySet_Size": External(("ptr",), "i64"),
    "PyIter_Next": External(("ptr",), "ptr"),
    "PySequence_List": External(("ptr",), "ptr"),
    "PyTuple_New": External(("i64",), "ptr"),
    "PyTuple_Size": External(("ptr",), "i64"),
    "PyTuple_GetItem": External(("ptr", "i64"), "ptr"),
    "PyTuple_SetItem": External(("ptr", "i64", "ptr"), "i32"),
    "PyList_New": External(("i64",), "ptr"),
    "PyList_Size": External(("ptr",), "i64"),
    "PyList_GetItem": External(("ptr", "i64"), "ptr"),
    "PyList_SetItem": External(("ptr", "i64", "ptr"), "i32"),
    "PyList_SetSlice": External(("ptr", "i64", "i64", "ptr"), "i32"),
    "PyDict_New": External((), "ptr"),
    "PyDict_Size": External(("ptr",), "i64"),
    "PyDict_Next": External(("ptr", "ptr", "ptr", "ptr"), "i32"),
    "PyDict_SetItem": External(("ptr", "ptr", "ptr"), "i32"),
    "PyDict_Clear": External(("ptr",)),
}
"""Functions of the C library, of its mathematics, and of Python's."""
