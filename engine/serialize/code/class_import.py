"""Classes of an archive's code, from their trees: modules, script classes, enums, named tuples, interfaces.

In: a class definition as the Python printer writes it.  Out: the type, owned by the importer's unit:

    class Linear(Module):
      __parameters__ = ["weight", ]            which attributes are parameters (buffers alike)
      weight : Tensor
      __annotations__["0"] = __torch__.Sub     an attribute whose name is no identifier
      in_features : Final[int] = 6             a constant
      def forward(self: __torch__.Linear, ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from engine.frontend.matching.convert import MAX_TUPLE_SIZE
from engine.frontend.names.type_annotations import TypeReader
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Assign, ClassDef, Decl, Def, ListLiteral, StringLiteral, Subscript, Var
from engine.ir.constants import type_of
from engine.lang.errors import CompileError
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import ANY, NONE, ClassType, EnumType, InterfaceType, TupleType, Type
from engine.serialize.code.constant_import import constant_of

if TYPE_CHECKING:
    from engine.serialize.code.source_import import SourceImporter

_LISTS: Final = {
    "__parameters__": "parameter", "__buffers__": "buffer",
    "__forward_hooks__": "hook", "__forward_pre_hooks__": "pre_hook",
}  # fmt: skip


def import_class(importer: SourceImporter, qualname: str, definition: ClassDef) -> None:
    """Define the class in the importer's unit.  Raises CompileError."""
    base = definition.superclass
    name = Var(base).name if base is not None and base.kind == "variable" else ""
    maker = _MAKERS.get(name) if base is not None else _script_class
    if maker is None:
        raise CompileError(f"a class of an archive cannot be derived from '{name}'", definition.range)
    maker(importer, qualname, definition)


def _module(importer: SourceImporter, qualname: str, definition: ClassDef) -> None:
    _class(importer, ClassType(qualname, is_module=True), definition)


def _script_class(importer: SourceImporter, qualname: str, definition: ClassDef) -> None:
    _class(importer, ClassType(qualname), definition)


def _class(importer: SourceImporter, type: ClassType, definition: ClassDef) -> None:
    # The class is known before its attributes are, since their types, and the methods, may name it.
    importer.unit.add_type(type.qualname, type)
    body = _ClassBody(importer, type)
    for tree in definition.body:
        if tree.kind != "def":
            body.statement(tree)
    functions = {
        function.name: function
        for function in importer.define_methods(type.qualname, [tree for tree in definition.body if tree.kind == "def"])
    }
    for kind, hooks in (("hook", type.forward_hooks), ("pre_hook", type.forward_pre_hooks)):
        for name in body.named[kind]:
            if name not in functions:
                raise CompileError(f"the class has no hook '{name}'", definition.range)
            hooks.append(functions[name])
    no_methods = {*body.named["hook"], *body.named["pre_hook"]}
    type.methods.update((name, function) for name, function in functions.items() if name not in no_methods)


class _ClassBody:
    """The lines of a class that are no methods; `named` holds the lists of names by kind."""

    def __init__(self, importer: SourceImporter, type: ClassType) -> None:
        self._importer, self._type = importer, type
        self._reader = TypeReader(importer.resolver)
        self.named: dict[str, list[str]] = {kind: [] for kind in _LISTS.values()}

    def statement(self, tree: Tree) -> None:
        """Take in one line.  Raises CompileError for one that classes do not have."""
        targets = Assign(tree).targets if tree.kind == "assign" else ()
        if len(targets) != 1:
            raise CompileError("a class of an archive holds attributes and methods only", tree.range)
        target, assign = targets[0], Assign(tree)
        if target.kind == "subscript":
            self._attribute(_subscripted_name(target), _value_of(assign))
            return
        name, annotation = Var(target).name if target.kind == "variable" else "", assign.annotation
        if name in _LISTS:
            self.named[_LISTS[name]] = _texts(_value_of(assign))
        elif annotation is not None and assign.value is not None:
            self._type.constants[name] = constant_of(self._importer, assign.value)
        elif annotation is not None:
            self._attribute(name, annotation)
        elif name != "__annotations__":
            raise CompileError("a class of an archive holds attributes and methods only", tree.range)

    def _attribute(self, name: str, annotation: Tree) -> None:
        if not name or self._type.slot(name) is not None:
            raise CompileError(f"the class has two attributes '{name}'", annotation.range)
        named = self.named
        kind = "parameter" if name in named["parameter"] else "buffer" if name in named["buffer"] else "attribute"
        self._type.add_attribute(name, self._reader.read(annotation), kind)


