"""Compiled functions, methods and instances of script classes as Python sees them.

In: `Function`s and `Object`s.  Out: callables and objects with PyTorch's names.  A wrapper holds no state of its own
(`_ivalue` is the object, `_function` the function), so two wrappers of one object show the same.
"""

from __future__ import annotations

import copy
import inspect
import io
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from engine.aten.values.hooks import HOOKS
from engine.aten.values.ivalue import CustomObject, Object
from engine.aten.values.tensor import Tensor
from engine.executor.calls.call import Boundary, call_function
from engine.executor.conversion.from_python import Mismatch, from_python, unwrapped
from engine.executor.conversion.to_python import to_python
from engine.executor.interpreter.interpreter import run_function
from engine.executor.interpreter.interrupts import DIRECT_CALLS
from engine.executor.plans.executor import executor_of
from engine.executor.plans.plan import RECENT
from engine.executor.plans.switches import SWITCHES
from engine.ir.clone import copy_graph
from engine.ir.unit import Function
from engine.lang.deferred import deferred
from engine.lang.errors import ArchiveError, ArgumentError, MissingOperatorError, did_you_mean
from engine.lang.types import ClassType, InterfaceType, Type
from engine.passes.pipeline import run_pass
from engine.serialize.archive import PathOrFile, save_archive
from engine.torch.compiled.debug_state import GraphExecutorState
from engine.torch.compiled.schemas import FunctionSchema

if TYPE_CHECKING:
    from engine.executor.plans import explanation
    from engine.serialize.code import python_text, source_export
    from engine.torch.compiled import graphs
else:
    graphs = deferred("engine.torch.compiled.graphs")
    explanation = deferred("engine.executor.plans.explanation")
    python_text = deferred("engine.serialize.code.python_text")
    source_export = deferred("engine.serialize.code.source_export")


class _Signature:
    """The `__signature__` of a compiled function, which its class has none of."""

    def __get__(self, instance: Any, owner: Any = None) -> inspect.Signature | None:
        return None if instance is None else _python_signature(instance._function, isinstance(instance, ScriptMethod))


def _python_signature(function: Function, is_bound: bool) -> inspect.Signature:
    """The parameters with their types, as Python tells them."""
    parameters = []
    for argument in function.signature.arguments[is_bound:]:
        kind = inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = argument.default if argument.has_default else inspect.Parameter.empty
        annotation = Annotation(argument.type.annotation_str)
        parameters.append(inspect.Parameter(argument.name, kind, default=default, annotation=annotation))
    returns = [each.type.annotation_str for each in function.signature.returns]
    return inspect.Signature(parameters, return_annotation=Annotation(returns[0] if returns else "None"))


