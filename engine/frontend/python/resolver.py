"""Python functions and classes as TorchScript.

In: a Python function or class.  Out: the compiled function, or the type.  Names have their meaning in Python: the
function's closure, its module's globals, the builtins.  Functions and classes that it uses are compiled with it, each
once.  Nothing of the program runs.
"""

from __future__ import annotations

import builtins
import cmath
import enum
import inspect
import math
import types
import typing
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, is_dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from engine.aten.dispatch import table
from engine.aten.values.awaits import Await
from engine.aten.values.ivalue import EnumValue, Object
from engine.aten.values.tensor import Tensor
from engine.frontend.compilation.class_definitions import enum_type
from engine.frontend.compilation.compile import declare, define_class, signature_of
from engine.frontend.names.namespaces import MathNamespace, TorchNamespace
from engine.frontend.names.resolve import qualified, type_value
from engine.frontend.names.type_annotations import TypeReader, no_contained_type
from engine.frontend.python.dataclass_methods import classes_of, flattened, is_frozen, is_generated
from engine.frontend.python.ignored_blocks import BLOCKS
from engine.frontend.python.ignored_functions import PythonFunction
from engine.frontend.python.modifiers import IGNORED, ORIGINAL, modifier_of
from engine.frontend.python.namespaces import COMPILED_MODULES, HOMES, PythonModule, PythonTorchNamespace, in_library
from engine.frontend.python.overloads import overloads_of, refuse_missing_implementation, with_signature
from engine.frontend.python.trees import methods_by_name, tree_from_class, tree_from_function
from engine.frontend.sugared.classes import ClassValue, ConstantValue, ExceptionClass, FunctionValue, ObjectClass
from engine.frontend.sugared.python_values import SCALARS, PythonValue
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import BuiltinFunction, DeviceClass, SpecialForm, SugaredTuple
from engine.frontend.syntax.parser import parse_expression
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Def, Var
from engine.ir.unit import DEFINING, CompilationUnit, Function, shared_unit
from engine.lang import scalars
from engine.lang.errors import CallFrame, CompileError
from engine.lang.records import dataclass
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.source import Source, SourceRange
from engine.lang.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    InterfaceType,
    ListType,
    TupleType,
    Type,
    union_of,
)  # fmt: skip

_TORCH_MODULES: Final = {"engine": "torch", "engine.torch": "torch"}
_TYPES: Final[dict[Any, Type]] = {
    Tensor: TENSOR, int: INT, float: FLOAT, complex: COMPLEX, bool: BOOL, str: STR, None: NONE, type(None): NONE,
    scalars.device: DEVICE, scalars.dtype: INT, Any: ANY, Await: AwaitType(ANY),
}  # fmt: skip
NOWHERE: Final = SourceRange(Source(""), 0, 0)
INTERFACE: Final = "_torchscript_interface"
"""The attribute of classes that are interfaces."""


_COMPILED: Final = "__torchscript__"
"""The attribute of functions and classes with what was compiled of them."""


@dataclass(eq=False, slots=True)
class _Compiled:
    """The parts that a unit has compiled of one function or class, which owns them: all go together.

    `of` is the owner, since `functools.wraps` copies attributes.  `overloads` has the functions by signature.
    """

    unit: CompilationUnit
    of: Any
    function: Function | None = None
    type: Type | None = None
    adopted: Type | None = None
    """The type of another unit that the class was made of."""
    overloads: dict[Callable[..., Any], Function] = field(default_factory=dict)


