"""Compiled modules as Python sees them, and classes that programs derive from them.

In: an `Object` whose class is a module's.  Out: `ScriptModule`: attributes, submodules and methods by name, parameters
and buffers, `state_dict`, modes, saving.  `wrap` gives any object its wrapper.

In: `class Net(torch.jit.ScriptModule)` with methods marked `@torch.jit.script_method`, and `self.define(text)`.  Out: a
class whose `Net(...)` runs `__init__` on a Python module (an `UncompiledModule`) and returns it compiled.
"""

from __future__ import annotations

import inspect
import io
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from textwrap import dedent
from types import MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from engine.aten.values.ivalue import Object
from engine.aten.values.submodules import MOST_PLACES, children_of, each_module, every_place, is_entangled
from engine.aten.values.tensor import Tensor
from engine.executor.calls.call import call_function
from engine.executor.conversion.to_python import PYTHON_CLASSES
from engine.executor.interpreter.interpreter import run_function
from engine.frontend.python.modifiers import IGNORED, modifier_of
from engine.ir.unit import DEFINING, Function
from engine.lang.deferred import deferred
from engine.lang.errors import ArgumentError, MissingAttributeError
from engine.lang.types import ClassType
from engine.serialize.archive import Form, PathOrFile, save_archive
from engine.torch.compiled.debug_state import GraphExecutorState
from engine.torch.compiled.objects import CompiledModule, ConstMap, ScriptObject, python_class_of, refuse_python_calls
from engine.torch.jit.scripting.enabled import ENABLED
from engine.torch.jit.scripting.module_handle import ModuleHandle
from engine.torch.nn.modules.module import Module, replace_each

if TYPE_CHECKING:
    from engine.frontend.python import module_description
    from engine.frontend.sugared import modules as sugared_modules
    from engine.torch.compiled.graphs import Graph
    from engine.torch.jit.probing import cutting, taps
    from engine.torch.jit.scripting import python_program as program
else:
    module_description = deferred("engine.frontend.python.module_description")
    sugared_modules = deferred("engine.frontend.sugared.modules")
    program = deferred("engine.torch.jit.scripting.python_program")
    cutting = deferred("engine.torch.jit.probing.cutting")
    taps = deferred("engine.torch.jit.probing.taps")


class _Derivable(type):
    """Metaclass that turns a class derived from ScriptModule into one derived from `UncompiledModule`."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        if not any(isinstance(base, _Derivable) for base in bases):
            return super().__new__(mcls, name, bases, namespace)
        replaced = tuple(UncompiledModule if base is ScriptModule else base for base in bases)
        return CompiledAtOnce(name, replaced, namespace)


class _Overridable:
    """A method of compiled modules that a program's own attribute or method of that name overrides."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._name, self._method = method.__name__, method

    def __get__(self, module: ScriptModule | None, _owner: type) -> Any:
        if module is None:
            return self._method
        of = module._ivalue.type
        named = (*of.methods, *of.properties, *of.constants)
        taken = of.attribute(self._name) is not None or self._name in named
        return module.__getattr__(self._name) if taken else partial(self._method, module)


