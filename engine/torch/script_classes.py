"""Classes derived from `torch.jit.ScriptModule`.

In: `class Net(torch.jit.ScriptModule)` with methods marked `@torch.jit.script_method`, and `self.define(text)`.  Out: a
class whose `Net(...)` runs `__init__` on a Python module and gives that compiled.
"""

from __future__ import annotations

from textwrap import dedent
from typing import Any

from engine.torch.modules import ScriptModule, set_class_maker
from engine.torch.nn.modules.module import Module
from engine.torch.scripting import MODULES, PYTHON, script_module


class _CompiledAtOnce(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        module = super().__call__(*args, **kwargs)
        with PYTHON.attempt():
            return script_module(module)

    def __instancecheck__(cls, instance: Any) -> bool:
        if not isinstance(instance, ScriptModule):
            return super().__instancecheck__(instance)
        made_of = MODULES.python_class(instance._ivalue.type)
        return made_of is not None and issubclass(made_of, cls)


class UncompiledModule(Module, metaclass=_CompiledAtOnce):
    """What `self` is in the `__init__` of such a class."""

    _script_methods_only = True

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_definitions", [])

    def define(self, source: str) -> None:
        """Add the methods that the text defines."""
        self._definitions.append(dedent(source))


def _make(name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
    replaced = tuple(UncompiledModule if base is ScriptModule else base for base in bases)
    return _CompiledAtOnce(name, replaced, namespace)


set_class_maker(_make)
