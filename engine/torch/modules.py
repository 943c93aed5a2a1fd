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

from engine.aten.ivalue import Object
from engine.aten.tensor import Tensor
from engine.executor.call import call_function
from engine.executor.interpreter import run_function
from engine.executor.to_python import set_object_wrapper
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang.errors import ArchiveError, ArgumentError
from engine.lang.types import ClassType
from engine.serialize.archive import PathOrFile, save_archive
from engine.torch.objects import ScriptObject, python_class_of


class _Derivable(type):
    """Programs may derive classes from ScriptModule; these are made elsewhere."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        derived = any(isinstance(base, _Derivable) for base in bases)
        return _class_maker(name, bases, namespace) if derived else super().__new__(mcls, name, bases, namespace)


class ScriptModule(ScriptObject, metaclass=_Derivable):
    """A compiled module."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        forward, type = self.__getattr__("forward"), self._ivalue.type
        if not type.forward_pre_hooks and not type.forward_hooks:
            return forward(*args, **kwargs)
        for hook in type.forward_pre_hooks:
            changed = self._run_hook(hook, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = forward(*args, **kwargs)
        for hook in type.forward_hooks:
            changed = self._run_hook(hook, args, result)
            result = result if changed is None else changed
        return result

    def _forward(self) -> Any:
        if "forward" not in self._ivalue.type.methods:
            raise ArgumentError(f"Method 'forward' is not defined: {self.original_name} has no such method")
        return self.__getattr__("forward")

    def _run_hook(self, hook: Any, *args: Any) -> Any:
        return call_function(hook, (self._ivalue, *args))

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            found = None if name.startswith("_") else _python_attribute(self, name)
            if found is None:
                raise
            return found

    @property
    def original_name(self) -> str:
        return self._ivalue.type.name

    @property
    def graph(self) -> Graph:
        graph: Graph = self._forward().graph
        return graph

    @property
    def inlined_graph(self) -> Graph:
        graph: Graph = self._forward().inlined_graph
        return graph

    @property
    def code(self) -> str:
        code: str = self._forward().code
        return code

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        graph: Graph = self._forward().graph_for(*args, **kwargs)
        return graph

    # -- parts

    def named_children(self) -> Iterator[tuple[str, ScriptModule]]:
        for attribute, value in self._slots():
            if _is_module(value):
                yield attribute, wrap(value)

    def children(self) -> Iterator[ScriptModule]:
        return (child for _, child in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, ScriptModule]]:
        """This module and all inside, each once, under the first of its names."""
        seen: set[int] = set()
        for name, module in self._paths(prefix):
            if id(module._ivalue) not in seen:
                seen.add(id(module._ivalue))
                yield name, module

    def modules(self) -> Iterator[ScriptModule]:
        return (module for _, module in self.named_modules())

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        return self._named_tensors("parameter", prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        return (tensor for _, tensor in self.named_parameters("", recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        return self._named_tensors("buffer", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        return (tensor for _, tensor in self.named_buffers("", recurse))

    def state_dict(self) -> OrderedDict[str, Tensor]:
        """Name -> tensor: of each module first its parameters, then its buffers, then what its children have."""
        return OrderedDict(
            (f"{path}.{name}".lstrip("."), value)
            for path, module in self._paths("")
            for kind in ("parameter", "buffer")
            for name, value in module._tensors(kind)
        )

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
        refuse_python_calls(self._ivalue.type)
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

    def __bool__(self) -> bool:
        return True

    # -- inside

    def _slots(self) -> Iterator[tuple[str, Any]]:
        return ((a.name, v) for a, v in zip(self._ivalue.type.attributes, self._ivalue.slots, strict=False))

    def _tensors(self, kind: str) -> Iterator[tuple[str, Tensor]]:
        for attribute in self._ivalue.type.attributes:
            value = self._ivalue.get(attribute.name)
            if attribute.kind == kind and isinstance(value, Tensor):
                yield attribute.name, value

    def _paths(self, prefix: str) -> Iterator[tuple[str, ScriptModule]]:
        """This module and all inside, as often as they occur."""
        yield prefix, self
        for name, child in self.named_children():
            yield from child._paths(f"{prefix}.{name}" if prefix else name)

    def _named_tensors(self, kind: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for path, module in self.named_modules(prefix) if recurse else [(prefix, self)]:
            for name, tensor in module._tensors(kind):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield (f"{path}.{name}" if path else name), tensor

    def __repr__(self) -> str:
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


def _is_module(value: Any) -> bool:
    return isinstance(value, Object) and value.type.is_module


def refuse_python_calls(type: ClassType) -> None:
    """Raises ArchiveError if a method, here or further inside, calls Python."""
    for attribute in type.attributes:
        if isinstance(attribute.type, ClassType):
            refuse_python_calls(attribute.type)
    for method in type.methods.values():
        graph = method.graph if isinstance(method, Function) else None
        for node in graph.all_nodes() if graph is not None else ():
            if node.kind == "prim::PythonOp":
                raise ArchiveError(
                    f"Could not export Python function call '{node.attr('name')}'. Remove calls to Python functions "
                    "before export.",
                    hints=(f"{type.name}.{method.name} calls it; mark it @torch.jit.unused to raise there instead",),
                )


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
