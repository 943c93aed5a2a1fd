"""The code of an archive: classes and functions, made when something first asks for them.

In: the archive's code records by prefix, its table of constants.  Out: types and functions of one
`CompilationUnit`, under the names they have in the archive.  A record is parsed when a name in it is
first needed, a class is set up then, and bodies are compiled when first needed, by any thread, or all
together by `compile_all`.  An error in one is an ArchiveError in either case.  What a body calls is not
compiled with it: archives say what their functions take and give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

from engine.frontend.compilation.compile import declare, signature_of
from engine.frontend.matching.schema_match import Actual
from engine.frontend.names.namespaces import OperatorNamespace
from engine.frontend.names.resolve import type_value
from engine.frontend.names.type_annotations import TypeReader
from engine.frontend.sugared.classes import ClassValue, ConstantValue, FunctionValue
from engine.frontend.sugared.custom_methods import custom_class
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import SpecialForm
from engine.frontend.syntax.parser import parse_expression
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import ClassDef
from engine.ir.constants import type_of
from engine.ir.graph import Value
from engine.ir.match import callees_in
from engine.ir.unit import DEFINING, CompilationUnit, Function, recursive_call
from engine.lang.custom_classes import foreign, is_custom_name, is_foreign
from engine.lang.errors import ArchiveError, CompileError, EngineError
from engine.lang.progress import step
from engine.lang.schema import FunctionSchema
from engine.lang.source import Source, SourceRange
from engine.lang.types import ClassType, Type
from engine.passes.erase_shape_information import unshaped
from engine.serialize.code.class_import import import_class
from engine.serialize.code.kept_graphs import ArchivedProgram, KeptGraphs
from engine.serialize.code.kept_text import KeptText
from engine.serialize.code.opaque import ArchivedNamespace, MissingOperators, OpaqueCalls, unusable
from engine.serialize.code.parsed_code import PARSED, DebugRecord
from engine.serialize.container.qualified_names import ROOT, name_of, prefix_of, prefix_of_record, record_of
from engine.serialize.upgrade.upgraders import operator_as_of
from engine.serialize.upgrade.versions import NEWEST_READ

Constants = Callable[[], Sequence[Any]]


class CodeRecords(Protocol):
    """Source of code records."""

    def text(self, prefix: str) -> tuple[str, DebugRecord] | None:
        """The code of the names under `prefix`, and its debug record; None when there is none."""


class SourceImporter:
    """Finds the classes and functions of one archive by their qualified names."""

    def __init__(self, records: CodeRecords, constants: Constants, version: int = NEWEST_READ) -> None:
        self.unit = CompilationUnit()
        self.version = version
        self.before_run: Callable[[], None] | None = None
        """Check to be called before a function of the archive first runs."""
        self.graphs: KeptGraphs | None = None
        """Graphs that other processes compiled of the same code."""
        self.program = ArchivedProgram(self)
        self.opaque = OpaqueCalls()
        self.constants = constants
        self.resolver = ArchiveResolver(self)
        self._records = records
        self._parsed: dict[str, Mapping[str, Tree]] = {}
        self._unsigned: dict[Function, Callable[[], None]] = {}
        self._calls: dict[Function, Sequence[Function]] = {}
        """The functions that compiled ones call."""
        self._is_compiling = False

    def find_type(self, qualname: str) -> Type | None:
        """The class, enum, named tuple or interface of that name; None when the archive has none.

        Raises ArchiveError when its code cannot be read.
        """
        known = self.unit.find_type(qualname)
        if known is not None and not self.unit.attempts:
            return known
        with DEFINING, self.unit.attempt():
            known = self.unit.find_type(qualname)
            if known is None and is_custom_name(qualname):
                known = custom_class(qualname) or foreign(qualname, self.opaque.names)
                self.unit.add_type(qualname, known)
            elif known is None and (tree := self._definition(qualname, "class_def")) is not None:
                self.guarded(lambda: import_class(self, qualname, ClassDef(tree)), qualname)
            return self.unit.find_type(qualname)

    def missing_class(self, qualname: str) -> ClassType:
        """A class for a name that the archive uses and has no code for."""
        with DEFINING, self.unit.attempt():
            found = foreign(qualname, self.opaque.names)
            self.unit.add_type(qualname, found)
            return found

    def note(self, type: Type) -> None:
        """Note that code names the type, if the archive has no code for it."""
        if isinstance(type, ClassType) and is_foreign(type) and not is_custom_name(type.qualname):
            self.opaque.names.append(type.qualname)

    def read_type(self, annotation: str) -> Type:
        """The type that an annotation in a pickle spells.  Raises CompileError."""
        return TypeReader(self.resolver).read(parse_expression(Source(annotation, "<annotation>", is_generated=True)))

    def find_signed_type(self, qualname: str) -> Type | None:
        """The type of that name, its methods' signatures read, which determine the interfaces it implements."""
        found = self.find_type(qualname)
        self.read_signatures()
        return found

    def find_function(self, qualname: str) -> Function | None:
        """The function of that name; None when the archive has none.  Raises ArchiveError when it cannot be read."""
        known = self.unit.find_function(qualname)
        if known is not None:
            return known
        with DEFINING, self.unit.attempt():
            if self.unit.find_function(qualname) is None:
                tree = self._definition(qualname, "def")
                if tree is not None:
                    self.guarded(lambda: self.define_methods(prefix_of(qualname), [tree]), qualname)
            return self.unit.find_function(qualname)

    def define_methods(self, qualname: str, trees: Sequence[Tree], type: ClassType | None = None) -> list[Function]:
        """Methods or functions, owned by the unit under `qualname`; with `type`, they are methods of that class."""
        functions = declare(self.unit, trees, self.resolver, qualname, type)
        for function, tree in zip(functions, trees, strict=True):
            assert function.creator is not None
            function.before_run, function.written = self.before_run, tree.range
            function.program = self.program
            function.creator = partial(self._compile, function.creator, tree)
            function.declares = partial(self.signature_of, function)
            self._unsigned[function] = partial(self._sign, function, tree, type)
        return functions

    def _sign(self, function: Function, tree: Tree, type: ClassType | None) -> None:
        function.sign(signature_of(self.unit, tree, self.resolver, type))

    def signature_of(self, function: Function) -> FunctionSchema:
        """The schema as far as the text tells it; nothing is compiled for it.  Raises CompileError."""
        sign = self._unsigned.pop(function, None)
        if sign is not None:
            sign()
        return function.signature

    def read_signatures(self) -> None:
        """Read those of all functions that are known by now, and the classes that they name.  Raises ArchiveError."""
        while self._unsigned:
            function = next(iter(self._unsigned))
            self.guarded(self._unsigned.pop(function), function.qualname)

    def _compile(self, create: Callable[[Function], None], tree: Tree, function: Function) -> None:
        """Compile a body, and those that it needs.  Raises ArchiveError.

        One that does not compile for want of an operator that is not known here says so.
        """
        if self._is_compiling:  # the outer call reports the error
            self._create(create, tree, function)
            return
        known, self._is_compiling = len(self.opaque.names), True
        try:
            self.guarded(lambda: self._create(create, tree, function), function.qualname)
        except (ArchiveError, MissingOperators) as error:
            if len(self.opaque.names) == known:
                raise
            unusable(function, self.opaque, self.opaque.names[known:], error)
            assert function.creator is not None
            function.creator(function)
        finally:
            self._is_compiling = False
            if len(self.opaque.names) > known:
                function.kept = KeptText(tree.range, self.find_type, self.find_function, self.constant)

    def _create(self, create: Callable[[Function], None], tree: Tree, function: Function) -> None:
        """Take the body as another process compiled it, or compile it; it is kept where all its operators are known."""
        known, creator, source = len(self.opaque.names), function.creator, tree.range.source
        assert creator is not None
        is_restored = self.graphs is not None and self.graphs.restore(function, self, source)
        if not is_restored:
            create(function)
        self._calls[function] = callees_in(function.graph)
        if self._calls_itself(function):
            function.undefine(creator)
            raise recursive_call(function, tree.range)
        if self.graphs is not None and not is_restored and len(self.opaque.names) == known:
            self.graphs.keep(function, self, source)

    def _calls_itself(self, function: Function) -> bool:
        """True if calls lead back to the function, as far as what it calls is compiled: of functions that call each
        other in a circle, the one that is compiled last is asked when all others are."""
        known, waiting = {function}, [function]
        while waiting:
            for callee in self._calls.get(waiting.pop(), ()):
                if callee is function:
                    return True
                if callee not in known:
                    known.add(callee)
                    waiting.append(callee)
        return False

    def constant(self, name: str, range: SourceRange) -> Any:
        """The constant that `CONSTANTS.name` means.  Raises CompileError when there is none."""
        constants, index = self.constants(), name[1:]
        if not name.startswith("c") or not index.isdecimal() or len(index) > 9 or int(index) >= len(constants):
            raise CompileError(f"the archive has no constant '{name}'", range)
        return constants[int(index)]

    def compile_all(self) -> None:
        """Compile every body that is known by now, and those that they need.  Raises ArchiveError.

        A body that does not compile for want of an operator that is not known here says so when it is called.
        """
        done = 0
        while done < len(self.unit.functions):
            function = list(self.unit.functions.values())[done]
            with suppress(MissingOperators):
                self.guarded(function.ensure_defined, function.qualname)
            done += 1
            step("compiling", "", done, len(self.unit.functions))

    def guarded(self, action: Callable[[], object], qualname: str) -> None:
        """Run the action; an error in the code is raised as an ArchiveError."""
        try:
            action()
        except (ArchiveError, MissingOperators):
            raise
        except (MemoryError, RecursionError) as error:
            what = "more memory than there is" if isinstance(error, MemoryError) else "a deeper stack than there is"
            raise ArchiveError(f"the code of '{qualname}' needs {what}", record=_record(qualname)) from None
        except EngineError as error:
            record, offset = _place(error, qualname)
            raise ArchiveError(f"the code of '{qualname}' is refused: {error}", record=record, offset=offset) from error

    def source_of(self, record: str) -> Source | None:
        """The text of a record of code, by the record's name; None where there is none.  Raises ArchiveError."""
        trees = self._trees(prefix_of_record(record))
        return next((tree.range.source for tree in trees.values()), None)

    def _definition(self, qualname: str, kind: str) -> Tree | None:
        tree = self._trees(prefix_of(qualname)).get(name_of(qualname))
        return tree if tree is not None and tree.kind == kind else None

    def _trees(self, prefix: str) -> Mapping[str, Tree]:
        """Definitions of one record by name; parsed once."""
        if prefix not in self._parsed:
            found = self._records.text(prefix)
            self._parsed[prefix] = {} if found is None else PARSED.definitions(found[0], record_of(prefix), found[1])
        return self._parsed[prefix]


