"""`module._c`: a compiled module as `torch._C.ScriptModule`, for tools that look behind the Python wrapper.

In: a compiled module.  Out: a handle whose methods get, set and list attributes and methods by name; submodules come as
handles, too.  `handle.name` is the program's method or attribute `name`.  It holds no state of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn
from weakref import WeakKeyDictionary

from engine.aten.values.ivalue import Object
from engine.lang.errors import ArgumentError, NotSupportedError, did_you_mean
from engine.torch.compiled.facade import wrap as wrapped
from engine.torch.namespace.refused_names import WHERE

if TYPE_CHECKING:
    from engine.torch.jit.scripting.script_module import ScriptModule

REFUSED: Final[dict[str, str]] = {
    "_replicate_for_data_parallel": "there are no replicas; call the module itself",
    "_debug_get_module_iterators": "the engine has no iterators of its own over modules",
}
"""Method -> why it does not work."""


TRACED_INPUTS: Final[WeakKeyDictionary[Object, dict[str, list[Any]]]] = WeakKeyDictionary()
"""Traced module -> method -> the arguments of its trace."""


class ModuleHandle:
    """A compiled module under the names of `torch._C.ScriptModule`.  Handles of the same module are equal."""

    __slots__ = ("_module",)

    def __init__(self, module: ScriptModule) -> None:
        self._module = module

    # -- attributes

    def getattr(self, name: str) -> Any:
        """The attribute.  Raises AttributeError."""
        found = getattr(self._module, name)
        return handle_of(found)

    def hasattr(self, name: str) -> bool:
        return self._type_of().slot(name) is not None

    def setattr(self, name: str, value: Any) -> None:
        setattr(self._module, name, value._module if isinstance(value, ModuleHandle) else value)

    # -- methods

    def _get_method(self, name: str) -> Any:
        """The method.  Raises ArgumentError."""
        self._check_method(name)
        return self._module.__getattr__(name)  # not a method of the wrapper, which may have that name

    def _has_method(self, name: str) -> bool:
        return name in self._type_of().methods

    def _method_names(self) -> list[str]:
        return list(self._type_of().methods)

    def _get_methods(self) -> list[Any]:
        return [self._get_method(name) for name in self._method_names()]

    def _check_method(self, name: str) -> None:
        if not self._has_method(name):
            raise ArgumentError(f"Method '{name}' is not defined.", hints=did_you_mean(name, self._method_names()))

    def _define(self, concrete: Any, source: str, rcb: Any = None) -> None:
        """Compile the methods in the text and add them.  Raises CompileError."""
        self._module.define(source)

    # -- facts

    def _type(self) -> Any:
        """The module's class."""
        return wrapped(self._type_of())

    @property
    def name(self) -> str:
        return self._module._ivalue.type.name

    @property
    def qualified_name(self) -> str:
        return self._module._ivalue.type.qualname

    @property
    def code(self) -> str:
        """The text of every method; none where there are none."""
        return "\n".join(method.code for method in self._get_methods())

    @property
    def graph(self) -> Any:
        return self._module.graph

    def _get_modules(self) -> list[tuple[str, ModuleHandle]]:
        return [(name, ModuleHandle(module)) for name, module in self._module.named_modules()]

    def _get_parameters(self) -> list[tuple[str, Any]]:
        return list(self._module.named_parameters())

    # -- saving

    def save(self, path: str, _extra_files: Mapping[str, str | bytes] | None = None) -> None:
        """Write an archive.  Raises ArchiveError."""
        self._module.save(path, _extra_files)

    def save_to_buffer(self, _extra_files: Mapping[str, str | bytes] | None = None) -> bytes:
        return self._module.save_to_buffer(_extra_files)

    def _save_for_mobile(self, path: str, *args: Any, **kwargs: Any) -> None:
        """`ScriptModule._save_for_lite_interpreter`."""
        self._module._save_for_lite_interpreter(path, *args, **kwargs)

    def _save_to_buffer_for_mobile(self, *args: Any, **kwargs: Any) -> bytes:
        return self._module._save_to_buffer_for_lite_interpreter(*args, **kwargs)

    def _retrieve_traced_inputs(self) -> dict[str, list[Any]]:
        """Method -> the arguments that it was traced with, unless `trace` was told to forget them."""
        return TRACED_INPUTS.get(self._module._ivalue, {})

    # -- the rest

    def _type_of(self) -> Any:
        return self._module._ivalue.type

    def __getattr__(self, name: str) -> Any:
        """The program's method, or attribute, of that name; submodules as handles.  Raises AttributeError."""
        if name in REFUSED:
            return partial(_refuse, name)
        type = self._type_of()
        named = [*type.methods, *type.properties, *(slot.name for slot in type.attributes)]
        if name in named:
            return handle_of(self._module.__getattr__(name))  # past what the wrapper has under that name
        known = [each for each in (*dir(ModuleHandle), *REFUSED, *named) if not each.startswith("__")]
        hint = "" if name.startswith("__") else "".join(f"; {h}" for h in did_you_mean(name, known))
        raise AttributeError(
            f"{self.qualified_name} (a torch._C.ScriptModule) does not have a field with name '{name}'{hint}"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModuleHandle) and self._module._ivalue is other._module._ivalue

    def __hash__(self) -> int:
        return hash(id(self._module._ivalue))

    def __str__(self) -> str:
        return f"ScriptObject <{self.qualified_name}>"

    def __repr__(self) -> str:
        return f"<torch._C.ScriptModule {self.qualified_name}>"


def handle_of(value: Any) -> Any:
    """The handle of a compiled module; any other value itself."""
    inner = getattr(value, "_ivalue", None)
    return ModuleHandle(value) if isinstance(inner, Object) and inner.type.is_module else value


def _refuse(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotSupportedError(f"ScriptModule.{name}: {REFUSED[name]}", hints=(WHERE,))