class PythonUnit:
    """The compiled functions and classes of a Python program, each once, under `__torch__.module.name`."""

    def __init__(self) -> None:
        self.unit = shared_unit()
        self._begun: dict[type, str] = {}
        """The classes that are being compiled, and the names of their types, which their own code may use."""

    def function(self, fn: Callable[..., Any]) -> Function:
        """The function, declared; it is compiled when it is first needed.  Raises CompileError."""
        fn = getattr(fn, ORIGINAL, fn)
        with DEFINING, self.attempt():
            known = self._compiled(fn).function
            if known is not None and self._has(known):
                return known
            tree = tree_from_function(fn)
            prefix = self._free_prefix(fn)
            (function,) = declare(self.unit, [tree], PythonResolver(self, names_of(fn)), prefix)
            function.doc = inspect.getdoc(fn) or ""
            self._compiled(fn).function = function
        return function

    def begin_anew(self) -> None:
        """Compile all again that is asked for from now on; names are free.  Programs keep what they were made of."""
        with DEFINING:
            self.unit = shared_unit()

    def forget(self, thing: Callable[..., Any] | type) -> None:
        """Compile the function or class anew when it is next needed: its code, or what that calls, has changed."""
        if _COMPILED in vars(thing):
            delattr(thing, _COMPILED)

    def known_function(self, fn: Callable[..., Any]) -> Function | None:
        """The function, if it was asked for before."""
        found = self._known(getattr(fn, ORIGINAL, fn))
        return found.function if found is not None else None

    def _known(self, thing: Any) -> _Compiled | None:
        found = vars(thing).get(_COMPILED)
        is_own = isinstance(found, _Compiled) and found.of is thing and found.unit is self.unit
        return found if is_own else None

    def _compiled(self, thing: Any) -> _Compiled:
        found = self._known(thing)
        if found is None:
            found = _Compiled(self.unit, thing)
            setattr(thing, _COMPILED, found)
        return found

    def _has(self, function: Function) -> bool:
        """False for a function that was removed again, since what it was compiled with failed."""
        return self.unit.find_function(function.qualname) is function

    def adopt(self, cls: type, type: Type) -> None:
        """Let the Python class, which was made of the type, mean that type."""
        self._compiled(cls).adopted = type

    def type_of(self, cls: type, seen: Mapping[str, Any] | None = None) -> Type:
        """The class, named tuple or enum; its comments may use names `seen` around it, too.  Raises CompileError."""
        compiled = self._known(cls)
        if compiled is not None and compiled.adopted is not None:
            return compiled.adopted
        with DEFINING, self.attempt():
            compiled = self._known(cls)
            known = compiled.type if compiled is not None else self.unit.find_type(self._begun.get(cls, ""))
            if known is not None and self.unit.find_type(known.annotation_str) is known:
                return known
            prefix = self._free_prefix(cls)
            self._begun[cls] = qualified(prefix, cls.__name__)
            try:
                found = self._define(cls, seen or {}, prefix)
            finally:
                del self._begun[cls]
            self._compiled(cls).type = found
            if isinstance(found, ClassType):
                self._finish(cls, found)
        return found

    def _finish(self, cls: type, type: ClassType) -> None:
        """Compile all methods.  Those that `dataclass` generates are left out where the fields do not allow them."""
        for callee in [*type.methods.values(), *type.static_methods.values()]:
            assert isinstance(callee, Function)
            try:
                callee.ensure_defined()
            except CompileError as error:
                if not is_dataclass(cls) or not is_generated(cls, callee.name):
                    raise
                type.methods.pop(callee.name, None)
                self.unit.remove_function(callee.qualname)
                type.unresolved[callee.name] = f"dataclass makes it, but for these fields not: {error.message}"

    def known_type(self, cls: type) -> Type | None:
        """The class, if it was compiled."""
        compiled = self._known(cls)
        return None if compiled is None else compiled.adopted or compiled.type

    def overloads(self, fn: Callable[..., Any]) -> Sequence[Function]:
        """The function, or, where several signatures were declared for it, one function for each of them."""
        signatures = overloads_of(fn)
        if not signatures:
            refuse_missing_implementation(fn)
            return [self.function(fn)]
        return [self._overload(fn, signature) for signature in signatures]

    def _overload(self, fn: Callable[..., Any], signature: Callable[..., Any]) -> Function:
        with DEFINING, self.attempt():
            overloads = self._compiled(fn).overloads
            if signature not in overloads or not self._has(overloads[signature]):
                tree = with_signature(tree_from_function(fn), tree_from_function(signature), fn.__name__)
                resolver = PythonResolver(self, names_of(fn))
                (overloads[signature],) = declare(self.unit, [tree], resolver, self._free_prefix(fn))
            return overloads[signature]

    def attempt(self) -> AbstractContextManager[None]:
        """Compile all of the block or nothing: an error undoes everything.  `with DEFINING, python.attempt()`."""
        return self.unit.attempt()

    def _define(self, cls: type, seen: Mapping[str, Any], prefix: str) -> Type:
        resolver = PythonResolver(self, {**seen, **names_of(cls)}, own=cls)
        if INTERFACE in vars(cls):
            return self._interface(cls, qualified(prefix, cls.__name__), resolver)
        if issubclass(cls, enum.Enum):
            found = enum_type(qualified(prefix, cls.__name__), [(each.name, each.value) for each in cls], None, cls)
            self.unit.add_type(found.qualname, found)
            return found
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return self._named_tuple(cls, qualified(prefix, cls.__name__), resolver)
        if is_dataclass(cls):
            whole = flattened(
                cls, tree_from_class, lambda base: PythonResolver(self, {**seen, **names_of(base)}, own=cls)
            )
            type = define_class(self.unit, whole.tree, whole.names, prefix, resolvers=whole.resolvers)
            assert isinstance(type, ClassType)
            type.is_frozen = is_frozen(cls)
        else:
            type = define_class(self.unit, methods_by_name(tree_from_class(cls)), resolver, prefix)
        if isinstance(type, ClassType):
            type.python_class = cls
            self._add_static_methods(cls, type)
            for name, member in vars(cls).items():
                if isinstance(member, (staticmethod, classmethod)):
                    continue
                type.unresolved[name] = (
                    f"'{name}' is defined as a class attribute which currently is not supported. Consider converting "
                    "this to an instance attribute"
                )
        return type

    def _named_tuple(self, cls: type, qualname: str, resolver: PythonResolver) -> Type:
        hints = annotations_of(cls)
        fields: tuple[str, ...] = getattr(cls, "_fields")  # noqa: B009
        resolvers = {each.owner: PythonResolver(self, names_of(each.owner), each.owner) for each in hints.values()}
        resolvers[cls] = resolver
        types = tuple(
            resolvers[hints[name].owner].annotation(hints[name].hint) if name in hints else TENSOR for name in fields
        )
        defaults = tuple(getattr(cls, "_field_defaults", {}).values())
        for default in defaults:
            _check_field_default(cls, default)
        found = TupleType(types, qualname, fields, defaults, cls)
        self.unit.add_type(qualname, found)
        return found

    def _interface(self, cls: type, qualname: str, resolver: PythonResolver) -> InterfaceType:
        """The interface that a class declares by methods whose bodies are `pass`."""
        type = InterfaceType(qualname, is_module=is_module_class(cls))
        self.unit.add_type(qualname, type)
        for name, member in sorted(vars(cls).items()):
            if inspect.isfunction(member):
                tree = tree_from_function(member)
                type.methods[name] = _interface_method(signature_of(self.unit, tree, resolver, type), tree)
        return type

    def _add_static_methods(self, cls: type, type: ClassType) -> None:
        inherited = [item for base in classes_of(cls)[::-1] for item in vars(base).items()]
        for name, member in inherited:
            if isinstance(member, staticmethod):
                resolver = PythonResolver(self, names_of(member.__func__), own=cls)
                tree = tree_from_function(member.__func__)
                prefix = self._free_prefix(member.__func__)
                (type.static_methods[name],) = declare(self.unit, [tree], resolver, prefix)

    def _free_prefix(self, thing: Any) -> str:
        """The prefix under which the name of the function or class is free."""
        return self.free_name(thing).rpartition(".")[0]

    def free_name(self, thing: Any) -> str:
        """A qualified name for a function or class that nothing has yet."""
        return self.unit.mangle(self.name_of(thing))

    def name_of(self, thing: Any) -> str:
        """The qualified name of a function or class; the layers of `torch.nn` have the names that PyTorch's have."""
        module = "" if thing.__module__ == "__main__" else thing.__module__.removeprefix("engine.")
        module = HOMES.get(thing.__name__, HOMES.get(module, module)) if module.startswith("torch.nn.") else module
        return ".".join(part for part in ("__torch__", module, thing.__name__) if part)