class Annotation:
    """A type as a signature shows it, without quotation marks."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class _Compiled:
    """The base of compiled functions and methods: names, schema, graphs, code, calls."""

    __slots__ = ("__weakref__", "_function")
    __signature__ = _Signature()

    def __init__(self, function: Function) -> None:
        self._function = function

    @property
    def name(self) -> str:
        return self._function.name

    @property
    def qualified_name(self) -> str:
        return self._function.qualname

    @property
    def schema(self) -> FunctionSchema:
        return FunctionSchema(self._function.signature)

    @property
    def graph(self) -> graphs.Graph:
        """The graph as it was compiled."""
        if self._function.program is not None:
            self._function.program.open()
        if not graphs.PRINTING.inlined:
            return graphs.Graph(self._function.graph)
        graph = graphs.PRINTING.inlined_graphs.get(self._function)
        if graph is None:
            graph = graphs.PRINTING.inlined_graphs[self._function] = copy_graph(self._function.graph)
            graphs.inline_with_forks(graph)
        return graphs.Graph(graph)

    @property
    def inlined_graph(self) -> graphs.Graph:
        """A copy of the graph with the calls of other functions replaced by their graphs."""
        graph = copy_graph(self._function.graph)
        run_pass("inline", graph)
        return graphs.Graph(graph)

    @property
    def code(self) -> str:
        """The graph as Python source."""
        return source_export.function_code(self._function)

    def graph_for(self, *args: Any, **kwargs: Any) -> graphs.Graph:
        """Call the function with the arguments, and return the optimized graph that ran."""
        self(*args, **kwargs)
        return graphs.Graph(executor_of(self._function).optimized_graph)

    def get_debug_state(self) -> GraphExecutorState:
        """The generic graph and the plans that calls have made, whose bailouts can be asked for."""
        return GraphExecutorState(executor_of(self._function))

    def plans(self) -> tuple[explanation.PlanExplanation, ...]:
        """The plans that calls have made: the arguments that each is for, its passes, kernels, hits and cost."""
        return explanation.explain(self._function).plans

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return call_function(self._function, args, kwargs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.schema}>"


class ScriptFunction(_Compiled):
    """A compiled function.  Calls raise ArgumentError and ExecutionError."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.__name__, self.__qualname__ = function.name, function.qualname
        self.__doc__ = function.doc or None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._function
        entry = function.entry
        if entry is None or kwargs or HOOKS.trace is not None or HOOKS.tracer is not None or SWITCHES.special:
            return call_function(function, args, kwargs)
        RECENT.ran = function.itself
        return entry(*args)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raise PicklingError: an archive keeps the program, and Python's pickles would not."""
        raise PicklingError("ScriptFunction cannot be pickled: torch.jit.save writes it to a file or a buffer")

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptFunction:
        """The function itself, since functions are immutable."""
        return self

    def save(self, path: PathOrFile, _extra_files: Mapping[str, str | bytes] | None = None) -> None:
        """Write an archive; it loads as a module whose `forward` is this function.  Raises ArchiveError."""
        refuse_python_calls(self._function)
        save_archive(self._function, path, _extra_files, run_function)

    def save_to_buffer(self, _extra_files: Mapping[str, str | bytes] | None = None) -> bytes:
        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()


DIRECT_CALLS.add(ScriptFunction.__call__.__code__)


def refuse_python_calls(function: Function) -> None:
    """Raise ArchiveError if the function calls Python."""
    try:
        graph = function.graph
    except MissingOperatorError:
        if function.kept is None:
            raise
        return
    for node in graph.all_nodes():
        if node.kind == "prim::PythonOp":
            has_gradient = node.has_attribute("inplace")
            raise ArchiveError(
                f"Could not export Python function call '{node.attr('name')}'. Remove calls to Python functions "
                "before export.",
                hints=(_WITH_GRADIENT if has_gradient else _IGNORED.format(function.name),),
            )


_IGNORED: Final = "'{}' calls it; mark it @torch.jit.unused to raise there instead"
_WITH_GRADIENT: Final = (
    "trace a version without the torch.autograd.Function, whose operators have gradients of their own"
)


class ConstMap:
    """The constants of a text: `c0`, `c1`, ..., as Python values."""

    def __init__(self, table: python_text.ConstantTable) -> None:
        for index, (value, type) in enumerate(zip(table.values, table.types, strict=True)):
            convert = to_python(type)
            setattr(self, f"c{index}", convert(value) if convert else value)


class ScriptMethod(_Compiled):
    """A method with its object."""

    __slots__ = ("__dict__", "owner")

    def __init__(self, function: Function, owner: Object) -> None:
        super().__init__(function)
        self.owner, self.__doc__ = owner, function.doc or None

    @property
    def code(self) -> str:
        return self.code_with_constants[0]

    @property
    def code_with_constants(self) -> tuple[str, ConstMap]:
        """The graph as Python source, and the constants that it names `CONSTANTS.c0` and so on."""
        table = python_text.ConstantTable()
        printer = source_export.SourcePrinter(lambda _type, name: name, table)
        printer.function(self._function, typed_self=False)
        return str(printer.body), ConstMap(table)

    def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return call_function(self._function, (self.owner, *args), kwargs)


class OverloadedMethod:
    """A method that was compiled once for each of its signatures; a call runs the first that takes the arguments."""

    def __init__(self, methods: Sequence[ScriptMethod]) -> None:
        self.methods = methods

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        refused: list[ArgumentError] = []
        for method in self.methods:
            try:
                Boundary(method._function.schema).inputs((method.owner, *args), kwargs)
            except ArgumentError as error:
                refused.append(error)
                continue
            return method(*args, **kwargs)
        told = "\n\n".join(error.message for error in refused)
        raise ArgumentError(f"No signature of '{self.methods[0].name}' takes these arguments:\n{told}")

    def __repr__(self) -> str:
        return f"<overloaded method of {', '.join(str(method.schema) for method in self.methods)}>"


