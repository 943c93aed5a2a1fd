"""`torch.jit._state`, `torch.jit._recursive`: what is compiled in this process, and modules on their way there.

In: Python functions and modules.  Out: the compiled things that they became, if they did.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

from engine.frontend.python.module_description import methods_to_compile
from engine.ir.unit import DEFINING
from engine.torch.compiled.objects import ScriptFunction
from engine.torch.compiled.types import ClassType
from engine.torch.jit.scripting.enabled import disable as disable
from engine.torch.jit.scripting.enabled import enable as enable
from engine.torch.jit.scripting.module_handle import ModuleHandle
from engine.torch.jit.scripting.python_program import MODULES, PYTHON, module_object
from engine.torch.jit.scripting.script_module import wrap


class _PythonUnit:
    """The functions and classes that were compiled of Python."""

    def find_function(self, name: str) -> ScriptFunction | None:
        found = PYTHON.unit.settled().find_function(name)
        return ScriptFunction(found) if found else None

    def get_class(self, name: str) -> Any:
        found = PYTHON.unit.settled().find_type(name)
        return ClassType(found) if found else None

    def get_functions(self) -> list[ScriptFunction]:
        return [ScriptFunction(function) for function in [*PYTHON.unit.settled().functions.values()]]


_python_cu: Final = _PythonUnit()


def _try_get_jit_cached_function(key: Callable[..., Any]) -> ScriptFunction | None:
    """The function as it was compiled; None if it was not yet."""
    known = PYTHON.known_function(key)
    return ScriptFunction(known) if known is not None and known.is_defined else None


def _clear_class_state() -> None:
    """No effect: classes are kept with the programs that use them."""


class _CachingLayer:
    """The functions that were compiled of Python's."""

    def __contains__(self, key: Callable[..., Any]) -> bool:
        return _try_get_jit_cached_function(key) is not None

    def __delitem__(self, key: Callable[..., Any]) -> None:
        """Compile the function anew when it is next asked for."""
        PYTHON.forget(key)


_jit_caching_layer: Final = _CachingLayer()


class ConcreteTypeStore:
    """The types of modules: those that are alike share one."""

    def get_or_create_concrete_type(self, nn_module: Any) -> Any:
        """The type of the module, made if there is none like it yet.  Raises CompileError."""
        return MODULES.concrete(nn_module)


concrete_type_store: Final = ConcreteTypeStore()


def create_script_module(nn_module: Any, stubs_fn: Any = None, share_types: bool = True, **_: Any) -> Any:
    """The module, compiled; unless `share_types`, it and its submodules have types of their own.

    Raises CompileError.
    """
    with DEFINING, PYTHON.attempt(), nullcontext() if share_types else MODULES.apart():
        return wrap(module_object(nn_module))


def infer_methods_to_compile(nn_module: Any) -> list[str]:
    """The names of the methods from which compiling the module starts."""
    return list(methods_to_compile(type(nn_module)))


def wrap_cpp_module(cpp_module: ModuleHandle) -> Any:
    """The Python wrapper of a module as `torch._C.ScriptModule`."""
    return cpp_module._module
