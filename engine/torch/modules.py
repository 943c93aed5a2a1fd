"""Compiled modules, as Python sees them.

In: an `Object` whose class is a module's.  Out: `ScriptModule`: attributes, submodules and methods by name, parameters
and buffers, `state_dict`, modes, saving.  `wrap` gives any object its wrapper.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from weakref import WeakValueDictionary

from engine.aten.values.ivalue import Object
from engine.aten.values.submodules import MOST_PLACES, children_of, each_module, every_place, is_entangled
from engine.aten.values.tensor import Tensor
from engine.executor.calls.call import call_function
from engine.executor.calls.to_python import set_object_wrapper
from engine.executor.interpreter.interpreter import run_function
from engine.ir.unit import Function
from engine.lang.errors import ArgumentError
from engine.lang.types import ClassType
from engine.serialize.archive import PathOrFile, save_archive
from engine.torch.graphs import Graph
from engine.torch.objects import ScriptObject, python_class_of, refuse_python_calls


class _Derivable(type):
    """Programs may derive classes from ScriptModule; these are made elsewhere."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        derived = any(isinstance(base, _Derivable) for base in bases)
        return _class_maker(name, bases, namespace) if derived else super().__new__(mcls, name, bases, namespace)


class ScriptModule(ScriptObject, metaclass=_Derivable):
    """A compiled module.  Attributes that it does not have may be added in Python; programs do not see them.

    What is private here ends in an underscore, since programs have methods like `_forward` of their own.
    """

    __slots__ = ("__dict__",)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        forward, type = self.__getattr__("forward"), self._ivalue.type
        if not type.forward_pre_hooks and not type.forward_hooks:
            return forward(*args, **kwargs)
        for hook in type.forward_pre_hooks:
            changed = self._run_hook_(hook, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = forward(*args, **kwargs)
        for hook in type.forward_hooks:
            changed = self._run_hook_(hook, args, result)
            result = result if changed is None else changed
        return result

    def _forward_method_(self) -> Any:
        if "forward" not in self._ivalue.type.methods:
            raise ArgumentError(f"Method 'forward' is not defined: {self.original_name} has no such method")
        return self.__getattr__("forward")

    def _run_hook_(self, hook: Any, *args: Any) -> Any:
        return call_function(hook, (self._ivalue, *args))

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            found = None if name.startswith("_") else _python_attribute(self, name)
            if found is None:
                raise
            return found

    def __setattr__(self, name: str, value: Any) -> None:
        type = self._ivalue.type
        if name in type.constants:
            raise AttributeError(f"Cannot mutate TorchScript constant value: '{name}'")
        if type.attribute(name) is not None or name in type.properties:
            super().__setattr__(name, value)
        else:
            object.__setattr__(self, name, value)

    @property
    def original_name(self) -> str:
        return self._ivalue.type.name

    @property
    def graph(self) -> Graph:
        graph: Graph = self._forward_method_().graph
        return graph

    @property
    def inlined_graph(self) -> Graph:
        graph: Graph = self._forward_method_().inlined_graph
        return graph

    @property
    def code(self) -> str:
        code: str = self._forward_method_().code
        return code

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        graph: Graph = self._forward_method_().graph_for(*args, **kwargs)
        return graph

    # -- parts

    def named_children(self) -> Iterator[tuple[str, ScriptModule]]:
        return ((name, wrap(child)) for name, child in children_of(self._ivalue))

    def children(self) -> Iterator[ScriptModule]:
        return (child for _, child in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, ScriptModule]]:
        """This module and all inside, each once, under the first of its names."""
        return ((name, wrap(module)) for name, module in each_module(self._ivalue, prefix))

    def modules(self) -> Iterator[ScriptModule]:
        return (module for _, module in self.named_modules())

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        return self._named_tensors_("parameter", prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        return (tensor for _, tensor in self.named_parameters("", recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        return self._named_tensors_("buffer", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        return (tensor for _, tensor in self.named_buffers("", recurse))

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> OrderedDict[str, Tensor]:
        """Name -> tensor: of each module first its parameters, then its buffers, then what its children have."""
        return OrderedDict(
            (f"{prefix}{path}.{name}" if path else f"{prefix}{name}", value if keep_vars else value.detach())
            for path, module in self._paths_("")
            for kind in ("parameter", "buffer")
            for name, value in module._tensors_(kind)
        )

    def apply(self, fn: Callable[[ScriptModule], Any]) -> ScriptModule:
        """Call `fn` with every module inside, and then with this one.  Raises ArgumentError as `state_dict` does."""
        self._refuse_entangled_()
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def get_parameter(self, target: str) -> Tensor:
        """The parameter under a dotted name.  Raises AttributeError."""
        return self._tensor_at_(target, "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer under a dotted name.  Raises AttributeError."""
        return self._tensor_at_(target, "buffer")

    def _tensor_at_(self, target: str, kind: str) -> Tensor:
        found = dict(self._named_tensors_(kind, "", True, once=False))
        if target not in found:
            raise AttributeError(f"'{self.original_name}' has no {kind} '{target}'")
        return found[target]

    # -- modes

    def train(self, mode: bool = True) -> ScriptModule:
        for module in self.modules():
            if module._ivalue.type.slot("training") is not None:
                module._ivalue.set("training", bool(mode))
        return self

    def eval(self) -> ScriptModule:
        return self.train(False)

    # -- saving

    def define(self, source: str) -> None:
        """Add the methods that the text defines.  Raises CompileError."""
        _define(self, source)

    def save(self, path: PathOrFile, _extra_files: Mapping[str, str | bytes] | None = None) -> None:
        _refuse_python_calls(self._ivalue.type)
        save_archive(self._ivalue, path, _extra_files, run_function)

    def save_to_buffer(self, _extra_files: Mapping[str, str | bytes] | None = None) -> bytes:
        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()

    # -- containers: children that are named by numbers

    def __getitem__(self, index: int | str) -> ScriptModule:
        return dict(self.named_children())[index] if isinstance(index, str) else list(self.children())[index]

    def __len__(self) -> int:
        return sum(1 for _ in self.children())

    def __iter__(self) -> Iterator[ScriptModule]:
        return self.children()

    def __contains__(self, name: str) -> bool:
        return name in dict(self.named_children())

    def __bool__(self) -> bool:
        return True

    # -- inside

    def _tensors_(self, kind: str) -> Iterator[tuple[str, Tensor]]:
        for attribute in self._ivalue.type.attributes:
            value = self._ivalue.get(attribute.name)
            if attribute.kind == kind and isinstance(value, Tensor):
                yield attribute.name, value

    def _paths_(self, prefix: str) -> Iterator[tuple[str, ScriptModule]]:
        """This module and all inside, as often as they occur.  Raises ArgumentError where that has no end."""
        self._refuse_entangled_()
        return ((name, wrap(module)) for name, module in every_place(self._ivalue, prefix))

    def _refuse_entangled_(self) -> None:
        if is_entangled(self._ivalue):
            text = f"the modules inside {self.original_name} share each other in more than {MOST_PLACES:,} places"
            raise ArgumentError(text, hints=("named_modules() tells each once",))

    def _named_tensors_(
        self, kind: str, prefix: str, recurse: bool, *, once: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for path, module in self.named_modules(prefix) if recurse else [(prefix, self)]:
            for name, tensor in module._tensors_(kind):
                if not once or id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield (f"{path}.{name}" if path else name), tensor

    def extra_repr(self) -> str:
        """What `repr` shows in the module's brackets."""
        return f"original_name={self.original_name}"

    def __repr__(self) -> str:
        if is_entangled(self._ivalue):  # there is no end to what could be shown
            return f"RecursiveScriptModule(original_name={self.original_name}, ...)"
        children = [f"({name}): {child!r}" for name, child in self.named_children()]
        if not children:
            return f"RecursiveScriptModule(original_name={self.original_name})"
        inner = "\n".join([f"original_name={self.original_name}", *children]).replace("\n", "\n  ")
        return f"RecursiveScriptModule(\n  {inner}\n)"


def wrap(value: Object) -> Any:
    """The wrapper of an object, the same one as long as somebody holds it."""
    wrapper = _wrappers.get(id(value))
    if wrapper is None:
        wrapper = (ScriptModule if value.type.is_module else python_class_of(value.type))(value)
        _wrappers[id(value)] = wrapper
    return wrapper


def _refuse_python_calls(type: ClassType) -> None:
    """Raises ArchiveError if a method, here or further inside, calls Python."""
    waiting, seen = [type], {type}
    while waiting:
        each = waiting.pop()
        inside = {a.type for a in each.attributes if isinstance(a.type, ClassType)} - seen
        seen |= inside
        waiting += inside
        for method in each.methods.values():
            if isinstance(method, Function):
                refuse_python_calls(method)


_wrappers: WeakValueDictionary[int, ScriptObject] = WeakValueDictionary()
_python_attribute: Callable[[ScriptModule, str], Any] = lambda module, name: None  # noqa: E731  (until compilers come)
_define: Callable[[ScriptModule, str], None]
_class_maker: Callable[[str, tuple[type, ...], dict[str, Any]], Any]
set_object_wrapper(wrap)


def set_python_side(attribute: Callable[[ScriptModule, str], Any], define: Callable[[ScriptModule, str], None]) -> None:
    """Say what a module's Python class offers besides what is compiled, and how methods are added."""
    global _python_attribute, _define
    _python_attribute, _define = attribute, define


def set_class_maker(make: Callable[[str, tuple[type, ...], dict[str, Any]], Any]) -> None:
    """Say how classes derived from ScriptModule are made."""
    global _class_maker
    _class_maker = make
