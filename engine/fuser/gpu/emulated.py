"""Launches on the host: the code for the GPU, with a coroutine for each thread of a block.

In: a `Prepared` kernel, arrays of numpy and numbers, by name.  Out: what the launches write to the arrays.

The same LLVM IR is compiled for this processor with other functions in place of a GPU's (`_RUNTIME`): the numbers of a
thread are variables, a barrier goes back to the scheduler, which has all threads of the block come to it, and a shuffle
is a place for each thread's word between two barriers.  Threads that come to different barriers raise `Diverged`.

Note [Threads as coroutines]
The C library's contexts (`makecontext`, `swapcontext`) keep each thread's stack; the scheduler is a loop in Python.
Blocks run one after the other on the same stacks.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np

from engine.fuser.backend import machine
from engine.fuser.backend.llvm_numbers import ir
from engine.fuser.gpu import to_nvptx
from engine.fuser.gpu.launches import Launch
from engine.fuser.gpu.prepared import Prepared, Step
from engine.fuser.gpu.shapes import MOST, Shape
from engine.fuser.ir.kernel import Buffer
from engine.fuser.ir.numeric_functions import NUMPY
from engine.lang.records import dataclass

Array = np.ndarray[Any, Any]
_STACK: Final = 64 << 10
_CONTEXT: Final = 8 << 10
"""Room for a context of the C library, on any processor."""
_LINK, _BASE, _SIZE = 8, 16, 32
"""Where a context has the one that follows it, its stack, and the stack's size."""
_UNWRITTEN: Final = 0x7F
"""The bytes of memory that nothing was written to: large numbers."""


class Diverged(Exception):
    """Threads of a block came to different barriers."""


def run(
    prepared: Prepared, arrays: Mapping[str, Array], numbers: Mapping[str, Any], *, backwards: bool = False
) -> None:
    """Run all launches, in order; `backwards`: blocks, and threads between barriers, begin with the last."""
    held = {b.name: _memory(prepared.scratch[b.name], NUMPY[b.type]) for b in prepared.launches.scratch}
    for step in prepared.steps:
        _run(step, {**held, **arrays}, numbers, backwards)


def _memory(count: int, dtype: Any) -> Array:
    found = np.empty(max(count, 1), dtype)
    found.view(np.uint8)[:] = 1 if found.dtype == np.bool_ else _UNWRITTEN
    return found


def _run(step: Step, arrays: Mapping[str, Array], numbers: Mapping[str, Any], backwards: bool) -> None:
    room = _memory(step.room, np.uint8)
    given = [arrays[each.name] if isinstance(each, Buffer) else numbers[each.name] for each in step.launch.parameters]
    run_step(step, np.array([_slot(each) for each in (*given, room)], np.int64), backwards=backwards)


def run_step(step: Step, slots: Array, *, backwards: bool = False) -> None:
    """One launch with the 8 bytes of each of its arguments."""
    code = _compiled(step.launch, step.shape)
    code.set("arguments", slots.ctypes.data)
    code.set("nctaid", step.blocks)
    order = slice(None, None, -1 if backwards else 1)
    for block in range(step.blocks)[order]:
        code.set("ctaid", block)
        _run_block(code, range(step.shape.threads)[order])


def _slot(value: Any) -> int:
    """The 8 bytes of an argument, as a whole number."""
    if isinstance(value, np.ndarray):
        return value.ctypes.data
    return int(np.float64(value).view(np.int64)) if isinstance(value, np.floating) else int(value)


# ------------------------------------------------------------------ threads


@dataclass(frozen=True, slots=True)
class _Code:
    """`entry` runs a thread, as the variables say which."""

    entry: int
    variables: Mapping[str, int]

    def set(self, name: str, value: int) -> None:
        kind = ctypes.c_int64 if name in _POINTERS else ctypes.c_int32
        kind.from_address(self.variables[name]).value = value

    def get(self, name: str) -> int:
        return ctypes.c_int32.from_address(self.variables[name]).value


@dataclass(frozen=True, slots=True)
class _Contexts:
    """Contexts of threads and of the scheduler, and the stacks."""

    memory: Any = field(default_factory=lambda: ctypes.create_string_buffer((MOST + 1) * _CONTEXT))
    stacks: Any = field(default_factory=lambda: ctypes.create_string_buffer(MOST * _STACK))

    @property
    def scheduler(self) -> int:
        return ctypes.addressof(self.memory)

    def thread(self, number: int) -> int:
        return self.scheduler + (number + 1) * _CONTEXT

    def begin(self, number: int, entry: int) -> None:
        """A context that runs the entry, and then the scheduler."""
        at = self.thread(number)
        _library().getcontext(at)
        for place, value in (
            (_LINK, self.scheduler), (_BASE, ctypes.addressof(self.stacks) + number * _STACK), (_SIZE, _STACK),
        ):  # fmt: skip
            ctypes.c_uint64.from_address(at + place).value = value
        _library().makecontext(at, entry, 0)


@cache
def _contexts() -> _Contexts:
    return _Contexts()


