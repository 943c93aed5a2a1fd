"""Dataclasses as trees: with the methods that Python's `dataclass` generates, and those that they inherit.

In: a dataclass, and the names that the code of a class sees.  Out: one class that stands alone, whose fields are
declared and whose methods are those that Python would call, each with the names that it sees.  Types and defaults of
fields are names of the generated text, which `_Fields` resolves to what Python has: they may be any objects.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from engine.aten.values.tensor import Tensor
from engine.frontend.names.resolve import ChainedResolver, Resolver
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.syntax.parser import parse_program
from engine.frontend.syntax.tree import PythonDefault, Tree
from engine.frontend.syntax.views import Assign, ClassDef, Decl, Def, Param, Property, Var
from engine.lang.errors import CompileError, NotSupportedError, UnimplementedError
from engine.lang.source import Source, SourceRange
from engine.lang.types import FLOAT, Type, unwrap_optional


class ClassResolver(Resolver, Protocol):
    """Names of the code of a Python class, and the meaning of Python's values there."""

    def annotation(self, hint: Any) -> Type: ...

    def sugared(self, b: Builder, value: Any, range: SourceRange, *, constant: bool = False) -> SugaredValue: ...


class Flattened(NamedTuple):
    """A class that stands alone, the names that its fields need, and those that each of its methods sees."""

    tree: Tree
    names: Resolver
    resolvers: Mapping[str, Resolver]


def flattened(cls: type, tree_of: Callable[[type], Tree], names_of: Callable[[type], ClassResolver]) -> Flattened:
    """The dataclass with its fields and all methods, its own, generated and inherited ones.

    Raises NotSupportedError for fields whose defaults are made anew for each instance, or are no constants.
    """
    own, methods, properties = ClassDef(_tree(cls, tree_of)), dict[str, Tree](), dict[str, Tree]()
    resolvers: dict[str, Resolver] = {}
    fields = _Fields(cls, names_of)
    for base in classes_of(cls)[::-1]:
        view = own if base is cls else ClassDef(_tree(base, tree_of))
        written = {Def(part).name: part for part in view.body if part.kind == "def"}
        generated = {name: _generated(cls, base, name, view.range) for name in _generated_names(base, written)}
        getters = {Property(part.tree).name: part.tree for part in view.properties}
        methods |= written | generated
        properties |= getters
        resolvers |= dict.fromkeys([*written, *_accessors(getters.values())], names_of(base))
        resolvers |= dict.fromkeys(generated, ChainedResolver(fields, names_of(base)))
    body = [*(_declared(f.name, own.range) for f in dataclasses.fields(cls)), *(methods[n] for n in sorted(methods))]
    accessors = [properties[name] for name in sorted(properties)]
    return Flattened(
        ClassDef.make(own.range, own.name, None, body, accessors), ChainedResolver(fields, names_of(cls)), resolvers
    )


def classes_of(cls: type) -> list[type]:
    """The class and those of its bases that a program defines, nearest first."""
    return [base for base in cls.__mro__ if base.__module__.partition(".")[0] not in _LIBRARY]


def _declared(name: str, range: SourceRange) -> Tree:
    return Assign.make(range, [Var.make(range, name)], None, Var.make(range, _type(name)))


_LIBRARY: Final = sys.stdlib_module_names - {"__main__", "types"}
"""Modules whose classes lend no methods to a program; `dataclasses.make_dataclass` says that its are of `types`."""
_TEXT: Final = "<dataclass>"


def _tree(cls: type, tree_of: Callable[[type], Tree]) -> Tree:
    """The class as it is written; one that `make_dataclass` has made has no methods but generated ones."""
    functions = {name for name, member in vars(cls).items() if inspect.isfunction(member)}
    try:
        return tree_of(cls)
    except CompileError:
        if functions - _OF_PYTHON or "__dataclass_fields__" not in vars(cls):
            raise
        return ClassDef.make(Source("", _TEXT).whole(), cls.__name__, None, [], [])


