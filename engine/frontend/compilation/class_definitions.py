"""Classes: script classes, named tuples and enums.

In: the tree of a class.  Out: its type, owned by the unit, and for a script class its methods.  Attributes
are those that the class annotates and those that `__init__` assigns; `__init__` is compiled first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from engine.frontend.compilation.function_schema import evaluate_default
from engine.frontend.names.type_annotations import dotted_name
from engine.frontend.sugared.values import declare_attribute
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Assign, ClassDef, Property, Var
from engine.ir.constants import type_of
from engine.ir.unit import CompilationUnit, Function
from engine.lang.errors import CompileError
from engine.lang.types import FLOAT, INT, STR, TENSOR, ClassType, EnumType, TupleType, Type

if TYPE_CHECKING:
    from engine.frontend.emit import Emitter

Fresh = Callable[[], "Emitter"]
"""Makes an emitter with an empty graph, to read types and default values with."""
Declare = Callable[[Iterable[Tree], ClassType], list[Function]]
"""Declares methods of a class in the unit."""


def define_type(unit: CompilationUnit, qualname: str, definition: ClassDef, fresh: Fresh, declare: Declare) -> Type:
    """The class that the tree defines, added to the unit.  Raises CompileError."""
    base = "" if definition.superclass is None else dotted_name(definition.superclass) or "?"
    maker = _MAKERS.get(base.rpartition(".")[2])
    if maker is None:
        raise CompileError(
            f"'{definition.name}' cannot be derived from '{base}': TorchScript does not support inheritance of classes",
            definition.range,
            hints=("TorchScript classes have no base class, or are a NamedTuple or an Enum",),
        )
    return maker(unit, qualname, definition, fresh, declare)


def _script_class(
    unit: CompilationUnit, qualname: str, definition: ClassDef, fresh: Fresh, declare: Declare
) -> ClassType:
    type = ClassType(qualname)
    unit.add_type(qualname, type)
    for view in _assignments(definition):
        if view.annotation is not None and view.targets[0].kind == "variable":
            name = Var(view.targets[0]).name
            if type.slot(name) is not None:
                raise CompileError(
                    f"attribute '{name}' of class '{type.name}' is declared twice",
                    view.range,
                    hints=("remove one of the two",),
                )
            declare_attribute(type, name, fresh().types.read(view.annotation), view.range)
    for property in definition.properties:
        _add_property(type, property, declare)
    declare([tree for tree in definition.body if tree.kind == "def"], type)
    return type


def _add_property(type: ClassType, view: Property, declare: Declare) -> None:
    (getter,) = declare([view.getter.tree], type)
    setter = None if view.setter is None else declare([view.setter], type)[0]
    type.properties[view.name] = (getter, setter)


def _named_tuple(
    unit: CompilationUnit, qualname: str, definition: ClassDef, fresh: Fresh, declare: Declare
) -> TupleType:
    names, types, defaults = [], [], []
    for view in _assignments(definition):
        type = TENSOR if view.annotation is None else fresh().types.read(view.annotation)
        names.append(_name_of(view, "a NamedTuple's field"))
        types.append(type)
        if view.value is not None:
            defaults.append(evaluate_default(view.value, type, names[-1], fresh()))
    found = TupleType(tuple(types), qualname, tuple(names), tuple(defaults))
    unit.add_type(qualname, found)
    return found


def _enum(unit: CompilationUnit, qualname: str, definition: ClassDef, fresh: Fresh, declare: Declare) -> EnumType:
    members = []
    for view in _assignments(definition):
        name = _name_of(view, "an Enum's member")
        if view.value is None:
            raise CompileError(f"the member '{name}' has no value", view.range, hints=(f"write `{name} = 1`",))
        members.append((name, evaluate_default(view.value, None, "", fresh())))
    found = enum_type(qualname, members, definition)
    unit.add_type(qualname, found)
    return found


def enum_type(
    qualname: str, members: list[tuple[str, object]], definition: ClassDef | None = None, python_class: Any = None
) -> EnumType:
    """The type of an enum; its values must share one type."""
    types = {type_of(value) for _, value in members}
    if len(types) != 1:
        raise CompileError(
            f"Could not unify type list: the values of enum '{qualname}' must all be of one type",
            definition.range if definition else None,
            hints=("give every member an int, or every one a str",),
        )
    (type,) = types
    if type not in (INT, FLOAT, STR):
        raise CompileError(
            f"Cannot create Enum with value type '{type.annotation_str}', only int, float and string are supported",
            definition.range if definition else None,
            hints=("number the members: 1, 2, 3",),
        )
    return EnumType(qualname, type, tuple(members), python_class)


def _name_of(view: Assign, what: str) -> str:
    """The name that the assignment gives a value."""
    if len(view.targets) > 1 or view.targets[0].kind != "variable":
        raise CompileError(f"{what} must be a single name", view.range, hints=("write one `name = value` a line",))
    return Var(view.targets[0]).name


def _assignments(definition: ClassDef) -> list[Assign]:
    return [Assign(tree) for tree in definition.body if tree.kind == "assign"]


_MAKERS: Final[dict[str, Callable[[CompilationUnit, str, ClassDef, Fresh, Declare], Type]]] = {
    "": _script_class, "object": _script_class, "NamedTuple": _named_tuple, "Enum": _enum, "IntEnum": _enum,
}  # fmt: skip
"""Base class -> the function that makes the type."""
