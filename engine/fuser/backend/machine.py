"""LLVM's text to machine code, with llvmlite, which is imported when something is compiled.

In: the text of a module, and the names of the functions that are wanted.  Out: their addresses, valid for as long as
the process lives, or, of `loaded`, as long as somebody holds what it returns.  Raises `MachineError` where llvmlite is
missing or LLVM refuses the text.  What was compiled is linked into a flat image, which is kept on disk; a process that
finds it there loads it without LLVM (`code.py`).
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

import numpy as np

from engine.fuser.backend import code, kernel_cache, target, tiering, to_llvm, worker
from engine.fuser.backend.code import Loaded as Loaded
from engine.fuser.backend.cpython_abi import retain
from engine.fuser.backend.symbols import LIBRARY
from engine.fuser.backend.symbols import MachineError as MachineError
from engine.fuser.images import image, linking
from engine.fuser.images.objects import ImageError
from engine.fuser.ir.kernel import Buffer, Kernel
from engine.fuser.ir.kernel_verifier import KernelError
from engine.lang.errors import ArgumentError
from engine.lang.locks import is_taken, lock
from engine.lang.records import dataclass

_lock: Final = lock()


def compiled(text: str, names: Iterable[str]) -> dict[str, int]:
    """The addresses of these functions of a module, which is not kept on disk; raises MachineError."""
    found = code.placed(_image_of(text))
    retain(found)  # for good
    return {name: found.addresses[name] for name in names}


@dataclass(frozen=True, slots=True)
class Program:
    """A module of LLVM that need not be written where its code is known: `text` says all that it is made of.

    `write` makes the `llvmlite.ir` module; `names` are the functions that are wanted.
    """

    text: str
    write: Callable[[], Any]
    names: tuple[str, ...]


def program(kernel: Kernel) -> Program:
    """The program that is this kernel alone."""
    return Program(repr(kernel), lambda: to_llvm.module([kernel], ahead=LIBRARY.find), (kernel.name,))


@dataclass(slots=True)
class Code:
    """Machine code of a program: addresses by name, valid for as long as the process lives, and LLVM's text of it."""

    addresses: Mapping[str, int]
    _program: Program

    @property
    def llvm_before(self) -> str:
        """The text that is optimized, which is written anew."""
        return str(self._program.write())

    @property
    def llvm_after(self) -> str:
        """The text once it is optimized, which is done anew; raises MachineError."""
        return optimized_text(self.llvm_before)

    @property
    def assembly(self) -> str:
        """The text of the machine code, likewise."""
        return assembly_text(self.llvm_before)


def optimized_text(text: str) -> str:
    """LLVM's text of a module, optimized as programs are; raises MachineError."""
    return _again(text, lambda machine, module: str(module))


def assembly_text(text: str, processor: target.Target | None = None) -> str:
    """The machine code of a module as text, likewise; for another processor if one is given, of any kind."""
    return _again(text, lambda machine, module: str(machine.emit_assembly(module)), processor)


def _again(text: str, show: Callable[[Any, Any], str], processor: target.Target | None = None) -> str:
    with llvm_binding(len(text)) as llvm:
        machine = _target_machine(llvm, 3, processor)
        return show(machine, _optimized(llvm, machine, text))


def is_busy() -> bool:
    """True if a thread is at work with LLVM, which others would have to wait for."""
    return is_taken(_lock)


_LIBRARY: Final = 256 << 20
"""Bytes of addresses that LLVM's library takes."""
_WORK: Final = 32 << 20
_WORK_PER_CHARACTER: Final = 400
"""Bytes that LLVM may need to compile a module of no text, and for each character; it takes a fifth of that."""


@contextmanager
def llvm_binding(size: int = 0) -> Iterator[Any]:
    """llvmlite's binding, for one thread at a time and modules of so many characters; its errors become MachineError.

    LLVM ends the process where it finds no memory, so it is not asked where there is little.
    """
    with _lock:
        try:
            known = "llvmlite.binding" in sys.modules
            mmap.mmap(-1, _WORK + size * _WORK_PER_CHARACTER + (0 if known else _LIBRARY)).close()
            yield import_module("llvmlite.binding")
        except ArgumentError:  # of a target that this processor cannot be
            raise
        except MemoryError as error:
            raise MachineError("no machine code: there is no memory for that") from error
        except (ImportError, AttributeError, OSError, RuntimeError) as error:
            raise MachineError(f"no machine code: {error}") from error


def compile_program(program: Program) -> Code:
    """The program's code, from disk if it was compiled before; raises MachineError."""
    return _for_good(program, loaded(program))


def stored(program: Program) -> Code | None:
    """The program's code where it is on disk, which takes about a millisecond; raises MachineError."""
    found = code.known(key_of(program))
    return None if found is None else _for_good(program, found)