def _texts(tree: Tree) -> list[str]:
    parts = ListLiteral(tree).inputs if tree.kind == "list_literal" else (tree,)
    if any(part.kind != "string_literal" for part in parts):
        raise CompileError("a list of names is wanted here", tree.range)
    return [StringLiteral(part).text for part in parts]


def _subscripted_name(target: Tree) -> str:
    """The `0` of `__annotations__["0"]`."""
    view = Subscript(target)
    of_annotations = view.value.kind == "variable" and Var(view.value).name == "__annotations__"
    if not of_annotations or len(view.subscripts) != 1 or view.subscripts[0].kind != "string_literal":
        raise CompileError("a class of an archive holds attributes and methods only", target.range)
    return StringLiteral(view.subscripts[0]).text


def _value_of(assign: Assign) -> Tree:
    if assign.value is None:
        raise CompileError("a value is missing here", assign.range)
    return assign.value


def _fields(definition: ClassDef) -> list[tuple[str, Assign]]:
    """The assignments that a named tuple or an enum consists of, by name."""
    assigns = [Assign(tree) for tree in definition.body if tree.kind == "assign"]
    if len(assigns) != len(definition.body) or any(a.targets[0].kind != "variable" for a in assigns):
        raise CompileError("this kind of class holds nothing but fields", definition.range)
    return [(Var(assign.targets[0]).name, assign) for assign in assigns]


def _named_tuple(importer: SourceImporter, qualname: str, definition: ClassDef) -> None:
    reader = TypeReader(importer.resolver)
    fields, elements, defaults = [], [], []
    for name, assign in _fields(definition):
        if assign.annotation is None:
            raise CompileError("a field of a named tuple has no type", assign.range)
        fields.append(name)
        elements.append(reader.read(assign.annotation))
        if assign.value is not None:
            defaults.append(constant_of(importer, assign.value))
    type = TupleType(tuple(elements), qualname, tuple(fields), tuple(defaults))
    if type.size > MAX_TUPLE_SIZE:  # named tuples of named tuples get big from little text
        raise CompileError(f"'{qualname}' has {type.size} parts, {MAX_TUPLE_SIZE} are allowed", definition.range)
    importer.unit.add_type(qualname, type)


def _enum(importer: SourceImporter, qualname: str, definition: ClassDef) -> None:
    members = tuple((name, constant_of(importer, _value_of(assign))) for name, assign in _fields(definition))
    types = {type_of(value) for _, value in members}
    if len(types) != 1:
        raise CompileError("the members of an enum must be of one type", definition.range)
    importer.unit.add_type(qualname, EnumType(qualname, types.pop(), members))


def _interface(is_module: bool) -> Callable[[SourceImporter, str, ClassDef], None]:
    def make(importer: SourceImporter, qualname: str, definition: ClassDef) -> None:
        type = InterfaceType(qualname, is_module=is_module)
        importer.unit.add_type(qualname, type)
        reader = TypeReader(importer.resolver)
        for tree in definition.body:
            if tree.kind != "def":
                raise CompileError("an interface holds nothing but methods", tree.range)
            type.methods[Def(tree).name] = _schema(Def(tree).name, Def(tree).decl, type, reader)

    return make


def _schema(name: str, decl: Decl, owner: Type, reader: TypeReader) -> FunctionSchema:
    """The schema of a method that has no body."""
    arguments = [Argument("self", owner)]
    for parameter in decl.params[1:]:
        type = ANY if parameter.annotation is None else reader.read(parameter.annotation)
        arguments.append(Argument(parameter.name, type, kwarg_only=parameter.kwarg_only))
    returned = NONE if decl.returns is None else reader.read(decl.returns)
    return FunctionSchema(name, arguments=tuple(arguments), returns=(Argument("", returned),))


_MAKERS: Final[dict[str, Callable[[SourceImporter, str, ClassDef], None]]] = {
    "Module": _module, "NamedTuple": _named_tuple, "Enum": _enum, "Interface": _interface(False),
    "ModuleInterface": _interface(True),
}  # fmt: skip
