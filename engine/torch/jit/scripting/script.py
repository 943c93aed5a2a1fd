"""`torch.jit.script`: compiles Python functions, classes and modules.

In: a Python function, class or module instance, or a compiled one.  Out: a `ScriptFunction` or `ScriptModule`; a class
is returned as it is, compiled for later programs.  Functions and classes that a program uses are compiled once, in one
unit, under `__torch__.module.name`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from engine.executor.conversion.from_python import Shared
from engine.frontend.compilation.compile import library_value
from engine.frontend.python.attribute_types import NoType, type_of_value
from engine.frontend.python.overloads import overloads_of
from engine.frontend.python.resolver import PythonResolver
from engine.frontend.sugared.classes import FunctionValue
from engine.ir.unit import DEFINING
from engine.lang.errors import CompileError, NotSupportedError
from engine.lang.types import STR, TENSOR, DictType, ListType, Type
from engine.torch.compiled.objects import ScriptFunction, ScriptObject
from engine.torch.compiled.script_containers import script_container
from engine.torch.jit.scripting.emit_hooks import emitted_function, emitted_module
from engine.torch.jit.scripting.enabled import ENABLED
from engine.torch.jit.scripting.names_seen import names_seen
from engine.torch.jit.scripting.python_program import PYTHON, instance, module_object, prepared
from engine.torch.jit.scripting.script_module import wrap

_EMPTY: Final[dict[type, Type]] = {list: ListType(TENSOR), dict: DictType(STR, TENSOR)}
"""The types of empty containers, where nothing else tells them."""


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
    type_hint: Any = None,
) -> Any:
    """Compile a Python function, class, module or other instance; a list or dict comes back as one that programs share.

    Raises CompileError, and then leaves no partial definitions.  Functions see the names that their own code
    sees, classes also those that are seen where they are compiled, or `_frames_up` calls further out.  `optimize` and
    `_rcb` are accepted and change nothing.
    """
    if isinstance(obj, (ScriptFunction, ScriptObject, Shared)) or not ENABLED.now:
        return obj
    if isinstance(obj, (list, dict)):
        return _script_container(obj, optimize if type_hint is None else type_hint)
    obj = prepared(obj)
    with DEFINING, PYTHON.attempt():
        if isinstance(obj, type):
            _compile_class(obj, names_seen(_frames_up + 1))
            return obj
        if hasattr(obj, "torch_path"):
            return _library_function(obj)
        if getattr(type(obj), "_torchscript_module", False):
            return emitted_module(wrap(module_object(obj)))
        if inspect.isfunction(obj):
            known = PYTHON.known_function(obj)
            compiled = _script_function(obj)
            return compiled if compiled._function is known else emitted_function(compiled)
        if type(obj).__module__.partition(".")[0] not in _NOT_WRITTEN_BY_USERS:
            return wrap(instance(obj))
    hint = "functions, classes and modules written in Python can be compiled"
    if inspect.ismethod(obj):
        hint = "compile the object whose method it is"
    raise NotSupportedError(f"cannot compile a {type(obj).__name__}", hints=(hint,))


_NOT_WRITTEN_BY_USERS: Final = {*sys.stdlib_module_names, "engine"}
"""Modules whose classes have no program's instances."""


def _script_container(value: Any, hint: Any) -> Any:
    """The list or dict, shared with programs; `hint` is its type where the elements do not tell it."""
    if hint is not None:
        with DEFINING, PYTHON.attempt():
            return script_container(value, PythonResolver(PYTHON, {}).annotation(hint))
    try:
        return script_container(value, type_of_value(value, PYTHON.type_of) if value else _EMPTY[type(value)])
    except NoType as error:
        raise NotSupportedError(str(error), hints=("torch.jit.script(value, type_hint=List[int]) names it",)) from None


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


def get_overloads(fn: Callable[..., Any]) -> list[ScriptFunction] | None:
    """One function for each declared signature, compiled; None for a function that has none.  Raises CompileError."""
    if not overloads_of(fn):
        return None
    with DEFINING, PYTHON.attempt():
        functions = PYTHON.overloads(fn)
        for function in functions:
            function.ensure_defined()
    return [ScriptFunction(function) for function in functions]


def _compile_class(cls: type, seen: Mapping[str, Any]) -> None:
    if getattr(cls, "_torchscript_module", False):
        raise CompileError(
            f"Type '{cls.__name__}' cannot be compiled since it inherits from nn.Module, consider passing an instance "
            "instead"
        )
    PYTHON.type_of(cls, seen)
