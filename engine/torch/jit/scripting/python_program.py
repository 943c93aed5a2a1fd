"""The Python code compiled in this process, and the conversion of Python modules to compiled objects.

In: an instance of `torch.nn.Module`.  Out: an object with converted attributes and compiled submodules and methods.
Everything compiled from Python is in one unit, under `__torch__.module.name`.
"""

from __future__ import annotations

import copy
from typing import Any, Final
from weakref import WeakKeyDictionary

from engine.aten.values.ivalue import Object
from engine.executor.conversion.from_python import PYTHON_TYPES, Mismatch, from_python
from engine.frontend.python.module_description import AnnotatedValue
from engine.frontend.python.modules import PythonModules
from engine.frontend.python.resolver import PythonUnit, is_module_class
from engine.frontend.sugared.modules import ConcreteModule
from engine.lang.errors import ArgumentError, CompileError
from engine.lang.types import ClassType, InterfaceType, Type, interface_gap

PYTHON: Final = PythonUnit()
"""The functions and types compiled from the Python programs of this process."""


def _misfit(type: Type, value: Any) -> str | None:
    """Why a Python value cannot be one of the type; None if it can."""
    try:
        from_python(type)(value)
    except Exception as error:  # reading attributes runs code of the program
        return str(error) or f"it is no {type.annotation_str}"
    return None


MODULES: Final = PythonModules(PYTHON, _misfit)
"""The types of the Python modules compiled so far."""
LEFT_TO_PYTHON: Final[WeakKeyDictionary[Object, dict[str, Any]]] = WeakKeyDictionary()
"""The attributes of compiled modules that are for ignored methods alone (`__jit_ignored_attributes__`)."""
PYTHON_TYPES.of_class = PYTHON.known_type

_IN: Final = "this is the submodule "


def module_object(module: Any) -> Object:
    """The compiled module of a Python module, with all its submodules.  Raises CompileError, ArgumentError."""
    return _object_of(module, MODULES.concrete(module))


def instance(value: Any) -> Object:
    """The object of a Python instance, whose class is compiled.  Raises CompileError."""
    type = PYTHON.type_of(value.__class__)
    try:
        made = from_python(type)(value)
    except Mismatch as error:
        text = f"cannot compile a {value.__class__.__name__}"
        raise CompileError(str(error) or text, hints=("its attributes need the types that __init__ gives",)) from None
    assert isinstance(made, Object)
    return made


def clear_class_registry() -> None:
    """Compile all of Python that is asked for from now on anew, and let names be free: `__torch__.Net` again, and not
    `__torch__.___torch_mangle_0.Net`.  Programs that were compiled before stay what they are."""
    MODULES.begin_anew()


def prepared(value: Any) -> Any:
    """The value to compile in the place of this one, as its `__prepare_scriptable__` tells, or that of a hook, which
    gets the module; in modules of modules, too.

    A module with such parts is copied, with those in their places; the parameters are shared.
    """
    return _prepared(value, {})


def _prepared(value: Any, done: dict[int, Any]) -> Any:
    if id(value) not in done:
        own = getattr(value, "__prepare_scriptable__", None)
        made = value if own is None or isinstance(value, type) else own()
        for hook in list(getattr(made, "_forward_pre_hooks", {}).values()) if is_module_class(made.__class__) else ():
            made = getattr(hook.call, "__prepare_scriptable__", lambda same: same)(made)
        done[id(value)] = made
        children = getattr(made, "_modules", {}) if is_module_class(made.__class__) else {}
        changed = {name: new for name, old in children.items() if (new := _prepared(old, done)) is not old}
        if changed:
            made = done[id(value)] = copy.copy(made)
            object.__setattr__(made, "_modules", {**children, **changed})
    return done[id(value)]


def _object_of(module: Any, concrete: ConcreteModule, interface: InterfaceType | None = None) -> Object:
    """The module's object: its attributes converted, its children compiled, and then its methods."""
    inner = getattr(module, "_ivalue", None)
    if isinstance(inner, Object):
        return inner
    made = Object(concrete.type)
    for attribute in concrete.type.attributes:
        value = getattr(module, attribute.name)
        made.set(attribute.name, _slot(attribute.name, value, attribute.type, concrete))
    if ignored := getattr(module, "__jit_ignored_attributes__", ()):
        own = {**vars(module), **module._parameters, **module._buffers, **module._modules}
        LEFT_TO_PYTHON[made] = {name: own[name] for name in ignored if name in own}
    MODULES.compile(concrete, interface)
    return made


def export_methods(module: Any, made: Object) -> None:
    """Give the object of a traced module the methods that its class exports, and the attributes that they may use.

    They are compiled when they are first needed.  Raises CompileError.
    """
    known = {attribute.name for attribute in made.type.attributes}
    MODULES.export(module, made.type)
    for attribute in made.type.attributes:
        if attribute.name not in known:
            value = getattr(module, attribute.name)
            made.set(attribute.name, _slot(attribute.name, value, attribute.type, MODULES.of_type(made.type)))


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
    if interface is not None and (gap := interface_gap(made.type, interface)) is not None:
        raise CompileError(f"Could not cast attribute '{name}' to type {interface.annotation_str}: {gap}")
    return made