def _place(error: EngineError, qualname: str) -> tuple[str, int | None]:
    """The record that the error is about, and where in it: the innermost place that is in the archive."""
    places = [error.range, *(frame.range for frame in reversed(error.frames))]
    for place in places:
        if place is not None and not place.source.filename.startswith("<"):  # as the engine's own sources are called
            return place.source.filename, place.start
    return _record(qualname), next((place.start for place in places if place is not None), None)


def _record(qualname: str) -> str:
    return record_of(prefix_of(qualname))


# -- names in the code


class ArchiveResolver:
    """The names that an archive's code may use: operators, constants, special forms and its own definitions."""

    def __init__(self, importer: SourceImporter) -> None:
        self._importer = importer
        self._values: dict[str, SugaredValue] = {
            **_FORMS,
            "torch": _TorchNamespace(importer.version, importer.opaque),
            "ops": ArchivedNamespace(importer.opaque),
            "CONSTANTS": _ConstantsNamespace(importer),
            ROOT: _CodeNamespace(importer, ROOT),
        }

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        return self._values.get(name)

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        if not name.startswith(f"{ROOT}."):
            return None
        found = self._importer.find_type(name) or self._importer.missing_class(name)
        self._importer.note(found)
        return found

    def names(self) -> Iterable[str]:
        return self._values


