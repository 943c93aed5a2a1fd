"""LLVM's text to machine code, with llvmlite, which is imported when first needed.

In: the text of a module, and the names of the functions that are wanted.  Out: their addresses, valid for as long as
the process lives.  Raises `MachineError` where llvmlite is missing or LLVM refuses the text.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

from engine.fuser.cpython_abi import retain

_lock: Final = threading.Lock()


class MachineError(Exception):
    """There is no machine code to be had."""


def compiled(text: str, names: Iterable[str], thoroughly: bool = False) -> dict[str, int]:
    """The addresses of these functions of a module, for long rows if `thoroughly`; raises MachineError."""
    with _lock:
        try:
            llvm = import_module("llvmlite.binding")
            machine = _target_machine(llvm)
            module = llvm.parse_assembly(text)
            module.verify()
            _optimize(llvm, machine, module, thoroughly)
            engine = llvm.create_mcjit_compiler(module, machine)
            engine.finalize_object()
            addresses = {name: engine.get_function_address(name) for name in names}
        except (ImportError, AttributeError, OSError, RuntimeError) as error:
            raise MachineError(f"no machine code: {error}") from error
        retain(engine)  # for good: what runs while Python ends may still call the code
    return addresses


def has_feature(name: str) -> bool:
    """True if this processor has the feature (LLVM's name)."""
    try:
        return bool(import_module("llvmlite.binding").get_host_cpu_features().get(name, False))
    except (ImportError, RuntimeError):
        return False


def converts_halves() -> bool:
    """True if this processor has half-precision instructions."""
    return has_feature("f16c") or has_feature("fullfp16")


def _target_machine(llvm: Any) -> Any:
    """For this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=1, jit=True)


def _optimize(llvm: Any, machine: Any, module: Any, thoroughly: bool) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = True
    # for entries what matters are short rows, and how long LLVM takes
    options.loop_unrolling = options.loop_interleaving = thoroughly
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