def _check_field_default(cls: type, default: Any) -> None:
    """Raises CompileError for the default of a named tuple's field that no program can have."""
    if isinstance(default, Tensor):
        raise CompileError(
            f"Tensors are not supported as default NamedTuple fields: '{cls.__name__}'. Their mutability could lead to "
            "potential memory aliasing problems",
            hints=("make the field Optional[Tensor] with the default None",),
        )
    if isinstance(default, (list, dict)) and not default:
        raise CompileError(
            f"a default of NamedTuple '{cls.__name__}' is an empty {type(default).__name__}, whose type is not known",
            hints=("give the field no default, or make it Optional with the default None",),
        )


_IS_OF_PYTHON: Final = 1 << 9
"""The flag of classes that are made when a program runs, unlike those of libraries in C (`Py_TPFLAGS_HEAPTYPE`)."""


def is_module_class(cls: type) -> bool:
    """True if the instances are modules."""
    return bool(getattr(cls, "_torchscript_module", False))


def _interface_method(schema: FunctionSchema, tree: Tree) -> FunctionSchema:
    """The schema of an interface's method.  Raises CompileError for one that has a body."""
    if any(part.kind != "pass" for part in Def(tree).body):
        raise CompileError(
            f"interfaces declare methods only: the body of '{schema.name}' must be 'pass'", Def(tree).range
        )
    returns = schema.returns or (Argument("", TENSOR),)
    return FunctionSchema(schema.name, arguments=schema.arguments, returns=returns)