def _generated_names(cls: type, written: Iterable[str]) -> Iterator[str]:
    """The methods that `dataclass` gave the class."""
    if "__dataclass_fields__" in vars(cls):
        known = ("__init__", *_TEXTS)
        yield from (name for name in known if name not in written and inspect.isfunction(vars(cls).get(name)))


def is_frozen(cls: type) -> bool:
    """True for a dataclass whose fields are set once."""
    return bool(getattr(cls, "__dataclass_params__").frozen)  # noqa: B009


def is_generated(cls: type, name: str) -> bool:
    """True for a method that `dataclass` made, and that a program may do without."""
    code = getattr(getattr(cls, name, None), "__code__", None)
    return name in _TEXTS and code is not None and code.co_filename == "<string>"


def _accessors(properties: Iterable[Tree]) -> Iterator[str]:
    for view in map(Property, properties):
        yield view.getter.name
        if view.setter is not None:
            yield Def(view.setter).name


class _Fields:
    """Resolves the names that stand for the types and the defaults of a dataclass's fields."""

    def __init__(self, cls: type, names_of: Callable[[type], ClassResolver]) -> None:
        self._cls, self._names_of, self._fields = cls, names_of, _fields_of(cls)

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        if name == _SELF:
            return self._resolver(self._cls).annotation(self._cls)
        field = self._field(name, _type)
        if field is None:
            return None
        owner = next(base for base in self._cls.__mro__ if field.name in inspect.get_annotations(base))
        hint = field.type.type if isinstance(field.type, dataclasses.InitVar) else field.type
        if isinstance(hint, str) and (inner := _INIT_VAR.fullmatch(hint)) is not None:
            hint = inner[1]
        try:
            return self._resolver(owner).annotation(hint)
        except CompileError as error:
            error.message = f"{error.message} (of field '{field.name}' of dataclass '{self._cls.__name__}')"
            error.range = range
            raise

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        field = self._field(name, _default)
        if field is None:
            return None
        value, type = field.default, self.resolve_type(_type(field.name), range)
        if isinstance(value, int) and type is not None and unwrap_optional(type) is FLOAT:
            value = float(value)
        return self._resolver(self._cls).sugared(b, value, range, constant=True)

    def names(self) -> Iterable[str]:
        return ()

    def _field(self, name: str, spelled: Callable[[str], str]) -> dataclasses.Field[Any] | None:
        return next((field for field in self._fields.values() if spelled(field.name) == name), None)

    def _resolver(self, cls: type) -> ClassResolver:
        return self._names_of(cls)


def _type(name: str) -> str:
    """The name in generated text for the type of the field."""
    return f"__type_of_{name}__"


def _default(name: str) -> str:
    return f"__default_of_{name}__"


_SELF: Final = "__type_of__self__"
_INIT_VAR: Final = re.compile(r"(?:\w+\.)*InitVar\[(.*)\]", re.DOTALL)


def _fields_of(cls: type) -> dict[str, dataclasses.Field[Any]]:
    """The fields of instances and the parameters that only `__init__` takes, by name."""
    return dict(getattr(cls, "__dataclass_fields__"))  # noqa: B009


# ------------------------------------------------------------------ generated methods


def _generated(cls: type, owner: type, name: str, range: SourceRange) -> Tree:
    """The method of that name, which `dataclass` gave `owner`, as a method of `cls`."""
    if name == "__init__":
        return _init(owner, range)
    (tree,) = parse_program(Source("\n".join([*_TEXTS[name](owner, name), ""]), _TEXT, is_generated=True))
    return tree


