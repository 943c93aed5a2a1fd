"""All code of an archive: classes, enums, named tuples, interfaces and functions, each in its record.

In: the classes that the data holds and the class of the root.  Out: text by record, in the order in which
dependencies are met, so that a class stands before what it needs (readers look things up by name).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import field
from typing import Any

from engine.ir.constants import type_of
from engine.lang.custom_classes import is_custom
from engine.lang.literals import string_literal
from engine.lang.records import dataclass
from engine.lang.types import ClassType, EnumType, FunctionType, InterfaceType, TupleType, Type
from engine.serialize.code.python_text import ConstantTable, annotation, name_text, qualname_of
from engine.serialize.code.source_export import SourcePrinter
from engine.serialize.container.qualified_names import TypeNames, is_identifier, name_of, prefix_of


@dataclass(slots=True, eq=False)
class CodeExporter:
    """Collects what one archive's code consists of; `printers` are by the prefix of the names in them."""

    names: TypeNames = field(default_factory=TypeNames)
    constants: ConstantTable = field(default_factory=ConstantTable)
    printers: dict[str, SourcePrinter] = field(default_factory=dict)
    _needed: dict[Hashable, Type] = field(default_factory=dict)
    _written: set[Hashable] = field(default_factory=set)

    @property
    def version(self) -> int:
        """The least archive version that may hold this code."""
        return max((printer.version for printer in self.printers.values()), default=0)

    def class_name(self, type: Type, qualname: str) -> str:
        return self.names.unique(_identity(type), qualname)

    def name_of(self, type: Type) -> str:
        """The name of a class in this archive."""
        return self.class_name(type, _qualname(type))

    def annotation(self, type: Type) -> str:
        return annotation(type, self.class_name)

    def need(self, type: Type) -> None:
        """Note that something uses a class, or a function (by its type)."""
        self._needed.setdefault(_identity(type), type)

    def write_all(self, root: ClassType, met: Iterable[ClassType]) -> None:
        """Write the classes of the objects that the data holds, the root's, and what all that turns out to need."""
        for type in met:
            self.write(type)
        self.need(root)
        self.write_needed()

    def write_needed(self) -> None:
        """Write everything noted, and what that turns out to need."""
        at = 0
        while at < len(self._needed):
            self.write(list(self._needed.values())[at])
            at += 1

    def write(self, type: Type) -> None:
        """Write one class or function, unless that is done.  Raises CompileError if it does not compile."""
        if _identity(type) in self._written or (isinstance(type, ClassType) and is_custom(type)):
            return
        self._written.add(_identity(type))
        name = self.name_of(type)
        printer = self.printers.get(prefix_of(name))
        if printer is None:
            printer = SourcePrinter(self.class_name, self.constants, self.need, self.name_of)
            self.printers[prefix_of(name)] = printer
        if isinstance(type, FunctionType):
            printer.function(type.function, name=name_of(name))  # type: ignore[arg-type]
        elif isinstance(type, ClassType):
            write_class(printer, type, name_of(name))
        elif isinstance(type, InterfaceType):
            _write_interface(printer, type, name_of(name))
        else:
            _write_fields(printer, type, name_of(name))


def class_code(type: ClassType) -> str:
    """The text of one class, as its archive would hold it.  Raises CompileError if a method does not compile."""
    printer = SourcePrinter(lambda _type, name: name, ConstantTable())
    write_class(printer, type, type.name)
    return str(printer.body)


def write_class(printer: SourcePrinter, type: ClassType, name: str) -> None:
    printer.line(f"class {name}(Module):\n" if type.is_module else f"class {name}:\n")
    with printer.indented():
        if type.is_module:
            _write_module_head(printer, type)
        for index, attribute in enumerate(type.attributes):
            printer.need(attribute.type)
            _write_attribute(printer, index, attribute.name, printer.annotation(attribute.type))
        for constant, value in type.constants.items():
            kind = type_of(value)
            name_text(constant, "a constant")
            shown = printer.constant(value, kind)
            printer.line(f"{constant} : Final[{printer.annotation(kind)}] = {shown}\n")
        for function in _functions(type):
            printer.function(function)


def _write_module_head(printer: SourcePrinter, type: ClassType) -> None:
    for title, kind in (("__parameters__", "parameter"), ("__buffers__", "buffer")):
        names = [attribute.name for attribute in type.attributes if attribute.kind == kind]
        printer.line(f"{title} = {_name_list(names)}\n")
    hooks = (("__forward_pre_hooks__", type.forward_pre_hooks), ("__forward_hooks__", type.forward_hooks))
    for title, functions in hooks:
        if functions:
            printer.line(f"{title} = {_name_list([function.name for function in functions])}\n")


def _name_list(names: list[str]) -> str:
    return "[" + "".join(f"{string_literal(name)}, " for name in names) + "]"


def _write_attribute(printer: SourcePrinter, index: int, name: str, shown: str) -> None:
    if is_identifier(name):
        printer.line(f"{name} : {shown}\n")
        return
    if index == 0:
        printer.line("__annotations__ = []\n")
    printer.line(f"__annotations__[{string_literal(name)}] = {shown}\n")


def _functions(type: ClassType) -> list[Any]:
    """The methods, and hooks that are no methods, each once."""
    by_name = dict(type.methods)
    for hook in (*type.forward_hooks, *type.forward_pre_hooks):
        by_name.setdefault(hook.name, hook)
    return list(by_name.values())


def _write_interface(printer: SourcePrinter, type: InterfaceType, name: str) -> None:
    printer.line(f"class {name}({'ModuleInterface' if type.is_module else 'Interface'}):\n")
    with printer.indented():
        for method, schema in type.methods.items():
            arguments = [(name_text(a.name, "an argument"), printer.annotation(a.type)) for a in schema.arguments[1:]]
            shown = [f"{argument}: {kind}" for argument, kind in arguments]
            returned = printer.annotation(schema.returns[0].type)
            printer.line(f"def {name_text(method, 'a method')}({', '.join(['self', *shown])}) -> {returned}:\n")
            printer.line("  pass\n")
            for part in (*schema.arguments[1:], *schema.returns):
                printer.need(part.type)


def _write_fields(printer: SourcePrinter, type: Type, name: str) -> None:
    """An enum or a named tuple."""
    assert isinstance(type, (EnumType, TupleType))
    printer.line(f"class {name}({'Enum' if isinstance(type, EnumType) else 'NamedTuple'}):\n")
    with printer.indented():
        if isinstance(type, EnumType):
            for member, value in type.members:
                printer.line(
                    f"{name_text(member, 'a member of an enum')} = {printer.constant(value, type.value_type)}\n"
                )
            return
        for field_name, element in zip(type.fields, type.elements, strict=True):
            printer.need(element)
            printer.line(f"{name_text(field_name, 'a field of a tuple')} : {printer.annotation(element)}\n")


def _qualname(type: Type) -> str:
    if isinstance(type, FunctionType):
        return type.function.qualname  # type: ignore[attr-defined, no-any-return]
    qualname = qualname_of(type)
    assert qualname is not None, f"{type} has no name"
    return qualname


def _identity(type: Type) -> Hashable:
    """The key under which a type is written once: functions by identity, other types by equality."""
    if isinstance(type, FunctionType):
        return type.function  # type: ignore[return-value]
    return type
