"""LLVM's text to machine code, with llvmlite, which is imported when first needed.

In: the text of a module, and the names of the functions that are wanted.  Out: their addresses, valid for as long as
the process lives, or, of `loaded`, as long as somebody holds what it returns.  Raises `MachineError` where llvmlite is
missing or LLVM refuses the text.

Note [Giving code back]
Of each program there is one piece of code in the process, so plans made again, of a model loaded again, find it.  Those
who hold a `Loaded` are the builtins that call into it, and callers hold a builtin while it runs.  The last one that
goes puts the code among what is to be given back, which is done when code is loaded next: LLVM may be at work
meanwhile, and whoever drops a plan should not wait for it.  When Python ends nothing is given back, since what still
runs may call it.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from engine.fuser.backend import kernel_cache, target, tiering, to_llvm
from engine.fuser.backend.cpython_abi import release, retain
from engine.fuser.backend.memory import keep_freed
from engine.fuser.backend.symbols import SYMBOLS
from engine.fuser.backend.symbols import MachineError as MachineError
from engine.fuser.ir.kernel import Buffer, Kernel
from engine.fuser.ir.kernel_verifier import KernelError
from engine.lang.deferred import pattern_of
from engine.lang.errors import ArgumentError
from engine.lang.locks import is_taken, lock
from engine.lang.records import dataclass

_lock: Final = lock()


def compiled(text: str, names: Iterable[str], thoroughly: bool = False) -> dict[str, int]:
    """The addresses of these functions of a module, for long rows if `thoroughly`; raises MachineError."""
    with llvm_binding(len(text)) as llvm:
        machine = _target_machine(llvm)
        module = llvm.parse_assembly(text)
        module.verify()
        _optimize(llvm, machine, module, thoroughly)
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        addresses = {name: engine.get_function_address(name) for name in names}
        retain(engine)  # for good: what runs while Python ends may still call the code
    return addresses


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
    return Program(repr(kernel), lambda: to_llvm.module([kernel]), (kernel.name,))


@dataclass(eq=False, slots=True, weakref_slot=True)
class Loaded:
    """A program's functions, by name, valid for as long as this is held."""

    addresses: dict[str, int]


@dataclass(slots=True)
class Code:
    """Machine code of a program: addresses by name, valid for as long as the process lives, and LLVM's text of it."""

    addresses: dict[str, int]
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
    found = _known(program, _key(program.text))
    return None if found is None else _for_good(program, found)


def loaded(program: Program) -> Loaded:
    """The program's code for those who hold it, from disk if it was compiled before; raises MachineError."""
    key = _key(program.text)
    return _known(program, key) or _load(program, key, _compile(program))


def _for_good(program: Program, code: Loaded) -> Code:
    retain(code)
    return Code(code.addresses, program)


def _known(program: Program, key: str) -> Loaded | None:
    """The code in the process, or on disk."""
    found = _LOADED.get(key)
    if found is None and (data := kernel_cache.load(key)) is not None:
        return _load(program, key, data)
    return found


def _compile(program: Program) -> bytes:
    """A line of the symbols that the program needs, and its object code."""
    try:
        text = str(program.write())
    except KernelError as error:
        tiering.note_failure(error)
        raise MachineError(f"no machine code: {error}") from error
    if " half" in text and not target.current().converts_halves:
        raise MachineError("this processor has no half-precision instructions")
    needed = {found["function"] or found["object"] for found in _DECLARATION.finditer(text)} & SYMBOLS.keys()
    with llvm_binding(len(text)) as llvm:
        machine = _target_machine(llvm, opt=3)
        data: bytes = machine.emit_object(_optimized(llvm, machine, text))
    data = " ".join(sorted(needed)).encode() + b"\n" + data
    kernel_cache.store(_key(program.text), data)
    return data


_LOADED: Final[WeakValueDictionary[str, Loaded]] = WeakValueDictionary()
"""The code in the process by the key of its text.  See Note [Giving code back]."""
_TO_GIVE_BACK: Final[deque[Any]] = deque()
"""LLVM's owners of code that nobody holds any more."""


def _load(program: Program, key: str, data: bytes) -> Loaded:
    symbols, _, code = data.partition(b"\n")
    _resolve(symbols.decode().split())
    keep_freed()
    with llvm_binding(len(code)) as llvm:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine(llvm, opt=3))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        found = Loaded({name: engine.get_function_address(name) for name in program.names})
        retain(engine)  # what runs while Python ends may still call the code
        weakref.finalize(found, _TO_GIVE_BACK.append, engine).atexit = False
        _give_back()
    return _LOADED.setdefault(key, found)


def _give_back() -> None:
    """Free the code that nobody holds any more."""
    while _TO_GIVE_BACK:
        engine = _TO_GIVE_BACK.popleft()
        release(engine)
        engine.close()


def _key(text: str) -> str:
    """The key of a program's code."""
    with llvm_binding() as llvm:
        return kernel_cache.key_of((text, *_circumstances(llvm)))


@cache
def _circumstances(llvm: Any) -> tuple[str, ...]:
    """The rest of what decides the code of a program: who writes and compiles it, and for which processor."""
    versions = (import_module("llvmlite").__version__, str(llvm.llvm_version_info))
    writers = kernel_cache.state_of_engine("fuser")
    processor = target.current()
    return *versions, processor.triple, processor.cpu, processor.flags, sys.version, writers


def _optimized(llvm: Any, machine: Any, text: str) -> Any:
    """The text's module, in a context of its own: contexts keep types and constants for good."""
    parsed = llvm.parse_assembly(text, llvm.create_context())
    parsed.triple = machine.triple
    parsed.verify()
    _optimize(llvm, machine, parsed, thoroughly=True, speed=3)
    return parsed


_resolved: Final[set[str]] = set()
_DECLARATION: Final = pattern_of(r'^(?:declare [^@]*@"(?P<function>[^"]+)"|@"(?P<object>[^"]+)" = external)', re.M)


def _resolve(symbols: Iterable[str]) -> None:
    """Tell LLVM the addresses of symbols."""
    for symbol in {*symbols} - _resolved:
        import_module("llvmlite.binding").add_symbol(symbol, SYMBOLS[symbol]())
        _resolved.add(symbol)


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
    return made.create_target_machine(cpu=processor.cpu, features=processor.flags, opt=opt, jit=True)


def relocatable(text: str, cpu: str, features: str, interleaved: bool = False) -> bytes:
    """A module's object code for such a processor, which may lie anywhere in memory; raises MachineError.

    Rows are made by the hundred, so they are optimized as entries are: that takes a third of the time.  `interleaved`:
    loops do several rounds at a time, as sums need, in which each round waits for the one before.
    """
    with llvm_binding(len(text)) as llvm:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small"
        )
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
        _optimize(llvm, machine, module, thoroughly=False, interleaved=interleaved)
        data: bytes = machine.emit_object(module)
    return data


def _optimize(
    llvm: Any, machine: Any, module: Any, thoroughly: bool, speed: int = 2, interleaved: bool = False
) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=speed)
    options.loop_vectorization, options.slp_vectorization = True, thoroughly
    # for entries what matters are short rows, and how long LLVM takes
    options.loop_unrolling, options.loop_interleaving = thoroughly, thoroughly or interleaved
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    kind = llvm.newpassmanagers
    if kind.ModulePassManager._dispose is kind.ffi.ObjectRef._dispose:  # which frees nothing, so nobody else does
        kind.NewPassManager._dispose(passes)