def _init(cls: type, range: SourceRange) -> Tree:
    """`__init__`: it takes what Python's does, sets the fields, and calls `__post_init__`."""
    known = _fields_of(cls)
    parameters = list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
    for field in known.values():
        _check_default(field, range)
    values = [f for f in dataclasses.fields(cls) if f.init or f.default is not dataclasses.MISSING]
    lines = [f"    self.{f.name} = {f.name if f.init else _default(f.name)}" for f in values]
    if hasattr(cls, "__post_init__"):
        fields = {f.name for f in dataclasses.fields(cls)}
        lines.append(f"    self.__post_init__({', '.join(name for name in known if name not in fields)})")
    text = "\n".join(["def __init__(self):", *(lines or ["    pass"]), ""])
    (tree,) = parse_program(Source(text, _TEXT, is_generated=True))
    view = Def(tree)
    params = [_param(p, known[p.name], range) for p in parameters]
    decl = Decl.make(view.decl.range, [view.decl.params[0].tree, *params], None)
    return Def.make(tree.range, "__init__", decl, view.body)


def _param(parameter: inspect.Parameter, field: dataclasses.Field[Any], range: SourceRange) -> Tree:
    default: Tree | None = None
    if field.default is None or isinstance(field.default, Tensor):
        default = PythonDefault(range, field.default)
    elif field.default is not dataclasses.MISSING:
        default = Var.make(range, _default(field.name))
    is_named = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    return Param.make(range, field.name, Var.make(range, _type(field.name)), default, is_named)


def _check_default(field: dataclasses.Field[Any], range: SourceRange) -> None:
    if field.default_factory is not dataclasses.MISSING:
        raise UnimplementedError(
            f"Default factory initializers are not supported in TorchScript dataclasses: '{field.name}'",
            range,
            hints=("give the field no default, or make it Optional with the default None, set in __post_init__",),
        )
    if dataclasses.is_dataclass(field.default):
        raise NotSupportedError(
            f"the default of field '{field.name}' is an object, and those of TorchScript are constants",
            range,
            hints=("make the field Optional with the default None, set in __post_init__",),
        )


def _repr(cls: type, name: str) -> list[str]:
    shown = ", ".join(f"{f.name}=self.{f.name}" for f in dataclasses.fields(cls) if f.repr)
    return ["def __repr__(self) -> str:", f"    return '{cls.__name__}({shown})'"]


def _comparison(cls: type, name: str) -> list[str]:
    """A method that compares field by field; the first two values that differ decide."""
    decides, otherwise, at_the_end = _COMPARISONS[name]
    lines = [f"def {name}(self, other: {_SELF}) -> bool:"]
    for field in (f.name for f in dataclasses.fields(cls) if f.compare):
        other = otherwise or f"raise TypeError('cannot compare {field}: one is None')"
        lines += [f"    val1 = self.{field}", f"    val2 = other.{field}"]
        lines += ["    if val1 is not None and val2 is not None:", *(f"        {line}" for line in decides)]
        lines += ["    elif (val1 is None) != (val2 is None):", f"        {other}"]
    return [*lines, f"    return {at_the_end}"]


def _ordered(operator: str) -> list[str]:
    return [f"if val1 {operator} val2:", "    return True", f"elif val2 {operator} val1:", "    return False"]


_COMPARISONS: Final = {
    "__eq__": (["if not (val1 == val2):", "    return False"], "return False", True),
    "__lt__": (_ordered("<"), "", False), "__le__": (_ordered("<"), "", True),
    "__gt__": (_ordered(">"), "", False), "__ge__": (_ordered(">"), "", True),
}  # fmt: skip
"""Comparison -> what decides where no value is None, where one is, and the result for equal ones."""
_TEXTS: Final[dict[str, Callable[[type, str], list[str]]]] = {
    "__repr__": _repr, **dict.fromkeys(_COMPARISONS, _comparison),
}  # fmt: skip
"""Method that `dataclass` generates -> its text; `__init__` is made by `_init`."""
_OF_PYTHON: Final = frozenset({"__init__", "__hash__", "__setattr__", "__delattr__", "__replace__", *_TEXTS})
"""The methods that a class has without being written: those above, and those that no program calls."""