def names_of(thing: Any) -> Mapping[str, Any]:
    """The names that the code of a function or class sees."""
    functions = [thing] if inspect.isfunction(thing) else functions_of_class(thing)
    known: dict[str, Any] = dict(vars(builtins))
    module = inspect.getmodule(thing)
    if module is not None:
        known.update(vars(module))
    for function in functions:
        known.update(function.__globals__)
        known.update(getattr(function, BLOCKS, {}))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                known[name] = cell.cell_contents
            except ValueError:
                continue
    return known


def names_in_annotations(cls: type) -> dict[str, Any]:
    """The names that alone are the annotation of a parameter or a result in the class, and what Python found there."""
    known: dict[str, Any] = {}
    for function in map(inspect.unwrap, functions_of_class(cls)):
        try:
            view = Def(tree_from_function(function)).decl
        except CompileError:
            continue  # it says so where it is compiled
        hints = [(param.name, param.annotation) for param in view.params] + [("return", view.returns)]
        for name, tree in hints:
            if tree is not None and tree.kind == Var.kind and name in function.__annotations__:
                known[Var(tree).name] = function.__annotations__[name]
    return known


class Annotated(NamedTuple):
    """An annotation of a class, and the class in whose text it stands."""

    owner: type
    hint: Any


def annotations_of(cls: type) -> dict[str, Annotated]:
    """The annotations of the class and of its bases, as Python has them: the nearest of a name holds."""
    found: dict[str, Annotated] = {}
    for base in cls.__mro__:
        for name, hint in inspect.get_annotations(base).items():
            found.setdefault(name, Annotated(base, hint))
    return found


def in_torch(cls: type) -> bool:
    """True for a class of the engine's own."""
    return cls.__module__.partition(".")[0] == "engine"


def functions_of_class(cls: type) -> list[Any]:
    """Its methods, and the functions of its properties."""
    found: list[Any] = []
    for member in vars(cls).values():
        parts = (member.fget, member.fset) if isinstance(member, property) else (member,)
        found += filter(inspect.isfunction, parts)
    return found


