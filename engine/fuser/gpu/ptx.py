"""PTX of launches, from LLVM's back end for NVIDIA's GPUs, kept on disk.

In: `Launch`es with their `Shape`s, and a target, as `sm_90`.  Out: the text of a PTX module with a kernel for each.
Raises `MachineError` where llvmlite is missing or has no such target.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from engine.fuser.backend import kernel_cache
from engine.fuser.backend.llvm_lines import Listing, listing_of_assembly
from engine.fuser.backend.machine import MachineError, llvm_binding
from engine.fuser.gpu import to_nvptx
from engine.fuser.gpu.launches import Launch
from engine.fuser.gpu.shapes import Shape

Code = Sequence[tuple[Launch, Shape]]
ARCHITECTURES: Final = tuple(
    "sm_70 sm_72 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a sm_100 sm_100a sm_101 sm_101a sm_120 sm_120a".split()
)
"""Targets that LLVM has; of others it writes to standard error, and makes code for none in particular."""
TARGETS: Final = ("sm_70", "sm_80", "sm_90", "sm_100")
"""Targets whose code is checked: Volta, Ampere, Hopper, Blackwell."""
_OPT: Final = 3


def ptx_of(code: Code, target: str) -> str:
    """The text, from disk if it was made before."""
    key = _key(code, target)
    data = kernel_cache.load(key)
    if data is not None:
        return data.decode()
    text = _compiled(str(to_nvptx.module(code)), target)
    kernel_cache.store(key, text.encode())
    return text


def listing_of(code: Code, target: str) -> Listing:
    """The text, with the lines of the kernel that its launches are of; made anew, from a module of its own."""
    return listing_of_assembly(_compiled(str(to_nvptx.module(code, has_lines=True)), target))


def llvm_of(code: Code) -> str:
    """The text of LLVM that PTX is made of."""
    return str(to_nvptx.module(code))


def _compiled(text: str, target: str) -> str:
    with llvm_binding(len(text)) as llvm:
        machine = _machine(llvm, target)
        module = llvm.parse_assembly(text)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=_OPT)
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return str(machine.emit_assembly(module))


def _machine(llvm: Any, target: str) -> Any:
    if target not in ARCHITECTURES:
        raise MachineError(f"there is no architecture '{target}'")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(to_nvptx.TRIPLE).create_target_machine(cpu=target, opt=_OPT)


def _key(code: Code, target: str) -> str:
    with llvm_binding() as llvm:
        versions = (import_module("llvmlite").__version__, str(llvm.llvm_version_info), to_nvptx.TRIPLE, target)
    return kernel_cache.key_of((repr(code), *versions, kernel_cache.state_of_engine("fuser")), "ptx")
