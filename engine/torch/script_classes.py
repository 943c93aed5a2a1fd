"""Where compiled modules and Python's meet: classes derived from `torch.jit.ScriptModule`, and what both do alike.

In: `class Net(torch.jit.ScriptModule)` with methods marked `@torch.jit.script_method`, and `self.define(text)`.  Out: a
class whose `Net(...)` runs `__init__` on a Python module and gives that compiled.  Compiled modules also have those
methods of `Module` that ask a module for nothing but its parameters, buffers and children, and, where the program has
nothing of that name, `tap`, `run_until` and `cut`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from textwrap import dedent
from typing import Any, Final

from engine.aten.values.tensor import Tensor
from engine.torch.cutting import cut
from engine.torch.modules import ScriptModule, set_class_maker
from engine.torch.nn.modules.module import Module, replace_each
from engine.torch.scripting import MODULES, PYTHON, script_module
from engine.torch.taps import run_until, tap


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


def _apply(self: ScriptModule, fn: Callable[[Tensor], Any], recurse: bool = True) -> ScriptModule:
    """Give every parameter and buffer the values that `fn` makes of it."""
    replace_each((*self.parameters(recurse), *self.buffers(recurse)), fn)
    return self


_ALIKE: Final = (
    "to float double half bfloat16 cpu type cuda to_empty share_memory requires_grad_ zero_grad get_submodule "
    "load_state_dict"
).split()
"""Methods of `Module` that compiled modules have as they are."""
type.__setattr__(ScriptModule, "_apply", _apply)
for _name in _ALIKE:
    type.__setattr__(ScriptModule, _name, getattr(Module, _name))


class _UnlessTaken:
    """A method that a module has where the program means nothing else by the name."""

    def __init__(self, name: str, method: Callable[..., Any]) -> None:
        self._name, self._method = name, method

    def __get__(self, module: ScriptModule | None, _owner: type) -> Any:
        if module is None:
            return self._method
        of = module._ivalue.type
        named = (*of.methods, *of.properties, *of.constants)
        taken = of.attribute(self._name) is not None or self._name in named
        return module.__getattr__(self._name) if taken else partial(self._method, module)


_OWN: Final[dict[str, Callable[..., Any]]] = {"tap": tap, "run_until": run_until, "cut": cut}
for _name, _method in _OWN.items():
    type.__setattr__(ScriptModule, _name, _UnlessTaken(_name, _method))
set_class_maker(_make)
