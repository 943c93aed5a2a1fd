"""Modules of LLVM that have every kind of relocation that images know, and what becomes of them.

In: a triple, as LLVM names systems.  Out: objects for it, images, and functions of images that run here.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import llvmlite.binding as llvm

from engine.fuser.images import image, linking, mapping
from engine.fuser.images.image import Image

LINUX, MAC = "{}-unknown-linux-gnu", "{}-apple-macosx"
TRIPLES = (LINUX.format("x86_64"), LINUX.format("aarch64"), MAC.format("x86_64"), MAC.format("arm64"))
KEY = "format: a test\n"

PROGRAM = """
@table = constant [3 x ptr] [ptr @whole, ptr @tripled, ptr @data]
@data = global [4 x i64] [i64 1, i64 2, i64 3, i64 4]
@room = internal global [100 x i64] zeroinitializer
@given = external global i64
@eight = private constant [8 x float]
    [float 1., float 2., float 3., float 4., float 5., float 6., float 7., float 8.]
declare i64 @outside(i64)

define i64 @whole(i64 %x) {
  %a = load i64, ptr @given
  %b = call i64 @outside(i64 %x)
  %c = add i64 %a, %b
  %p = getelementptr [100 x i64], ptr @room, i64 0, i64 %x
  store i64 %c, ptr %p
  %d = call i64 @tripled(i64 %c)
  ret i64 %d
}
define i64 @tripled(i64 %x) noinline {
  %p = getelementptr [4 x i64], ptr @data, i64 0, i64 2
  %v = load i64, ptr %p
  %r = mul i64 %v, %x
  ret i64 %r
}
define i64 @chosen(i64 %x) {
  switch i64 %x, label %none [ i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d i64 4, label %e ]
a:
  %r1 = call i64 @outside(i64 7)
  ret i64 %r1
b:
  %r2 = call i64 @tripled(i64 1)
  ret i64 %r2
c:
  ret i64 23
d:
  %r3 = call i64 @whole(i64 1)
  ret i64 %r3
e:
  ret i64 99
none:
  ret i64 -1
}
define void @raised(ptr %x) {
  %a = load <8 x float>, ptr %x
  %k = load <8 x float>, ptr @eight
  %s = fadd <8 x float> %a, %k
  store <8 x float> %s, ptr %x
  ret void
}
define i64 @first() {
  %v = load volatile i64, ptr @data
  ret i64 %v
}
define ptr @where() {
  ret ptr @table
}
"""
"""Uses `given` and `outside` of others; `whole(x)` is `3 * (given + outside(x))`."""
SECOND = (
    "declare i64 @tripled(i64)\ndefine i64 @of_first(i64 %x) {\n  %r = call i64 @tripled(i64 %x)\n  ret i64 %r\n}\n"
)
"""A module that calls a function of the first."""


def object_of(text: str, triple: str = "") -> bytes:
    """The object of a module, for this machine or another one."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    chosen = triple or llvm.get_default_triple()
    machine = llvm.Target.from_triple(chosen).create_target_machine(reloc="pic", codemodel="small", opt=3)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = chosen
    found: bytes = machine.emit_object(module)
    return found


def image_of(*texts: str, triple: str = "", key: str = KEY) -> Image:
    """The image of these modules."""
    return linking.linked([object_of(text, triple) for text in texts], key)


def loaded(made: Image, needed: Mapping[str, int]) -> mapping.Mapped:
    """An image in memory, by way of a file."""
    with tempfile.TemporaryFile() as file:
        file.write(image.to_bytes(made))
        file.flush()
        found = mapping.mapped(file.fileno(), made.key.__eq__)
    found.settle(found.needed(needed.get))
    return found


def function(address: int, result: Any = ctypes.c_int64, *given: Any) -> Callable[..., Any]:
    """The native function at an address."""
    return ctypes.CFUNCTYPE(result, *(given or (ctypes.c_int64,)))(address)


class Surroundings:
    """The symbols that `PROGRAM` needs: `given` is 1000, and `outside(x)` is `x + 1`."""

    def __init__(self) -> None:
        self._given = ctypes.c_int64(1000)
        self._outside = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x + 1)

    @property
    def symbols(self) -> dict[str, int]:
        outside = ctypes.cast(self._outside, ctypes.c_void_p).value
        assert outside is not None
        return {"given": ctypes.addressof(self._given), "outside": outside}


def runs_here(triple: str) -> bool:
    """True if this processor runs the code of that system's objects."""
    return triple.partition("-")[0].replace("arm64", "aarch64") == os.uname().machine.replace("arm64", "aarch64")