@cache
def _library() -> Any:
    found = ctypes.PyDLL(None)
    found.getcontext.argtypes = [ctypes.c_void_p]
    found.makecontext.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    found.swapcontext.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    return found


def is_possible() -> bool:
    """True if the C library has contexts."""
    return all(hasattr(ctypes.PyDLL(None), name) for name in ("getcontext", "makecontext", "swapcontext"))


def _run_block(code: _Code, threads: range) -> None:
    """The threads of a block, in that order from barrier to barrier."""
    contexts, swap = _contexts(), _library().swapcontext
    for number in threads:
        contexts.begin(number, code.entry)
    code.set("scheduler", contexts.scheduler)
    is_done = False
    while not is_done:
        reached = set()
        for number in threads:
            code.set("tid", number)
            code.set("thread", contexts.thread(number))
            code.set("waits", 0)
            swap(contexts.scheduler, contexts.thread(number))
            reached.add(code.get("waits"))
        if len(reached) > 1:
            raise Diverged(f"some threads came to barrier {max(reached)}, others to {min(reached)}")
        is_done = reached == {0}


# ------------------------------------------------------------------ code


@cache
def _compiled(launch: Launch, shape: Shape) -> _Code:
    made = to_nvptx.module([(launch, shape)])
    _add_entry(made, made.globals[launch.name])
    symbols = [f"emulated.{name}" for name in (*_POINTERS, *_NUMBERS)]
    found = machine.compiled(_for_host(str(made)), ["entry", *symbols])
    return _Code(found["entry"], {name.removeprefix("emulated."): found[name] for name in symbols})


def _add_entry(made: Any, function: Any) -> None:
    """`void entry()`, which calls the function with its arguments, each in 8 bytes."""
    lib = ir()
    pointer = lib.PointerType()
    arguments = lib.GlobalVariable(made, pointer, "emulated.arguments")
    entry = lib.Function(made, lib.FunctionType(lib.VoidType(), []), "entry")
    b = lib.IRBuilder(entry.append_basic_block("entry"))
    slots = b.load(arguments, typ=pointer)
    places = (b.gep(slots, [lib.IntType(64)(i)], source_etype=lib.IntType(64)) for i in range(len(function.args)))
    b.call(function, [b.load(place, typ=each.type) for place, each in zip(places, function.args, strict=True)])
    b.ret_void()


def _for_host(text: str) -> str:
    """The module's text with what is a GPU's replaced."""
    text = text.replace(to_nvptx.TRIPLE, import_module("llvmlite.binding").get_default_triple())
    text = re.sub(r'^declare .*@"llvm\.nvvm\..*$|^@"emulated\..*$|^!nvvm\.annotations.*$', "", text, flags=re.M)
    text = text.replace("llvm.nvvm.", "emulated.").replace(" ptx_kernel ", " ")
    room = rf'^(@"{to_nvptx.SHARED}" = )external (addrspace\(3\) global )\[0 x i8\]'
    return re.sub(room, rf"\g<1>\g<2>[{256 << 10} x i8] zeroinitializer", text, flags=re.M) + _RUNTIME


_POINTERS: Final = ("arguments", "thread", "scheduler")
_NUMBERS: Final = ("tid", "ctaid", "nctaid", "waits")
_READERS: Final[Sequence[str]] = [
    f"""define i32 @"emulated.read.ptx.sreg.{name}.x"() {{
  %found = load i32, ptr @"emulated.{name}"
  ret i32 %found
}}"""
    for name in ("tid", "ctaid", "nctaid")
]
_RUNTIME: Final = "\n".join(
    [
        "",
        *(f'@"emulated.{name}" = global ptr null' for name in _POINTERS),
        *(f'@"emulated.{name}" = global i32 0' for name in _NUMBERS),
        f'@"emulated.words" = global [{MOST} x i32] zeroinitializer',
        "declare i32 @swapcontext(ptr, ptr)",
        *_READERS,
        """
define internal void @"emulated.wait"(i32 %kind) {
  store i32 %kind, ptr @"emulated.waits"
  %own = load ptr, ptr @"emulated.thread"
  %scheduler = load ptr, ptr @"emulated.scheduler"
  %done = call i32 @swapcontext(ptr %own, ptr %scheduler)
  ret void
}

define void @"emulated.barrier0"() {
  call void @"emulated.wait"(i32 1)
  ret void
}

define void @"emulated.bar.warp.sync"(i32 %mask) {
  call void @"emulated.wait"(i32 2)
  ret void
}

define i32 @"emulated.shfl.sync.bfly.i32"(i32 %mask, i32 %word, i32 %distance, i32 %clamp) {
  %tid = load i32, ptr @"emulated.tid"
  %own = getelementptr i32, ptr @"emulated.words", i32 %tid
  store i32 %word, ptr %own
  call void @"emulated.wait"(i32 3)
  %other = xor i32 %tid, %distance
  %place = getelementptr i32, ptr @"emulated.words", i32 %other
  %found = load i32, ptr %place
  call void @"emulated.wait"(i32 3)
  ret i32 %found
}
""",
    ]
)
"""Functions of the host in place of a GPU's."""