class PythonResolver:
    """Names of one Python function or class; `own` is the class whose methods are compiled.

    Annotations of methods stand for what Python made of them, so that a class may use local names there.
    """

    def __init__(self, python: PythonUnit, names: Mapping[str, Any], own: type | None = None) -> None:
        self.python, self._names = python, dict(names)
        self._own, self._in_annotations = own, dict[str, Any]()
        if own is not None:
            self._names[own.__name__] = own

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        if name not in self._names:
            return None
        return self.sugared(b, self._names[name], range)

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        parts = name.split(".")
        if parts[0] == "__torch__":
            return self.python.unit.find_type(name)
        if parts[0] not in self._names:
            return self._of_annotation(name, range)
        found = self._names[parts[0]]
        for part in parts[1:]:
            found = getattr(found, part, None)
        return self._type(found, range)

    def _of_annotation(self, name: str, range: SourceRange) -> Type | None:
        if self._own is not None and not self._in_annotations:
            self._in_annotations = names_in_annotations(self._own)
        found = self._in_annotations.get(name)
        return None if found is None or isinstance(found, str) else self._type(found, range)

    def names(self) -> Iterable[str]:
        return self._names

    def annotation(self, hint: Any) -> Type:
        """The type that a Python annotation means.  Raises CompileError."""
        found = self._type(hint, NOWHERE)
        if found is None:
            raise CompileError(f"Unknown type name '{hint}'")
        return found

    def _type(self, hint: Any, range: SourceRange) -> Type | None:
        text = hint.__forward_arg__ if isinstance(hint, typing.ForwardRef) else hint
        if isinstance(text, str):
            return TypeReader(self).read(parse_expression(Source(text, "<annotation>")))
        try:
            known = _TYPES.get(hint)
        except TypeError:
            return None
        if known is not None:
            return known
        if isinstance(own := getattr(hint, "_type", None), ClassType):
            return own
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if hint in BARE:
            raise no_contained_type(BARE[hint], range)
        if origin is None:
            return self._class(hint, range)
        return _generic(origin, [self._type(arg, range) for arg in args if arg is not Ellipsis])

    def _class(self, hint: Any, range: SourceRange) -> Type | None:
        if isinstance(hint, types.ModuleType) or not isinstance(hint, type) or issubclass(hint, BaseException):
            return None
        if issubclass(hint, Tensor):
            return TENSOR
        if is_module_class(hint) and INTERFACE not in vars(hint):
            return self.python.unit.find_type(self.python.name_of(hint))
        if hint.__module__ == "builtins" or hint.__module__.startswith(("engine.", "typing")):
            return self.python.type_of(hint) if hint.__module__ in COMPILED_MODULES else None
        if not hint.__flags__ & _IS_OF_PYTHON:
            return None
        try:
            return self.python.type_of(hint)
        except CompileError as error:
            if range is not NOWHERE:
                error.called_from(CallFrame(self.python.name_of(hint), range))
            raise

    def sugared(self, b: Builder, value: Any, range: SourceRange, *, constant: bool = False) -> SugaredValue:
        """The sugared value of a Python value; scalars are refused unless they may be constants (`constant`)."""
        if isinstance(value, types.ModuleType):
            return self._module(value)
        written = in_library(b, value)
        if written is not None:
            return written
        if isinstance(value, type):
            return self._class_value(value, range)
        own = getattr(value, "_function", None)
        if isinstance(own, Function):
            return FunctionValue(own)
        if isinstance(value, Function):
            return FunctionValue(value)
        if isinstance(compiled := getattr(value, "_type", None), ClassType):
            return ClassValue(compiled)
        path: str | None = getattr(value, "torch_path", None)
        if path is not None and path.startswith(_OPERATORS_OF):
            return BuiltinFunction(path.removeprefix(_OPERATORS_OF).replace(".", "::"))
        if path is not None:
            return TorchNamespace(path.rpartition(".")[0]).attr(b, path.rpartition(".")[2], range)
        if inspect.isfunction(value):
            return self._function(b, value, range)
        known = self._constant(value) if constant else None
        if known is not None:
            return known
        operator = _operators_by_function().get(value) if isinstance(value, types.BuiltinFunctionType) else None
        if operator is not None:
            return BuiltinFunction(operator)
        if isinstance(value, enum.Enum):
            found = self.python.type_of(type(value))
            assert isinstance(found, EnumType)
            return ConstantValue(EnumValue(found, value.name))
        if is_module_class(type(value)):
            return PythonFunction(value, self)
        called = inspect.getattr_static(type(value), "__call__", None)
        if inspect.isfunction(called) and modifier_of(called) in IGNORED:
            return PythonFunction(value, PythonResolver(self.python, names_of(called)))
        if isinstance(getattr(value, "_ivalue", None), Object):
            raise CompileError(
                f"Cannot call a ScriptModule that is not a submodule of the caller: {type(value).__name__}",
                range,
                hints=("assign it to an attribute in __init__, as in self.m = m",),
            )
        if isinstance(value, float) and not math.isfinite(value):  # `from math import inf`
            return ConstantValue(value)
        return PythonValue(value)

    def _constant(self, value: Any) -> SugaredValue | None:
        """The sugared value of a constant in a Python module, None for anything else."""
        if isinstance(value, scalars.NUMBERED):
            return ConstantValue(value.number)
        if isinstance(value, tuple):
            parts = [self._constant(part) for part in value]
            known = [part for part in parts if part is not None]
            return SugaredTuple(known) if len(known) == len(parts) else None
        return ConstantValue(value) if isinstance(value, (*SCALARS, scalars.device)) else None

    def _module(self, module: types.ModuleType) -> SugaredValue:
        if module is math:
            return MathNamespace()
        if module.__name__ in _TORCH_MODULES or module.__name__.startswith("engine.torch."):
            return PythonTorchNamespace(module, self)
        return PythonModule(module, self)

    def _class_value(self, cls: type, range: SourceRange) -> SugaredValue:
        if cls is super:
            raise CompileError(
                "super() is not supported: TorchScript has no inheritance",
                range,
                hints=("write the base's method under a name of its own, and call that on self",),
            )
        if cls is scalars.device:
            return DeviceClass()
        if cls is object:
            return ObjectClass()
        if cls is OrderedDict:
            return SpecialForm("dict")
        if issubclass(cls, BaseException):
            return ExceptionClass(cls.__name__, f"{cls.__module__}.{cls.__name__}")
        if is_module_class(cls) and INTERFACE not in vars(cls):
            return PythonClass(cls, self)
        if modifier_of(cls) in IGNORED:
            raise CompileError(
                f"Cannot instantiate class '{cls.__name__}' in a script function: it is marked to be ignored",
                range,
                hints=("make the object in Python, and pass it in, or take the mark off",),
            )
        found = self._type(cls, range)
        value = type_value(found) if found is not None else None
        return value or PythonValue(cls)

    def _function(self, b: Builder, fn: Callable[..., Any], range: SourceRange) -> SugaredValue:
        if fn.__module__.startswith("engine."):
            path = fn.__module__.replace("engine.torch", "torch")
            if fn.__module__ in COMPILED_MODULES:
                return b.library(f"{path}.{fn.__name__}") or FunctionValue(*self.python.overloads(fn))
            return TorchNamespace(path).attr(b, fn.__name__, range)
        if modifier_of(fn) in IGNORED:
            return PythonFunction(fn, PythonResolver(self.python, names_of(fn)))
        return FunctionValue(*self.python.overloads(fn))