def overload_methods(type: ClassType, name: str) -> Iterator[Function]:
    """The methods that stand for the signatures of one: `forward__0`, `forward__1` and so on."""
    for index in itertools.count():
        method = type.methods.get(f"{name}__{index}")
        if method is None:
            return
        yield _function(method)


class ScriptObject:
    """An instance of a script class: its attributes and methods by name."""

    __slots__ = ("__weakref__", "_ivalue")
    _ivalue: Object

    def __init__(self, ivalue: Object) -> None:
        object.__setattr__(self, "_ivalue", ivalue)

    def __getattr__(self, name: str) -> Any:
        if name == "_ivalue":
            raise AttributeError(name)  # a copy whose attributes are not set yet
        type = self._ivalue.type
        attribute = type.attribute(name)
        if attribute is not None:
            value, convert = self._ivalue.get(name), to_python(attribute.type)
            return convert(value) if convert else value
        if name in type.methods:
            return ScriptMethod(_function(type.methods[name]), self._ivalue)
        if name in type.properties:
            return call_function(_function(type.properties[name][0]), [self._ivalue])
        if name in type.constants:
            return type.constants[name]
        if overloads := list(overload_methods(type, name)):
            return OverloadedMethod([ScriptMethod(function, self._ivalue) for function in overloads])
        raise AttributeError(self._no_attribute_(name))

    def __setattr__(self, name: str, value: Any) -> None:
        type = self._ivalue.type
        attribute = type.attribute(name)
        if attribute is not None:
            try:
                self._ivalue.set(name, from_python(attribute.type)(value))
            except Mismatch as error:
                raise _unfitting(name, value, attribute.type, str(error)) from None
        elif name in type.properties and type.properties[name][1] is not None:
            call_function(_function(type.properties[name][1]), [self._ivalue, value])
        else:
            raise AttributeError(self._no_attribute_(name))

    def __copy__(self) -> Any:
        """Another object with the same values."""
        return wrapper_of(Object(self._ivalue.type, list(self._ivalue.slots)))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raise TypeError: an archive keeps the program, and Python's pickles would not."""
        raise TypeError("a compiled object cannot be pickled: torch.jit.save writes it to a file or a buffer")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Another object with copies of the values, or with the state that its class saves."""
        return wrapper_of(copied(self._ivalue, memo))

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._names_()})

    def _names_(self) -> list[str]:
        type = self._ivalue.type
        return [*(a.name for a in type.attributes), *type.methods, *type.properties, *type.constants]

    def _no_attribute_(self, name: str) -> str:
        hint = "".join(f"; {h}" for h in did_you_mean(name, self._names_()))
        return f"'{self._ivalue.type.name}' object has no attribute '{name}'{hint}"

    def __repr__(self) -> str:
        return f"<{self._ivalue.type.qualname} object>"


class ScriptClass:
    """A class of a program: called, it makes an instance, as the program does."""

    __slots__ = ("__weakref__", "_type")

    def __init__(self, type: ClassType) -> None:
        self._type = type

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = Object(self._type)
        init = self._type.methods.get("__init__")
        if init is not None:
            call_function(_function(init), (made, *args), kwargs)
        return wrapper_of(made)

    def __instancecheck__(self, instance: Any) -> bool:
        inner = getattr(instance, "_ivalue", None)
        return isinstance(inner, Object) and inner.type is self._type

    def __getattr__(self, name: str) -> Any:
        static = self._type.static_methods.get(name)
        if static is None:
            raise AttributeError(f"class '{self._type.name}' has no static method '{name}'")
        return ScriptFunction(_function(static))

    def __repr__(self) -> str:
        return f"<ScriptClass {self._type.qualname}>"


class CompiledModule:
    """Marks the class of compiled modules, ScriptModule, for those that hold modules of either kind."""

    __slots__ = ()


def copied(value: Any, memo: dict[int, Any]) -> Any:
    """A deep copy of a program's value; an object that occurs twice is copied once."""
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, Object):
        return _copied_object(value, memo)
    if isinstance(value, tuple):
        return tuple(copied(part, memo) for part in value)
    if isinstance(value, list):
        made: list[Any] = []
        memo[id(value)] = made
        made += [copied(part, memo) for part in value]
        return made
    if isinstance(value, dict):
        return memo.setdefault(id(value), {copied(k, memo): copied(v, memo) for k, v in value.items()})
    return copy.deepcopy(value, memo) if isinstance(value, (Tensor, ScriptObject)) else value


