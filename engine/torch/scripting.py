"""`script`: from Python functions and classes to compiled ones.

In: a Python function, class, or something compiled already.  Out: a `ScriptFunction`; a class comes back as it is, and
programs know it from then on.  What Python programs use is compiled once, in one unit, under `__torch__.module.name`.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

from engine.executor.to_python import set_class_finder
from engine.frontend.python_resolver import PythonUnit
from engine.ir.unit import Function
from engine.lang.errors import CompileError, NotSupportedError
from engine.lang.types import ClassType, Type
from engine.torch.objects import ScriptFunction, ScriptObject

PYTHON: Final = PythonUnit()
"""All that was compiled of the Python programs of this process."""


def script(obj: Any) -> Any:
    """Compile a Python function or class.  Raises CompileError; nothing of it is left then."""
    if isinstance(obj, (ScriptFunction, ScriptObject)):
        return obj
    if isinstance(obj, type):
        _compile_class(obj)
        return obj
    if inspect.isroutine(obj) and not inspect.isbuiltin(obj):
        return _script_function(obj)
    raise NotSupportedError(
        f"cannot compile a {type(obj).__name__}", hints=("functions and classes written in Python can be compiled",)
    )


def _script_function(fn: Any) -> ScriptFunction:
    function = PYTHON.function(fn)
    try:
        function.ensure_defined()
    except CompileError:
        PYTHON.forget(function)
        raise
    return ScriptFunction(function)


def _compile_class(cls: type) -> None:
    found = PYTHON.type_of(cls)
    if isinstance(found, ClassType):
        for method in (*found.methods.values(), *found.static_methods.values()):
            assert isinstance(method, Function)
            method.ensure_defined()


def _python_class(type: Type) -> type | None:
    """The Enum or NamedTuple that the type was made of."""
    return next((cls for cls, made in PYTHON._types.items() if made is type), None)


set_class_finder(_python_class)