def _operators() -> Iterator[tuple[Any, str]]:
    """Functions of Python's library that are operators."""
    yield warnings.warn, "aten::warn"
    for name, function in (*vars(math).items(), *vars(cmath).items()):
        operator = f"aten::{_OTHER_NAMES.get(name, name)}"
        if callable(function) and table.overloads(operator):
            yield function, operator


_OPERATORS_OF: Final = "torch.ops."
_OTHER_NAMES: Final = {"remainder": "mathremainder", "phase": "angle", "rect": "polar"}
"""Functions of `math` and `cmath` whose operators are called otherwise."""


@cache
def _operators_by_function() -> dict[Any, str]:
    return dict(_operators())


class PythonClass(PythonValue):
    """A class of modules; its static methods are its attributes."""

    __slots__ = ("resolver",)
    kind = "class"

    def __init__(self, cls: type, resolver: PythonResolver) -> None:
        super().__init__(cls)
        self.resolver = resolver

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        member = inspect.getattr_static(self.value, name, None)
        if isinstance(member, staticmethod):
            return self.resolver.sugared(b, member.__func__, range)
        raise CompileError(
            f"'{name}' of class '{self.value.__name__}' cannot be used here: of such a class only static methods can",
            range,
            hints=(f"call it on a module: self.{name}(...)",),
        )


def _generic(origin: Any, args: Sequence[Type | None]) -> Type | None:
    """`List[int]` and the like, from Python's own objects for them."""
    parts = [arg for arg in args if arg is not None]
    if len(parts) < len(args):
        return None
    if origin in (typing.Union, types.UnionType):
        return union_of(parts)
    maker = _GENERIC.get(origin)
    return maker(*parts) if maker is not None else None


BARE: Final[dict[Any, str]] = {getattr(typing, name): name for name in ("List", "Dict", "Tuple", "Optional")}
"""The types that have to say what they hold -> their names."""
_GENERIC: Final[dict[Any, Callable[..., Type]]] = {
    list: ListType, dict: DictType, tuple: lambda *parts: TupleType(parts), typing.Final: lambda part: part,
    Await: AwaitType,
}  # fmt: skip
