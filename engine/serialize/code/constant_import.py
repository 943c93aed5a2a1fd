"""Constants in the classes of an archive: the value of an expression that only names and literals make up.

In: the tree after the `=` of `eps : Final[float] = 0.001`.  Out: the Python value.  Nothing is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from engine.aten.values.ivalue import EnumValue
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import (
    Apply,
    Const,
    DictLiteral,
    ListLiteral,
    Select,
    StringLiteral,
    TupleLiteral,
    Var,
)
from engine.lang import scalars
from engine.lang.errors import CompileError
from engine.lang.types import EnumType, TupleType

if TYPE_CHECKING:
    from engine.serialize.code.source_import import SourceImporter

Evaluate = Callable[["SourceImporter", Tree], Any]


def constant_of(importer: SourceImporter, tree: Tree) -> Any:
    """The value of a constant expression.  Raises CompileError for any other."""
    rule = _RULES.get(tree.kind)
    if rule is None:
        raise _no_constant(tree)
    return rule(importer, tree)


def _no_constant(tree: Tree) -> CompileError:
    return CompileError("this is not a constant", tree.range)


def _variable(_importer: SourceImporter, tree: Tree) -> Any:
    name = Var(tree).name
    if name not in _NAMES:
        raise _no_constant(tree)
    return _NAMES[name]


def _negated(importer: SourceImporter, tree: Tree) -> Any:
    value = constant_of(importer, tree.child(0))
    if isinstance(value, bool) or not isinstance(value, (int, float, complex)):
        raise _no_constant(tree)
    return -value


def _sum(importer: SourceImporter, tree: Tree) -> Any:
    """`1.+2.j`: the only sum that is a constant."""
    left, right = (constant_of(importer, tree.child(index)) for index in (0, 1))
    if not isinstance(left, float) or not isinstance(right, complex):
        raise _no_constant(tree)
    return complex(left, -right.imag if tree.kind == "-" else right.imag)


def _dict(importer: SourceImporter, tree: Tree) -> Any:
    view = DictLiteral(tree)
    keys = [constant_of(importer, key) for key in view.keys]
    if any(isinstance(key, (list, dict)) for key in keys):
        raise _no_constant(tree)
    return dict(zip(keys, (constant_of(importer, value) for value in view.values), strict=True))


def _selected(importer: SourceImporter, tree: Tree) -> Any:
    """`CONSTANTS.c0`, or a member of an enum."""
    view = Select(tree)
    path = _path(view.value)
    if path == "CONSTANTS":
        return importer.constant(view.name, view.range)
    type = importer.find_type(path)
    if isinstance(type, EnumType) and view.name in dict(type.members):
        return EnumValue(type, view.name)
    raise _no_constant(tree)


def _applied(importer: SourceImporter, tree: Tree) -> Any:
    """`annotate(List[int], [])`, `torch.device("cpu")`, or a named tuple."""
    view = Apply(tree)
    path = _path(view.callee)
    if view.attributes or path == "":
        raise _no_constant(tree)
    if path == "annotate" and len(view.inputs) == 2:
        return constant_of(importer, view.inputs[1])
    values = tuple(constant_of(importer, each) for each in view.inputs)
    if path == "torch.device" and len(values) == 1 and isinstance(values[0], str):
        return scalars.device(values[0])
    type = importer.find_type(path)
    if isinstance(type, TupleType) and len(values) == len(type.elements):
        return values
    raise _no_constant(tree)


def _path(tree: Tree) -> str:
    """`a.b.c` of the tree for it; "" for anything else."""
    names: list[str] = []
    while tree.kind == ".":
        names.append(Select(tree).name)
        tree = Select(tree).value
    return ".".join([Var(tree).name, *reversed(names)]) if tree.kind == "variable" else ""


_NAMES: Final = {"inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf), "nanj": complex(0, math.nan)}
_RULES: Final[dict[str, Evaluate]] = {
    "const": lambda _, tree: Const(tree).value,
    "string_literal": lambda _, tree: StringLiteral(tree).text,
    "True": lambda _, tree: True, "False": lambda _, tree: False, "None": lambda _, tree: None,
    "variable": _variable, "unary_minus": _negated, "+": _sum, "-": _sum,
    "tuple_literal": lambda importer, tree: tuple(constant_of(importer, each) for each in TupleLiteral(tree).inputs),
    "list_literal": lambda importer, tree: [constant_of(importer, each) for each in ListLiteral(tree).inputs],
    "dict_literal": _dict, ".": _selected, "apply": _applied,
}  # fmt: skip