_FORMS: Final[dict[str, SugaredValue]] = {
    **{name: SpecialForm(name) for name in ("annotate", "unchecked_cast", "uninitialized", "fork", "awaitable")},
    "inf": ConstantValue(math.inf), "nan": ConstantValue(math.nan),
    "infj": ConstantValue(complex(0.0, math.inf)), "nanj": ConstantValue(complex(0.0, math.nan)),
}  # fmt: skip


class _TorchNamespace(OperatorNamespace):
    """`torch.add` is `aten::add` as the archive's version means it, and `torch.autograd.grad` is `aten::grad`."""

    __slots__ = ("_opaque", "_version")

    def __init__(self, version: int, opaque: OpaqueCalls) -> None:
        super().__init__("aten")
        self._version, self._opaque = version, opaque

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        if name == "autograd":
            return OperatorNamespace("aten")
        return self._opaque.or_opaque(b, operator_as_of(self._version, name))


class _ConstantsNamespace(SugaredValue):
    """`CONSTANTS.c3` is the constant number 3 of the archive's table."""

    __slots__ = ("_importer",)
    kind = "table of constants"

    def __init__(self, importer: SourceImporter) -> None:
        self._importer = importer

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        return _TableConstant(self._importer.constant(name, range))


class _TableConstant(ConstantValue):
    """A constant of the table: a tensor is of no particular dtype or shape to the program that uses it."""

    __slots__ = ()

    def as_value(self, b: Builder, range: SourceRange) -> Value:
        return b.constant(self.constant, range, unshaped(type_of(self.constant)))


class _CodeNamespace(SugaredValue):
    """`__torch__.foo`: a class or a function of the archive, or a part of their names."""

    __slots__ = ("_importer", "_path")
    kind = "module"

    def __init__(self, importer: SourceImporter, path: str) -> None:
        self._importer, self._path = importer, path

    def describe(self) -> str:
        return f"module '{self._path}'"

    def as_value(self, b: Builder, range: SourceRange) -> Value:
        self._importer.opaque.names.append(self._path)
        return super().as_value(b, range)

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        name = f"{prefix_of(self._path)}::{name_of(self._path)}"
        return self._importer.opaque.operator(name).call(b, args, kwargs, range)

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        qualname = f"{self._path}.{name}"
        if name == "__new__":
            return ClassValue(self._importer.missing_class(self._path)).attr(b, name, range)
        type = self._importer.find_type(qualname)
        if type is not None:
            self._importer.note(type)
            value = type_value(type)
            if value is None:
                raise CompileError(f"'{qualname}' cannot be used as a value", range)
            return value
        function = self._importer.find_function(qualname)
        return FunctionValue(function) if function is not None else _CodeNamespace(self._importer, qualname)
