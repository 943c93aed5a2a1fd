"""Classes of which a file holds the objects and not the code, as mobile devices get them.

In: objects' attributes by name, or what their `__setstate__` takes.  Out: classes that have these attributes, of types
that fit all values found, and methods that are made from bytecode.  A class with `__setstate__` has slots that
nothing names: `slot_0`, `slot_1`, ….
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, Final

from engine.aten.values.ivalue import CustomObject, Object
from engine.aten.values.tensor import Tensor
from engine.frontend.names.type_annotations import TypeReader
from engine.frontend.sugared.custom_methods import custom_class
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.syntax.parser import parse_expression
from engine.ir.unit import CompilationUnit, Function
from engine.lang.custom_classes import foreign, is_custom_name
from engine.lang.errors import CompileError
from engine.lang.records import dataclass
from engine.lang.source import Source, SourceRange
from engine.lang.types import ANY, NONE, ClassAttribute, ClassType, Type, unify
from engine.serialize.container.qualified_names import ROOT, is_qualified
from engine.serialize.mobile.value_types import general_type
from engine.serialize.pickling.scan import PickleRefusal
from engine.serialize.pickling.unpickle import NOT_RUN, Filler, Runner
from engine.serialize.pickling.value_types import misfit

MOST_SLOTS: Final = 10_000


@dataclass(slots=True, eq=False)
class BareClasses:
    """The classes of one file, made as their objects are read."""

    unit: CompilationUnit
    run: Runner | None
    open: set[ClassType] = field(default_factory=set)
    """Classes whose slots are known only to their `__setstate__`."""
    noted: dict[int, tuple[Any, str]] = field(default_factory=dict)
    """Empty lists and dicts, with the types that the file has for them."""
    widened: int = 0
    """Number of attribute types widened because code sets a value of another type."""

    def find(self, qualname: str) -> Type | None:
        """The class of that name."""
        known = self.unit.find_type(qualname)
        if known is None and is_custom_name(qualname):
            known = custom_class(qualname) or foreign(qualname, [])
            self.unit.add_type(qualname, known)
        elif known is None and qualname.startswith(f"{ROOT}.") and is_qualified(qualname):
            self.unit.add_type(qualname, ClassType(qualname, is_module=True))
            known = self.unit.find_type(qualname)
        return known

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return self.find(name)

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        return None

    def names(self) -> Iterable[str]:
        return ()

    def note(self, value: Any, annotation: str) -> None:
        self.noted[id(value)] = (value, annotation)

    def type_of(self, value: Any) -> Type:
        """The type of a value of the file."""
        return general_type(value, self._noted_type)

    def _noted_type(self, value: Any) -> Type | None:
        """The type the file gives for an empty list or dict; None where it gives none."""
        if id(value) not in self.noted:
            return None
        try:
            return TypeReader(self).read(
                parse_expression(Source(self.noted[id(value)][1], "annotation_str", is_generated=True))
            )
        except CompileError:
            return None

    def fill(self, instance: Any, state: Any) -> None:
        """Give an object its attributes.  Raises PickleRefusal."""
        if not isinstance(instance, Object):
            raise PickleRefusal("it fills what is no instance")
        if isinstance(instance, CustomObject):
            Filler(self.run).fill(instance, state)
            return
        setstate = instance.type.methods.get("__setstate__")
        if setstate is not None:
            self._set_state(instance, setstate, state)
            return
        if type(state) is not dict or any(type(name) is not str for name in state):
            raise PickleRefusal(f"the state of a '{instance.type.qualname}' is no dict of attributes")
        for name, value in state.items():
            self._fit(instance.type, name, value)
        instance.slots = [state.get(attribute.name) for attribute in instance.type.attributes]

    def _fit(self, type: ClassType, name: str, value: Any) -> None:
        """Let the class have an attribute that can be this value."""
        slot = type.slot(name)
        of = self.type_of(value)
        if slot is None:
            is_tensor = isinstance(value, Tensor)
            kind = ("parameter" if value.requires_grad else "buffer") if is_tensor else "attribute"
            type.add_attribute(name, of, kind)
            return
        known = type.attributes[slot]
        if misfit(value, known.type) is not None:
            wider = unify(known.type, of) or ANY
            type.attributes[slot] = ClassAttribute(name, wider, "attribute")

    def _set_state(self, instance: Object, setstate: Any, state: Any) -> None:
        if self.run is None:
            raise PickleRefusal(f"a '{instance.type.qualname}' runs code to fill itself, and nothing here can run it")
        self.open.add(instance.type)
        wrong = misfit(state, setstate.schema.arguments[1].type)
        if wrong is not None:
            raise PickleRefusal(f"the state of a '{instance.type.qualname}': {wrong}")
        setstate.ensure_defined()  # which tells the slots
        instance.slots = [None] * len(instance.type.attributes)
        if self.run(setstate, [instance, state]) is NOT_RUN:
            return
        for attribute, value in zip(instance.type.attributes, instance.slots, strict=True):
            wrong = misfit(value, attribute.type)
            if wrong is not None:
                raise PickleRefusal(
                    f"'{attribute.name}' of a '{instance.type.qualname}' is not as it should be: {wrong}"
                )

    def slot_type(self, type: ClassType, slot: int) -> Type:
        """The type of a slot of its objects.  Raises PickleRefusal where they have no such slot."""
        if not 0 <= slot < len(type.attributes):
            raise PickleRefusal(f"a '{type.qualname}' has no slot {slot}")
        return type.attributes[slot].type

    def let_have(self, type: ClassType, slot: int, of: Type) -> str:
        """A slot into which a value of that type goes; its name.  Raises PickleRefusal where it cannot."""
        if type in self.open and len(type.attributes) <= slot < MOST_SLOTS:
            for index in range(len(type.attributes), slot + 1):
                type.add_attribute(f"slot_{index}", of if index == slot else NONE)
        known = self.slot_type(type, slot)
        name = type.attributes[slot].name
        if not of.is_subtype_of(known):
            wider = of if type in self.open and known is NONE else unify(known, of) or ANY
            type.attributes[slot] = ClassAttribute(name, wider, type.attributes[slot].kind)
            self.widened += 1
        return name

    def add_methods(self, functions: Sequence[Function]) -> None:
        """Methods go to the classes that their names say."""
        for function in functions:
            owner = self.find(function.qualname.rpartition(".")[0])
            if isinstance(owner, ClassType):
                owner.methods[function.name] = function
            self.unit.add_function(function)
