"""The code of an archive: classes and functions, made when something first asks for them.

In: the archive's code records by prefix, its table of constants.  Out: types and functions of one
`CompilationUnit`, under the names they have in the archive.  A record is parsed when a name in it is
first needed, a class is set up then, and bodies are compiled when they are first called or all
together by `compile_all`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from engine.frontend.builder import Builder
from engine.frontend.classes import ConstantValue, FunctionValue
from engine.frontend.compile import declare
from engine.frontend.namespaces import OperatorNamespace
from engine.frontend.parser import parse_program
from engine.frontend.resolve import type_value
from engine.frontend.sugar import SugaredValue
from engine.frontend.tree import Tree
from engine.frontend.values import SpecialForm
from engine.frontend.views import ClassDef, Def
from engine.ir.unit import CompilationUnit, Function
from engine.lang.errors import ArchiveError, CompileError, EngineError
from engine.lang.source import Source, SourceRange
from engine.lang.types import Type
from engine.serialize.class_import import import_class
from engine.serialize.debug_records import lazy_finder
from engine.serialize.qualified_names import ROOT, name_of, prefix_of, record_of
from engine.serialize.upgrade import operator_as_of
from engine.serialize.versions import NEWEST_READ

Constants = Callable[[], Sequence[Any]]


class CodeRecords(Protocol):
    """Where the code comes from."""

    def text(self, prefix: str) -> tuple[str, bytes | None] | None:
        """The code of the names under `prefix`, and its debug record; None when there is none."""


class SourceImporter:
    """Finds the classes and functions of one archive by their qualified names."""

    def __init__(self, records: CodeRecords, constants: Constants, version: int = NEWEST_READ) -> None:
        self.unit = CompilationUnit()
        self.version = version
        self._constants = constants
        self.resolver = ArchiveResolver(self)
        self._records = records
        self._parsed: dict[str, dict[str, Tree]] = {}

    def find_type(self, qualname: str) -> Type | None:
        """The class, enum, named tuple or interface of that name; None when the archive has none.

        Raises ArchiveError when its code cannot be read.
        """
        known = self.unit.find_type(qualname)
        if known is None:
            tree = self._definition(qualname, "class_def")
            if tree is not None:
                self._guarded(lambda: import_class(self, qualname, ClassDef(tree)), qualname)
        return self.unit.find_type(qualname)

    def find_function(self, qualname: str) -> Function | None:
        """The function of that name; None when the archive has none.  Raises ArchiveError when it cannot be read."""
        known = self.unit.find_function(qualname)
        if known is None:
            tree = self._definition(qualname, "def")
            if tree is not None:
                self._guarded(lambda: declare(self.unit, [tree], self.resolver, prefix_of(qualname)), qualname)
        return self.unit.find_function(qualname)

    def define_methods(self, qualname: str, trees: Sequence[Tree]) -> list[Function]:
        """Methods, owned by the unit under `qualname`."""
        return declare(self.unit, trees, self.resolver, qualname)

    def constant(self, name: str, range: SourceRange) -> Any:
        """The constant that `CONSTANTS.name` means.  Raises CompileError when there is none."""
        constants, index = self._constants(), name[1:]
        if not name.startswith("c") or not index.isdecimal() or len(index) > 9 or int(index) >= len(constants):
            raise CompileError(f"the archive has no constant '{name}'", range)
        return constants[int(index)]

    def compile_all(self) -> None:
        """Compile every body that is known by now, and those that they need.  Raises ArchiveError."""
        done = 0
        while done < len(self.unit.functions):
            function = list(self.unit.functions.values())[done]
            self._guarded(function.ensure_defined, function.qualname)
            done += 1

    def _guarded(self, action: Callable[[], object], qualname: str) -> None:
        """Run the action; what is wrong with the code is said as what is wrong with the archive."""
        try:
            action()
        except ArchiveError:
            raise
        except EngineError as error:
            raise ArchiveError(f"the code of '{qualname}' is refused: {error}") from error

    def _definition(self, qualname: str, kind: str) -> Tree | None:
        tree = self._trees(prefix_of(qualname)).get(name_of(qualname))
        return tree if tree is not None and tree.kind == kind else None

    def _trees(self, prefix: str) -> dict[str, Tree]:
        """What one record defines, by name; parsed once."""
        if prefix not in self._parsed:
            found = self._records.text(prefix)
            self._parsed[prefix] = {} if found is None else _parse(prefix, *found)
        return self._parsed[prefix]


def _parse(prefix: str, text: str, debug: bytes | None) -> dict[str, Tree]:
    record = record_of(prefix)
    original = None if debug is None else lazy_finder(lambda: debug, f"{record}.debug_pkl")
    try:
        trees = parse_program(Source(text, record, original=original))
    except CompileError as error:
        raise ArchiveError(f"the code cannot be read: {error}", record=record) from error
    return {(ClassDef(tree).name if tree.kind == "class_def" else Def(tree).name): tree for tree in trees}


# -- names in the code


class ArchiveResolver:
    """The names that an archive's code may use: operators, constants, special forms and its own definitions."""

    def __init__(self, importer: SourceImporter) -> None:
        self._importer = importer
        self._values: dict[str, SugaredValue] = {
            **_FORMS,
            "torch": _TorchNamespace(importer.version),
            "ops": OperatorNamespace(),
            "CONSTANTS": _ConstantsNamespace(importer),
            ROOT: _Namespace(importer, ROOT),
        }

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        return self._values.get(name)

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return self._importer.find_type(name) if name.startswith(f"{ROOT}.") else None

    def names(self) -> Iterable[str]:
        return self._values


_FORMS: Final[dict[str, SugaredValue]] = {
    **{name: SpecialForm(name) for name in ("annotate", "unchecked_cast", "uninitialized", "fork", "awaitable")},
    "inf": ConstantValue(math.inf), "nan": ConstantValue(math.nan),
    "infj": ConstantValue(complex(0.0, math.inf)), "nanj": ConstantValue(complex(0.0, math.nan)),
}  # fmt: skip


class _TorchNamespace(OperatorNamespace):
    """`torch.add` is `aten::add` as the archive's version means it, and `torch.autograd.grad` is `aten::grad`."""

    __slots__ = ("_version",)

    def __init__(self, version: int) -> None:
        super().__init__("aten")
        self._version = version

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        return OperatorNamespace("aten") if name == "autograd" else operator_as_of(self._version, name)


class _ConstantsNamespace(SugaredValue):
    """`CONSTANTS.c3` is the constant number 3 of the archive's table."""

    __slots__ = ("_importer",)
    kind = "table of constants"

    def __init__(self, importer: SourceImporter) -> None:
        self._importer = importer

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        return ConstantValue(self._importer.constant(name, range))


class _Namespace(SugaredValue):
    """`__torch__.foo`: a class or a function of the archive, or a part of their names."""

    __slots__ = ("_importer", "_path")
    kind = "module"

    def __init__(self, importer: SourceImporter, path: str) -> None:
        self._importer, self._path = importer, path

    def describe(self) -> str:
        return f"module '{self._path}'"

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        qualname = f"{self._path}.{name}"
        type = self._importer.find_type(qualname)
        if type is not None:
            value = type_value(type)
            if value is None:
                raise CompileError(f"'{qualname}' cannot be used as a value", range)
            return value
        function = self._importer.find_function(qualname)
        return FunctionValue(function) if function is not None else _Namespace(self._importer, qualname)
