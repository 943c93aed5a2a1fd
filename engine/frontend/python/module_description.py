"""Descriptions of Python modules, which decide their types.

In: a Python module.  Out: its `Description`: attributes with their types, constants, functions, hooks, the methods to
compile.  Modules with equal descriptions share a type.  An attribute that has no type is kept with the reason.
"""

from __future__ import annotations

import inspect
import re
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final, NamedTuple

from engine.aten.values.tensor import Tensor
from engine.frontend.python.attribute_types import NoType, own_attribute, type_of_value
from engine.frontend.python.modifiers import IGNORED, modifier_of
from engine.frontend.python.resolver import Annotated, PythonResolver, PythonUnit, annotations_of, in_torch, names_of
from engine.ir.unit import Function
from engine.lang import scalars
from engine.lang.errors import CompileError, InvalidConstantError
from engine.lang.records import dataclass
from engine.lang.types import Type

_FINAL: Final = re.compile(r"(\w+\.)*Final\b")
ATTRIBUTE_TYPES: Final = "_attribute_types"
"""The attribute of a module with the types that its `__init__` gave to others."""
_INTERNAL: Final = frozenset({
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_forward_hooks", "_forward_pre_hooks",
    "_definitions", "_other_hooks", ATTRIBUTE_TYPES,
})  # fmt: skip


@dataclass(frozen=True)
class Description:
    """`constants` carry the types of their values, since `1 == True`; `own_methods` are those that one instance has in
    the place of its class's, `length` is what `len` of a container gives, `parts` names what it holds where None is
    among that."""

    attributes: tuple[tuple[str, Type, str], ...]
    children: tuple[tuple[str, Type], ...]
    constants: tuple[tuple[str, Any, str], ...]
    functions: tuple[tuple[str, Any], ...]
    pre_hooks: tuple[Callable[..., Any], ...]
    hooks: tuple[Callable[..., Any], ...]
    methods: tuple[str, ...]
    own_methods: tuple[tuple[str, Callable[..., Any]], ...]
    texts: tuple[str, ...]
    length: int | None
    parts: tuple[str, ...]
    unresolved: Mapping[str, str] = field(compare=False)

    def digest(self) -> int:
        """A number that equal descriptions share, which holds on to nothing."""
        called = [*self.functions, *enumerate(self.pre_hooks), *enumerate(self.hooks), *self.own_methods]
        called_names = [(name, getattr(each, "__qualname__", "")) for name, each in called]
        types = [(name, str(type)) for name, type, _ in self.attributes], [(n, str(t)) for n, t in self.children]
        kinds = [kind for _, _, kind in self.attributes]
        return hash(
            repr((types, kinds, self.constants, called_names, self.methods, self.texts, self.length, self.parts))
        )


class AnnotatedValue(NamedTuple):
    """`torch.jit.Attribute(value, type)`: the value of an attribute, with its type."""

    value: Any
    type: Any


class Members(NamedTuple):
    """The declarations of a class and its bases about its instances' attributes."""

    annotations: Mapping[str, Annotated]
    constants: tuple[str, ...]


def members_of_class(cls: type) -> Members:
    """The annotations of the class and of its bases, and the names of its constants."""
    annotations = annotations_of(cls)
    finals = [name for name, each in annotations.items() if _is_final(each.hint)]
    return Members(annotations, tuple(dict.fromkeys([*getattr(cls, "__constants__", ()), *finals])))


def check_initialized(module: Any) -> None:
    """Raises CompileError if the module's `__init__` did not call its base's."""
    if "_parameters" not in vars(module):
        raise CompileError(
            f"'{type(module).__module__}.{type(module).__qualname__}' has not been initialized, did you forget to call "
            "'super()'?",
            hints=("call super().__init__() first in __init__",),
        )


Misfit = Callable[[Type, Any], str | None]
"""Tells why a value of Python cannot be one of the type; None if it can."""


def describe(module: Any, python: PythonUnit, children: Mapping[str, Type], misfit: Misfit) -> Description:
    """The module's description.  Raises CompileError for what no module may have."""
    work = _Work(module, python, members_of_class(type(module)), misfit)
    work.tensors()
    constants = tuple(work.constants(children))
    own = tuple((name, m.__func__) for name, m in vars(module).items() if inspect.ismethod(m) and m.__self__ is module)
    functions = tuple(work.plain_attributes({*children, *(name for name, _, _ in constants)}))
    return Description(
        tuple(work.attributes),
        tuple(children.items()),
        constants,
        functions,
        tuple(hook.call for hook in module._forward_pre_hooks.values()),
        tuple(hook.call for hook in module._forward_hooks.values()),
        tuple(dict.fromkeys([*(name for name, _ in own if name == "forward"), *methods_to_compile(type(module))])),
        own,
        tuple(getattr(module, "_definitions", ())),
        len(module) if getattr(type(module), "_container_kind", "") in ("list", "dict") else None,
        _parts(module),
        work.unresolved,
    )


def _parts(module: Any) -> tuple[str, ...]:
    """The names of what a container of modules holds, if there is None in the place of one."""
    is_container = getattr(type(module), "_container_kind", "") in ("list", "dict")
    return tuple(module._modules) if is_container and None in module._modules.values() else ()


def methods_to_compile(cls: type) -> Iterator[str]:
    """`forward` and what is marked `export`; of a class derived from ScriptModule what is marked `script_method`."""
    wanted = "script_method" if getattr(cls, "_script_methods_only", False) else "export"
    forward = getattr(cls, "forward", None)
    if inspect.isfunction(forward) and modifier_of(forward) not in IGNORED and wanted == "export":
        yield "forward"
    members = dict[str, Any]()
    for base in reversed(cls.__mro__):
        members |= vars(base)
    for name in sorted(members):
        if modifier_of(members[name]) == wanted and (name, wanted) != ("forward", "export"):
            yield name