def _copied_object(value: Object, memo: dict[int, Any]) -> Object:
    if isinstance(value, CustomObject):  # immutable
        return value
    type = value.type
    memo[id(value)] = made = Object(type)
    if "__getstate__" in type.methods and "__setstate__" in type.methods:
        state = run_function(_function(type.methods["__getstate__"]), [value])
        run_function(_function(type.methods["__setstate__"]), [made, copied(state, memo)])
    else:
        made.slots = [copied(slot, memo) for slot in value.slots]
    return made


def wrapper_of(value: Object) -> Any:
    """The Python wrapper of the object, converted as any result is."""
    convert = to_python(value.type)
    assert convert is not None
    return convert(value)


_python_classes: Final[WeakKeyDictionary[ClassType, type[ScriptObject]]] = WeakKeyDictionary()


def python_class_of(script_class: ClassType) -> type[ScriptObject]:
    """ScriptObject with the special methods that the script class defines, which Python looks up in the class."""
    known = _python_classes.get(script_class)
    if known is None:
        special = {name: _forward(name) for name in script_class.methods if name in _SPECIAL_METHODS}
        members = special | _as_instances_of(script_class.python_class)
        known = type(script_class.name, (ScriptObject,), {"__slots__": (), **members}) if members else ScriptObject
        _python_classes[script_class] = known
    return known


def _as_instances_of(cls: Any) -> dict[str, Any]:
    """Members by which objects pass for instances of the Python class that their own was made of, if there is one."""
    if cls is None:
        return {}
    shown = {"__repr__": _shown_as_in_python} if cls.__repr__ is not object.__repr__ else {}
    return {"__class__": property(_made_of), **shown}


def _made_of(self: ScriptObject) -> Any:
    """The Python class; asked of the type, since whoever held it here would keep both for good."""
    return self._ivalue.type.python_class or type(self)


def _shown_as_in_python(self: ScriptObject) -> str:
    text: str = _made_of(self).__repr__(self)
    return text


def _forward(name: str) -> Callable[..., Any]:
    return lambda self, *args: self.__getattr__(name)(*args)


def _function(callee: Any) -> Function:
    assert isinstance(callee, Function), f"{callee!r} has no body"
    return callee


_SPECIAL_NAMES: Final = (
    "len abs neg bool int float str repr contains getitem setitem delitem call add sub mul truediv floordiv mod pow "
    "matmul and or xor eq ne lt le gt ge iadd isub imul itruediv radd rsub rmul hash iter next enter exit"
)
_SPECIAL_METHODS: Final = frozenset(f"__{name}__" for name in _SPECIAL_NAMES.split())


def _unfitting(name: str, value: Any, type: Type, reason: str) -> ArgumentError:
    """The error for a value that the attribute does not take; a module of Python has to be compiled first."""
    is_module, inner = isinstance(type, (ClassType, InterfaceType)) and type.is_module, unwrapped(value)
    if isinstance(type, ClassType) and isinstance(inner, Object):
        wanted, found = (f"'{each.qualname} (class at {id(each):#x})'" for each in (type, inner.type))
        return ArgumentError(f"Expected a value of type {wanted} for field '{name}', but found {found}")
    if is_module and inner is None and getattr(value, "_torchscript_module", False):
        message = "Cannot re-assign modules in a ScriptModule with non-scripted module, tried to replace existing "
        message += f"module '{name}': {value!r}"
        return ArgumentError(message, hints=["compile it first: torch.jit.script(module)"])
    message = f"Could not cast attribute '{name}' to type {type.annotation_str}: {value!r}"
    return ArgumentError(message, hints=[reason] if reason else [])