def loaded(program: Program) -> Loaded:
    """The program's code for those who hold it, from disk if it was compiled before; raises MachineError."""
    key = key_of(program)
    return code.known(key) or code.loaded(key, _compile(program))


def key_of(program: Program) -> str:
    """The key of the program's code on disk."""
    return code.key_of(program.text)


def _for_good(program: Program, found: Loaded) -> Code:
    retain(found)
    return Code(found.addresses, program)


def _compile(program: Program) -> bytes:
    """The image of the program, which is kept on disk."""
    try:
        text = str(program.write())
    except KernelError as error:
        tiering.note_failure(error)
        raise MachineError(f"no machine code: {error}") from error
    except ImportError as error:
        raise MachineError(f"no machine code: {error}") from error
    if " half" in text and not target.current().converts_halves:
        raise MachineError("this processor has no half-precision instructions")
    key = key_of(program)
    if worker.does(worker.COMPILE, key, text) and (data := kernel_cache.load(key)) is not None:
        return data
    return compile_for(key, text)


def compile_for(key: str, text: str) -> bytes:
    """The image of a module's text, which is kept on disk under the key; raises MachineError."""
    data = _image_of(text)
    kernel_cache.store(key, data)
    return data


def _image_of(text: str) -> bytes:
    with llvm_binding(len(text)) as llvm:
        machine = _target_machine(llvm, opt=3)
        emitted: bytes = machine.emit_object(_optimized(llvm, machine, text))
    try:
        return image.to_bytes(linking.linked([emitted], ""))
    except ImageError as error:
        raise MachineError(f"no machine code: {error}") from error


def _optimized(llvm: Any, machine: Any, text: str) -> Any:
    """The text's module, in a context of its own: contexts keep types and constants for good."""
    parsed = llvm.parse_assembly(text, llvm.create_context())
    parsed.triple = machine.triple
    parsed.verify()
    _optimize(llvm, machine, parsed, speed=1, unrolled=True)
    return parsed


def entry_of(kernel: Kernel, code: Code) -> Callable[..., int]:
    """A kernel's code as a function of addresses and numbers, in the order of its parameters; nothing is checked."""
    kinds = [ctypes.c_void_p if isinstance(each, Buffer) else _CTYPES[each.type] for each in kernel.parameters]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(code.addresses[kernel.name])


def callable_kernel(kernel: Kernel) -> Callable[..., int]:
    """The same of numpy arrays instead of addresses."""
    entry = entry_of(kernel, compile_program(program(kernel)))

    def call(*args: Any) -> int:
        return int(entry(*(each.ctypes.data if isinstance(each, np.ndarray) else each for each in args)))

    return call


_CTYPES: Final[dict[str, Any]] = {
    "f64": ctypes.c_double, "f32": ctypes.c_float, "i64": ctypes.c_int64, "i32": ctypes.c_int32, "i16": ctypes.c_int16,
    "i8": ctypes.c_int8, "u8": ctypes.c_uint8, "bool": ctypes.c_uint8,
}  # fmt: skip


def has_feature(name: str) -> bool:
    """True if the processor that code is made for has the feature (LLVM's name)."""
    return name in target.current().features


def _target_machine(llvm: Any, opt: int = 1, processor: target.Target | None = None) -> Any:
    """For the processor of this process, or another one, with vectors as wide as it has them."""
    if processor is None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        processor = target.current()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    made = llvm.Target.from_triple(processor.triple)
    return made.create_target_machine(
        cpu=processor.cpu, features=processor.flags, opt=opt, reloc="pic", codemodel="small"
    )


def relocatable(text: str, cpu: str, features: str, interleaved: bool = False) -> bytes:
    """A module's object code for such a processor, which may lie anywhere in memory; raises MachineError.

    Rows are made by the hundred, so their loops are not unrolled: what matters are short rows, and how long LLVM takes.
    `interleaved`: loops do several rounds at a time, as sums need, in which each round waits for the one before.
    """
    with llvm_binding(len(text)) as llvm:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small"
        )
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
        _optimize(llvm, machine, module, speed=2, interleaved=interleaved)
        data: bytes = machine.emit_object(module)
    return data


def _optimize(
    llvm: Any, machine: Any, module: Any, *, speed: int, unrolled: bool = False, interleaved: bool = False
) -> None:
    """Let LLVM's passes go over a module.

    Kernels come with vectors where they matter most, and with what they have in common computed once: LLVM's first
    level makes them as fast as its third, in two thirds of the time.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=speed)
    options.loop_vectorization, options.slp_vectorization = True, False
    options.loop_unrolling, options.loop_interleaving = unrolled, unrolled or interleaved
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    kind = llvm.newpassmanagers
    if kind.ModulePassManager._dispose is kind.ffi.ObjectRef._dispose:  # which frees nothing, so nobody else does
        kind.NewPassManager._dispose(passes)
