"""The parts of the library, in the order in which they are made.

In: the operator table.  Out: `PARTS`; each says in LLVM's text what it consists of: row functions, for some types of
elements, and a line for each operator that has some (`forms`).  The first part has the stubs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.fuser.backend import to_llvm
from engine.fuser.backend.llvm_numbers import ir
from engine.fuser.ir.kernel import Kernel
from engine.fuser.library import calls
from engine.fuser.library.along import along_of
from engine.fuser.library.forms import Form, line
from engine.fuser.library.rows import rows_of
from engine.lang.records import dataclass

Modules = Callable[[], Iterator[Any]]
LINES: Final = "lines"
"""The symbol of the lines of a part, which begin with one that is empty and end with a zero."""
TOGETHER: Final = 60
"""Row functions in a module: LLVM takes longer for each, the fewer there are."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the library, which is published by itself; `modules` are `llvmlite.ir` modules."""

    name: str
    modules: Modules


def _stubs() -> Iterator[Any]:
    made = to_llvm.module([calls.stubs()])
    for name in calls.EXPORTED:
        made.globals[name].linkage = "external"
    yield made


Functions = Callable[[Op, Sequence[str]], tuple[list[Form], dict[str, Kernel]]]


def _functions(functions_of: Functions, types: Sequence[str]) -> Iterator[Any]:
    """Functions of all operators for these types, each once, and the lines."""
    kernels, lines = dict[str, Kernel](), ["\n"]
    for op in table.entries():
        forms, found = functions_of(op, types)
        kernels |= found
        if forms:
            lines.append(line(op.qualified_name, forms))
    every = [*kernels.values()]
    for start in range(0, len(every), TOGETHER):
        yield to_llvm.module(every[start : start + TOGETHER])
    yield _text("".join(lines))


def _text(text: str) -> Any:
    """A module that holds a text."""
    lib, data = ir(), bytearray(text.encode() + b"\0")
    made = to_llvm.module([])
    held = lib.GlobalVariable(made, lib.ArrayType(lib.IntType(8), len(data)), LINES)
    held.global_constant, held.initializer = True, lib.Constant(held.value_type, data)
    return made


PARTS: Final = (
    Part("calls", _stubs),
    Part("float", partial(_functions, rows_of, ("f32",))),
    Part("along", partial(_functions, along_of, ("f32",))),
    Part("whole", partial(_functions, rows_of, ("i64", "bool"))),
    Part("double", partial(_functions, rows_of, ("f64",))),
    Part("other", partial(_functions, rows_of, ("i32", "u8", "f16", "bf16", "i16", "i8"))),
    Part("along, others", partial(_functions, along_of, ("f64", "i64", "bool", "bf16"))),
)