class _Work:
    """The attributes found so far, and those that have no type with the reason."""

    def __init__(self, module: Any, python: PythonUnit, members: Members, misfit: Misfit) -> None:
        self.module, self.python, self.members, self.misfit = module, python, members, misfit
        self.attributes: list[tuple[str, Type, str]] = []
        self._resolvers: dict[type, PythonResolver] = {}
        self._ignored = set(getattr(module, "__jit_ignored_attributes__", ()))
        self.unresolved = dict.fromkeys(self._ignored, "attribute was ignored during compilation")

    def tensors(self) -> None:
        """Parameters, buffers, and submodules that are None."""
        for table, kind in (("_parameters", "parameter"), ("_buffers", "buffer")):
            for name, value in getattr(self.module, table).items():
                if name not in self._ignored:
                    self.attributes.append((name, self._type(name, value), kind))
        for name, value in self.module._modules.items():
            if value is None and name not in self._ignored:
                self.attributes.append((name, self._type(name, value), "attribute"))

    def constants(self, children: Mapping[str, Type]) -> Iterator[tuple[str, Any, str]]:
        known = {name: f"non-constant {kind}" for name, _, kind in self.attributes}
        known.update(dict.fromkeys(children, "submodule"))
        for name in self.members.constants:
            if name in known:
                _warn(name, f"but it is a {known[name]}")
            elif not hasattr(self.module, name):
                _warn(name, "but was not actually set in __init__")
            else:
                value = constant_value_of(getattr(self.module, name), f"{type(self.module).__name__}.{name}")
                yield name, value, _kinds(value)

    def plain_attributes(self, taken: set[str]) -> Iterator[tuple[str, Any]]:
        """Add the attributes of the instance's `__dict__`; gives those that are functions."""
        taken = {*taken, *self._ignored, *_INTERNAL, *(name for name, _, _ in self.attributes)}
        for name, value in vars(self.module).items():
            if name in taken or name.startswith("__"):
                continue
            if is_function(value):
                yield name, value
                continue
            try:
                self.attributes.append((name, self._type(name, value), "attribute"))
            except NoType as reason:
                self.unresolved[name] = self._why_not(name, value, str(reason))

    def _type(self, name: str, value: Any) -> Type:
        """The annotated type, else that of the value.  Raises NoType."""
        given = vars(self.module).get(ATTRIBUTE_TYPES, {})
        cls, found = type(self.module), self.members.annotations.get(name)
        hint = value.type if isinstance(value, AnnotatedValue) else given.get(name, found and found.hint)
        if hint is None:
            return self._inferred(value)
        owner = found.owner if found is not None and found.hint is hint else cls
        try:
            return self._resolver(owner).annotation(hint)
        except CompileError as error:
            if isinstance(value, Tensor) or in_torch(owner):
                return type_of_value(value, self.python.type_of)
            raise NoType(f"{error.message}.") from None

    def _resolver(self, owner: type) -> PythonResolver:
        """The names that annotations in the text of a class see; collected once for all attributes."""
        if owner not in self._resolvers:
            self._resolvers[owner] = PythonResolver(self.python, names_of(owner), owner)
        return self._resolvers[owner]

    def _inferred(self, value: Any) -> Type:
        """The type of the value.  Raises NoType, also where parts are of other types than its class declares."""
        type = type_of_value(value, self.python.type_of)
        if not isinstance(value, Tensor) and (reason := self.misfit(type, value)) is not None:
            raise NoType(reason)
        return type

    def _why_not(self, name: str, value: Any, reason: str) -> str:
        inferred = name not in self.members.annotations
        advice = " Its type was inferred; try adding a type annotation for the attribute." if inferred else ""
        reason = reason.removesuffix(".")
        return (
            "(This attribute exists on the Python module, but we failed to convert Python type: "
            f"'{type(value).__name__}' to a TorchScript type. {reason}.{advice})"
        )


def _type_name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def constant_value_of(value: Any, owner: str) -> Any:
    """The value as a constant; lists become tuples.  Raises InvalidConstantError."""
    if isinstance(value, scalars.NUMBERED):
        return value.number
    if value is None or isinstance(value, (bool, int, float, complex, str, scalars.device)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(constant_value_of(part, owner) for part in value)
    raise InvalidConstantError(
        f"'{_type_name(type(value))}' object in attribute '{owner}' is not a valid constant.",
        hints=(
            "constants are numbers, bools, strings, None, devices, dtypes, and lists or tuples of these; modules need "
            "not be named as constants",
        ),
    )


def is_function(value: Any) -> bool:
    """True for something that a program calls, not data."""
    own = own_attribute(value, "_function")
    if inspect.isfunction(value) or isinstance(own, Function) or own_attribute(value, "torch_path") is not None:
        return True
    return inspect.isbuiltin(value) and value.__module__ == "math"


def _is_final(hint: Any) -> bool:
    if isinstance(hint, str):
        return _FINAL.match(hint) is not None
    return hint is typing.Final or typing.get_origin(hint) is typing.Final


def _kinds(value: Any) -> str:
    inner = ", ".join(map(_kinds, value)) if isinstance(value, tuple) else ""
    return f"{type(value).__name__}({inner})"


def _warn(name: str, what: str) -> None:
    warnings.warn(
        f"'{name}' was found in ScriptModule constants, {what}. Consider removing it.", UserWarning, stacklevel=2
    )