class ScriptModule(ScriptObject, CompiledModule, metaclass=_Derivable):
    """A compiled module.  Python may add attributes, which the compiled program does not see.

    Private names end in an underscore, since programs have methods like `_forward` of their own.
    """

    __slots__ = ("__dict__",)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        type = self._ivalue.type
        try:
            forward = self.__getattr__("forward")
        except AttributeError:
            known = ", ".join(type.methods) or "none"
            text = f"'{type.qualname}' cannot be called: it has no method 'forward'; its methods: {known}"
            raise MissingAttributeError(text) from None
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
            left = program.LEFT_TO_PYTHON.get(self._ivalue, {})
            if name in left:
                return left[name]
            found = None if name.startswith("_") else _python_attribute(self, name)
            if found is None:
                raise
            return found

    def __setattr__(self, name: str, value: Any) -> None:
        type = self._ivalue.type
        if name in type.constants:
            raise ArgumentError(
                f"Can't set constant '{name}' which has value:{type.constants[name]}",
                hints=["make it an attribute: leave it out of __constants__, and without Final"],
            )
        if type.attribute(name) is not None or name in type.properties:
            super().__setattr__(name, value)
        else:
            object.__setattr__(self, name, value)

    @property
    def original_name(self) -> str:
        return self._ivalue.type.name

    @property
    def _c(self) -> ModuleHandle:
        """The module as `torch._C.ScriptModule`; set, it makes this the wrapper of the other module."""
        return ModuleHandle(self)

    @_c.setter
    def _c(self, handle: ModuleHandle) -> None:
        object.__setattr__(self, "_ivalue", handle._module._ivalue)

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

    @property
    def code_with_constants(self) -> tuple[str, ConstMap]:
        """The text of `forward`, and the constants that it names `CONSTANTS.c0` and so on."""
        found: tuple[str, ConstMap] = self._forward_method_().code_with_constants
        return found

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        graph: Graph = self._forward_method_().graph_for(*args, **kwargs)
        return graph

    def get_debug_state(self) -> GraphExecutorState:
        """That of `forward`."""
        state: GraphExecutorState = self._forward_method_().get_debug_state()
        return state

    # -- parts

    def named_children(self) -> Iterator[tuple[str, ScriptModule]]:
        return ((name, wrap(child)) for name, child in children_of(self._ivalue))

    def children(self) -> Iterator[ScriptModule]:
        return (child for _, child in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, ScriptModule]]:
        """This module and all its submodules, each once, under its first path."""
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
        """Name -> tensor: for each module its parameters, then its buffers, then those of its children.

        A module whose program has a method `_save_to_state_dict` is left to that, which cannot add to a copy.
        """
        found: OrderedDict[str, Tensor] = OrderedDict()
        for path, module in self._paths_(""):
            place = f"{prefix}{path}." if path else prefix
            if "_save_to_state_dict" in module._ivalue.type.methods:
                module.__getattr__("_save_to_state_dict")(dict(found), place, keep_vars)
                continue
            for kind in ("parameter", "buffer"):
                for name, value in module._tensors_(kind):
                    found[place + name] = value if keep_vars else value.detach()
        return found

    def apply(self, fn: Callable[[ScriptModule], Any]) -> ScriptModule:
        """Call `fn` with every submodule, and then with this module.  Raises ArgumentError for too many paths."""
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

    # -- looking inside while it runs; see `engine.torch.jit.probing`

    @_Overridable
    def tap(self, *patterns: str, copy: bool = True) -> taps.Taps:
        """Taps on these patterns, for a `with` block.  Raises ArgumentError for an unknown path."""
        return taps.Taps(self._ivalue, patterns, copy=copy)

    @_Overridable
    def run_until(self, pattern: str, *args: Any, **kwargs: Any) -> Any:
        """Call the module up to the first value at the tapped place, and return that value.

        Raises ArgumentError if the call ends first.  Side effects up to there are not undone.
        """
        opened = taps.Taps(self._ivalue, (pattern,), stop=True)
        taps.stopped_at(opened, pattern, lambda: self(*args, **kwargs))
        return next(iter(opened.values.values()))

    @_Overridable
    def cut(self, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> ScriptModule:
        """The part of the module between these places; without `inputs`, from the arguments that it needs.

        Raises ArgumentError for an unknown place, or one where a cut is not possible.
        """
        part: ScriptModule = wrap(cutting.cut(self._ivalue, inputs, outputs))
        return part

    # -- saving

    def define(self, source: str) -> None:
        """Compile the methods in the text and add them.  Raises CompileError."""
        concrete = program.MODULES.of_type(self._ivalue.type)
        with DEFINING, program.PYTHON.attempt():
            program.MODULES.define(concrete, dedent(source))
            program.MODULES.compile(concrete)

    def save(self, path: PathOrFile, _extra_files: Mapping[str, str | bytes] | None = None) -> None:
        _refuse_python_calls(self._ivalue.type)
        save_archive(self._ivalue, path, _extra_files, run_function)

    def save_to_buffer(self, _extra_files: Mapping[str, str | bytes] | None = None) -> bytes:
        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()

    def _save_for_lite_interpreter(
        self,
        path: PathOrFile,
        _extra_files: Mapping[str, str | bytes] | None = None,
        _save_mobile_debug_info: bool = False,
        _use_flatbuffer: bool = False,
    ) -> None:
        """Write an archive with bytecode for phones, or a flatbuffer.

        Debug information for phones is not written; the code is, which has the lines.  Raises ArchiveError,
        CompileError, NotSupportedError for contexts and forks, which bytecode does not have.
        """
        _refuse_python_calls(self._ivalue.type)
        form: Form = "flatbuffer" if _use_flatbuffer else "mobile"
        save_archive(self._ivalue, path, _extra_files, run_function, form=form)

    def _save_to_buffer_for_lite_interpreter(
        self,
        _extra_files: Mapping[str, str | bytes] | None = None,
        _save_mobile_debug_info: bool = False,
        _use_flatbuffer: bool = False,
    ) -> bytes:
        buffer = io.BytesIO()
        self._save_for_lite_interpreter(buffer, _extra_files, _save_mobile_debug_info, _use_flatbuffer)
        return buffer.getvalue()

    @property
    def _modules(self) -> dict[str, ScriptModule]:
        return OrderedDict(self.named_children())

    @property
    def _parameters(self) -> dict[str, Tensor]:
        return OrderedDict(self._tensors_("parameter"))

    @property
    def _buffers(self) -> dict[str, Tensor]:
        return OrderedDict(self._tensors_("buffer"))

    def __dir__(self) -> list[str]:
        """Names, those too that stay in Python."""
        return sorted({*super().__dir__(), *dir(self._ivalue.type.python_class or ())})

    # -- containers: children that are named by numbers

    def __getitem__(self, index: int | str) -> ScriptModule:
        own = self._own_("__getitem__")
        if own is not None:
            found: ScriptModule = own(index)
            return found
        return dict(self.named_children())[index] if isinstance(index, str) else list(self.children())[index]

    def __len__(self) -> int:
        own = self._own_("__len__")
        return int(own()) if own is not None else sum(1 for _ in self.children())

    def __iter__(self) -> Iterator[ScriptModule]:
        cls = self._ivalue.type.python_class
        if cls is not None and not hasattr(cls, "__iter__"):
            raise TypeError(f"'{self.original_name}' object is not iterable; children() goes through its submodules")
        return self.children()

    def __contains__(self, name: str) -> bool:
        own = self._own_("__contains__")
        return bool(own(name)) if own is not None else name in dict(self.named_children())

    def __bool__(self) -> bool:
        return True

    def _own_(self, name: str) -> Any:
        """The program's own special method of that name."""
        return self.__getattr__(name) if name in self._ivalue.type.methods else None

    # -- methods of `Module` that ask a module only for its parameters, buffers and children

    to: Any = Module.to
    float: Any = Module.float
    double: Any = Module.double
    half: Any = Module.half
    bfloat16: Any = Module.bfloat16
    cpu: Any = Module.cpu
    cuda: Any = Module.cuda
    type: Any = Module.type
    to_empty: Any = Module.to_empty
    share_memory: Any = Module.share_memory
    requires_grad_: Any = Module.requires_grad_
    zero_grad: Any = Module.zero_grad
    get_submodule: Any = Module.get_submodule
    load_state_dict: Any = Module.load_state_dict

    def _apply(self, fn: Callable[[Tensor], Any], recurse: bool = True) -> ScriptModule:
        """Replace the values of every parameter and buffer by `fn` of them."""
        replace_each((*self.parameters(recurse), *self.buffers(recurse)), fn)
        return self

    # -- inside

    def _tensors_(self, kind: str) -> Iterator[tuple[str, Tensor]]:
        for attribute in self._ivalue.type.attributes:
            value = self._ivalue.get(attribute.name)
            if attribute.kind == kind and isinstance(value, Tensor):
                yield attribute.name, value

    def _paths_(self, prefix: str) -> Iterator[tuple[str, ScriptModule]]:
        """This module and its submodules under all their paths.  Raises ArgumentError if there are too many paths."""
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
        """The text that `repr` shows in the module's parentheses."""
        return f"original_name={self.original_name}"

    def __repr__(self) -> str:
        if is_entangled(self._ivalue):  # the full text would be endless
            return f"RecursiveScriptModule(original_name={self.original_name}, ...)"
        children = [f"({name}): {child!r}" for name, child in self.named_children()]
        if not children:
            return f"RecursiveScriptModule(original_name={self.original_name})"
        inner = "\n".join([f"original_name={self.original_name}", *children]).replace("\n", "\n  ")
        return f"RecursiveScriptModule(\n  {inner}\n)"


def wrap(value: Object) -> Any:
    """The Python wrapper of an object, the same one as long as it is referenced."""
    wrapper = _wrappers.get(id(value))
    if wrapper is None:
        wrapper = (ScriptModule if value.type.is_module else python_class_of(value.type))(value)
        _wrappers[id(value)] = wrapper
    return wrapper


def _refuse_python_calls(type: ClassType) -> None:
    """Raise ArchiveError if a method of the module or of a submodule calls Python."""
    waiting, seen = [type], {type}
    while waiting:
        each = waiting.pop()
        inside = {a.type for a in each.attributes if isinstance(a.type, ClassType)} - seen
        seen |= inside
        waiting += inside
        for method in each.methods.values():
            if isinstance(method, Function):
                refuse_python_calls(method)


def _python_attribute(module: ScriptModule, name: str) -> Any:
    """A method that stays in Python, or that which a class whose modules are compiled at once has; else None.

    A method that the one module was given comes before that of its class.
    """
    type = module._ivalue.type
    cls, concrete = type.python_class, type.concrete
    description = concrete.description if isinstance(concrete, sugared_modules.ConcreteModule) else None
    own = dict(description.own_methods) if isinstance(description, module_description.Description) else {}
    member = own.get(name) or (None if cls is None else inspect.getattr_static(cls, name, None))
    if inspect.isfunction(member) and modifier_of(member) in IGNORED:
        return MethodType(member, module)
    return cls.attribute(module, name) if isinstance(cls, CompiledAtOnce) else None


_wrappers: WeakValueDictionary[int, ScriptObject] = WeakValueDictionary()
PYTHON_CLASSES.wrap_object = wrap


# -- classes derived from ScriptModule


class CompiledAtOnce(type):
    """Metaclass whose instances' calls return a module compiled after its `__init__`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        module = super().__call__(*args, **kwargs)
        if not ENABLED.now:
            return module
        with DEFINING, program.PYTHON.attempt():
            return wrap(program.module_object(module))

    def attribute(cls, module: ScriptModule, name: str) -> Any:
        """A method of the class that was not compiled with the module, for Python; None without one."""
        member = inspect.getattr_static(cls, name, None)
        return MethodType(member, module) if inspect.isfunction(member) else None

    def __instancecheck__(cls, instance: Any) -> bool:
        if not isinstance(instance, ScriptModule):
            return super().__instancecheck__(instance)
        made_of = instance._ivalue.type.python_class
        return made_of is not None and issubclass(made_of, cls)


class UncompiledModule(Module, metaclass=CompiledAtOnce):
    """The Python module that is `self` in the `__init__` of a class derived from ScriptModule."""

    _script_methods_only = True

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_definitions", [])

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, module_description.AnnotatedValue):  # its type is kept, and `__init__` reads the value
            vars(self).setdefault(module_description.ATTRIBUTE_TYPES, {})[name] = value.type
            value = value.value
        super().__setattr__(name, value)

    def define(self, source: str) -> None:
        """Record methods in TorchScript text, which are compiled with the module."""
        self._definitions.append(dedent(source))
