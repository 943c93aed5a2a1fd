"""The parts of the library, in the order in which they are made.

In: the operator table.  Out: `PARTS`.  Each is compiled, put into an image and published by itself, so that what
programs need first is there first: what kernels call, the stubs, then functions for some types of elements, with a line
for each operator that has some (`forms`).  Symbols that a module defines and does not keep to itself (`internal`) are
what the library offers under their names; those it only declares are of other parts, of this process
(`backend/symbols.py`), or of C libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.fuser.backend import scratch, threads, to_llvm
from engine.fuser.backend.llvm_numbers import ir
from engine.fuser.groups import gemm, recurrent
from engine.fuser.ir.kernel import Kernel
from engine.fuser.library import calls
from engine.fuser.library.along import along_of
from engine.fuser.library.forms import LINES, Form, line
from engine.fuser.library.looped import looped_of
from engine.fuser.library.moving import moves_of
from engine.fuser.library.rows import rows_of
from engine.fuser.library.shaped import shaped_of
from engine.fuser.library.viewing import forms_of
from engine.fuser.library.words import COMPLEX
from engine.fuser.stubs import methods
from engine.lang.records import dataclass

TOGETHER: Final = 60
"""Row functions in a module: LLVM takes longer for each, the fewer there are."""


@dataclass(frozen=True, slots=True)
class Part:
    """A name of small letters, digits and `_`, and the LLVM texts of its modules, made one by one.

    `interleaved`: see `machine.relocatable`.
    """

    name: str
    modules: Callable[[], Iterable[str]]
    interleaved: bool = False


def _calls() -> Iterator[str]:
    """The stubs, and the functions that kernels call: threads of parallel loops, memory for values in between."""
    for program in (threads.program(), scratch.program(), methods.program()):
        yield str(program.write())
    made = to_llvm.module([calls.stubs()])
    for name in calls.EXPORTED:
        made.globals[name].linkage = "external"
    yield str(made)
    forms = {op.qualified_name: [*forms_of(op), *moves_of(op)] for op in table.entries()}
    lines = (line(name, each) for name, each in forms.items() if each)
    yield str(_text(f"{LINES}calls", "\n" + "".join(lines)))


def _layers() -> Iterator[str]:
    """Recurrent layers, which operators call with arrays of their own."""
    for each in recurrent.ahead():
        yield str(to_llvm.module([each]))


def _tiles() -> Iterator[str]:
    """The functions that products call for each tile, in kernels of programs as well."""
    yield str(to_llvm.module(gemm.ahead()))


Functions = Callable[[Op, Sequence[str]], tuple[list[Form], dict[str, Kernel]]]


def _functions(name: str, functions_of: Functions, types: Sequence[str]) -> Iterator[str]:
    """Functions of all operators for these types, each once, and the lines."""
    kernels, lines = dict[str, Kernel](), ["\n"]
    for op in table.entries():
        forms, found = functions_of(op, types)
        kernels |= found
        if forms:
            lines.append(line(op.qualified_name, forms))
    every = [*kernels.values()]
    for start in range(0, len(every), TOGETHER):
        yield str(to_llvm.module(every[start : start + TOGETHER]))
    yield str(_text(f"{LINES}{name}", "".join(lines)))


def _text(symbol: str, text: str) -> Any:
    """A module that holds a text."""
    lib, data = ir(), bytearray(text.encode() + b"\0")
    made = to_llvm.module([])
    held = lib.GlobalVariable(made, lib.ArrayType(lib.IntType(8), len(data)), symbol)
    held.global_constant, held.initializer = True, lib.Constant(held.value_type, data)
    return made


def _part(name: str, functions_of: Functions, *types: str) -> Part:
    return Part(name, partial(_functions, name, functions_of, types), interleaved=functions_of is along_of)


PARTS: Final = (
    Part("calls", _calls),
    _part("float", rows_of, "f32"),
    _part("float_along", along_of, "f32"),
    _part("float_shaped", shaped_of, "f32"),
    Part("tiles", _tiles),
    _part("loops", looped_of, "f32", "f64", "i64", "bool"),
    _part("whole", rows_of, "i64", "bool"),
    Part("float_layers", _layers),
    _part("double", rows_of, "f64"),
    _part("more_along", along_of, "f64", "i64", "bool", "bf16"),
    _part("double_shaped", shaped_of, "f64"),
    _part("more_loops", looped_of, "i32", "u8", "f16", "bf16", "i16", "i8"),
    _part("more", rows_of, "i32", "u8", "f16", "bf16", "i16", "i8"),
    _part("complex", rows_of, *COMPLEX),
    _part("complex_along", along_of, *COMPLEX),
    _part("complex_shaped", shaped_of, *COMPLEX),
)
