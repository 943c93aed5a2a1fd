"""`torch.jit.script`: compiles Python functions, classes and modules.

In: a Python function, class or module instance, or a compiled one.  Out: a `ScriptFunction` or `ScriptModule`; a class
is returned as it is, compiled for later programs.  Functions and classes that a program uses are compiled once, in one
unit, under `__torch__.module.name`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

from engine.frontend.compilation.compile import library_value
from engine.frontend.python.overloads import overloads_of
from engine.frontend.sugared.classes import FunctionValue
from engine.lang.errors import CompileError, NotSupportedError
from engine.torch.compiled.objects import ScriptFunction, ScriptObject
from engine.torch.jit.scripting.python_program import PYTHON, module_object
from engine.torch.jit.scripting.script_module import wrap


def script(obj: Any, example_inputs: Any = None) -> Any:
    """Compile a Python function, class or module.  Raises CompileError, and then leaves no partial definitions."""
    if isinstance(obj, (ScriptFunction, ScriptObject)):
        return obj
    with PYTHON.attempt():
        if isinstance(obj, type):
            _compile_class(obj)
            return obj
        if hasattr(obj, "torch_path"):
            return _library_function(obj)
        if getattr(type(obj), "_torchscript_module", False):
            return wrap(module_object(obj))
        if inspect.isfunction(obj):
            return _script_function(obj)
    hint = "functions, classes and modules written in Python can be compiled"
    if inspect.ismethod(obj):
        hint = "compile the object whose method it is"
    raise NotSupportedError(f"cannot compile a {type(obj).__name__}", hints=(hint,))


def _library_function(obj: Any) -> ScriptFunction:
    """A function of the torch namespace that is written in TorchScript.  Raises NotSupportedError for operators."""
    found = library_value(obj.torch_path)
    functions = found.functions if isinstance(found, FunctionValue) else ()
    if len(functions) != 1:
        raise NotSupportedError(
            f"'{obj.torch_path}' is built in and cannot be compiled",
            hints=("programs may call it; write a function that does, and compile that",),
        )
    functions[0].ensure_defined()
    return ScriptFunction(functions[0])


def _script_function(fn: Callable[..., Any]) -> ScriptFunction:
    if overloads_of(fn):
        raise CompileError(
            f"Function {PYTHON.name_of(fn)} cannot be directly compiled because it is overloaded. It must be used in a "
            "context of a function where its inputs can determine which overload to call.",
            hints=("compile the function that calls it",),
        )
    function = PYTHON.function(fn)
    function.ensure_defined()
    return ScriptFunction(function)


def _compile_class(cls: type) -> None:
    if getattr(cls, "_torchscript_module", False):
        raise CompileError(
            f"Type '{cls.__name__}' cannot be compiled since it inherits from nn.Module, consider passing an instance "
            "instead"
        )
    if is_dataclass(cls):
        PYTHON.dataclasses.add(cls)
    PYTHON.type_of(cls)
