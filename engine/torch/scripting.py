"""`script`: from Python functions, classes and modules to compiled ones.

In: a Python function, class, module instance, or something compiled already.  Out: a `ScriptFunction` or
`ScriptModule`; a class comes back as it is, and programs know it from then on.  What Python programs use is compiled
once, in one unit, under `__torch__.module.name`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from textwrap import dedent
from types import MethodType
from typing import Any, Final

from engine.aten.values.ivalue import Object
from engine.executor.calls.from_python import Mismatch, from_python
from engine.executor.calls.to_python import set_class_finder
from engine.frontend.compilation.compile import library_value
from engine.frontend.python.ignored_functions import IGNORED, modifier_of
from engine.frontend.python.module_description import AnnotatedValue
from engine.frontend.python.modules import PythonModules
from engine.frontend.python.overloads import overloads_of
from engine.frontend.python.resolver import PythonUnit
from engine.frontend.sugared.classes import FunctionValue
from engine.frontend.sugared.modules import ConcreteModule
from engine.lang.errors import ArgumentError, CompileError, NotSupportedError
from engine.lang.types import ClassType, InterfaceType, Type
from engine.torch.modules import ScriptModule, set_python_side, wrap
from engine.torch.objects import ScriptFunction, ScriptObject

PYTHON: Final = PythonUnit()
"""All that was compiled of the Python programs of this process."""
MODULES: Final = PythonModules(PYTHON)


def script(obj: Any, example_inputs: Any = None) -> Any:
    """Compile a Python function, class or module.  Raises CompileError; nothing of it is left then."""
    if isinstance(obj, (ScriptFunction, ScriptObject)):
        return obj
    with PYTHON.attempt():
        if isinstance(obj, type):
            _compile_class(obj)
            return obj
        if hasattr(obj, "torch_path"):
            return _library_function(obj)
        if getattr(type(obj), "_torchscript_module", False):
            return script_module(obj)
        if inspect.isfunction(obj):
            return _script_function(obj)
    hint = "functions, classes and modules written in Python can be compiled"
    if inspect.ismethod(obj):
        hint = "compile the object whose method it is"
    raise NotSupportedError(f"cannot compile a {type(obj).__name__}", hints=(hint,))


def script_module(module: Any) -> ScriptModule:
    """The module compiled, with all that is inside.  Raises CompileError, ArgumentError."""
    wrapped: ScriptModule = wrap(_object_of(module, MODULES.concrete(module)))
    return wrapped


def _library_function(obj: Any) -> ScriptFunction:
    """A function of the torch namespace, if it is written in TorchScript.  Raises NotSupportedError."""
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


# -- modules

_IN: Final = "this is the submodule "


def _object_of(module: Any, concrete: ConcreteModule, interface: InterfaceType | None = None) -> Object:
    """The module's object: its attributes converted, its children compiled, and then its methods."""
    inner = getattr(module, "_ivalue", None)
    if isinstance(inner, Object):
        return inner
    made = Object(concrete.type)
    for attribute in concrete.type.attributes:
        value = getattr(module, attribute.name)
        made.set(attribute.name, _slot(attribute.name, value, attribute.type, concrete))
    MODULES.compile(concrete, interface)
    return made


def _slot(name: str, value: Any, type: Type, owner: ConcreteModule) -> Any:
    if isinstance(type, (ClassType, InterfaceType)) and type.is_module:
        return _child(name, value, type)
    value = value.value if isinstance(value, AnnotatedValue) else value
    try:
        return from_python(type)(value)
    except Mismatch as error:
        raise CompileError(
            f"Could not cast attribute '{name}' to type {type.annotation_str}: {owner.type.name} has a value of type "
            f"{value.__class__.__name__}",
            hints=(str(error),) if str(error) else (),
        ) from None
    except ArgumentError as error:
        raise CompileError(f"Could not cast attribute '{name}': {error.message}") from None


def _child(name: str, value: Any, type: ClassType | InterfaceType) -> Object:
    interface = type if isinstance(type, InterfaceType) else None
    try:
        made = _object_of(value, MODULES.concrete(value), interface)
    except CompileError as error:
        inner = next((hint.removeprefix(_IN) for hint in error.hints if hint.startswith(_IN)), "")
        rest = [hint for hint in error.hints if not hint.startswith(_IN)]
        error.hints = (*rest, f"{_IN}{name}.{inner}".rstrip("."))
        raise
    if interface is not None and not made.type.is_subtype_of(interface):
        missing = [method for method in interface.methods if method not in made.type.methods]
        raise CompileError(
            f"'{name}' is declared as {interface.annotation_str}, and {made.type.name} does not offer that",
            hints=[f"it has no method '{method}'" for method in missing] or ["compare the signatures of the methods"],
        )
    return made


# -- what compiled modules have of Python


def _python_attribute(module: ScriptModule, name: str) -> Any:
    """A method that stays in Python, or any that a ScriptModule's own class has."""
    cls = MODULES.python_class(module._ivalue.type)
    member = None if cls is None else inspect.getattr_static(cls, name, None)
    derived = getattr(cls, "_script_methods_only", False)
    if inspect.isfunction(member) and (derived or modifier_of(member) in IGNORED):
        return MethodType(member, module)
    return None


def _define(module: ScriptModule, source: str) -> None:
    concrete = MODULES.of_type(module._ivalue.type)
    with PYTHON.attempt():
        MODULES.define(concrete, dedent(source))
        MODULES.compile(concrete)


def _python_class(type: Type) -> type | None:
    """The Enum or NamedTuple that the type was made of."""
    return next((cls for cls, made in PYTHON._types.items() if made is type), None)


set_class_finder(_python_class)
set_python_side(_python_attribute, _define)
