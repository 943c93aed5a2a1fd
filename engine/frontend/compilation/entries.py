"""An entry at a prompt as a function.

In: statements, and the types of the variables that they see.  Out: an `EntryFunction`: compiled, with the
names of its parameters and of what it returns.

    x = y + 1          def __entry__(y: <type of y>):
    x * 2       ->         x = y + 1
                           return (x, x * 2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from engine.frontend.compilation.compile import define
from engine.frontend.names.resolve import Resolver
from engine.frontend.syntax.name_uses import NameUses, names_of
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Apply, Decl, Def, ExprStmt, Param, Return, TupleLiteral, Var
from engine.ir.unit import CompilationUnit, Function
from engine.lang.records import dataclass
from engine.lang.types import NONE, TupleType, Type

ENTRY: Final = "__entry__"
"""The name of the function that an entry is compiled to; call stacks do not show it."""
ResolverOf = Callable[[Mapping[str, Type]], Resolver]
"""From annotations, which stand for the types of variables, to what resolves the names of an entry."""


@dataclass(frozen=True, slots=True)
class EntryFunction:
    """`results` are (name, type) in the order they come back; `lost` are set on some paths only, `deleted` by `del`."""

    function: Function
    parameters: tuple[str, ...]
    results: tuple[tuple[str, Type], ...]
    lost: tuple[str, ...]
    deleted: tuple[str, ...]

    def split(self, value: Any) -> list[tuple[str, Any, Type]]:
        """The function's results as (name, value, type)."""
        values = [value] if len(self.results) == 1 else list(value) if self.results else []
        return [(name, each, type) for (name, type), each in zip(self.results, values, strict=True)]


def compile_entry(
    statements: Sequence[Tree], variables: Mapping[str, Type], resolver_of: ResolverOf, last: str
) -> EntryFunction:
    """Compile the statements; `last` is the name for the value of the last one if it is an expression.

    Raises CompileError.
    """
    names = names_of(statements)
    parameters = tuple(name for name in variables if name in names.reads or _may_stay(name, names))
    kept = [name for name in names.assigned if name in names.defined or name in parameters]
    body, shown = _body(statements, kept)
    range = statements[0].range.to(statements[-1].range)
    annotated = {_type_name(index): variables[name] for index, name in enumerate(parameters)}
    params = [
        Param.make(range, name, Var.make(range, annotation), None, False)
        for name, annotation in zip(parameters, annotated, strict=True)
    ]
    tree = Def.make(range, ENTRY, Decl.make(range, params, None), body)
    (function,) = define(CompilationUnit(), [tree], resolver_of(annotated))
    results = tuple(zip([*kept, last] if shown else kept, _result_types(function, len(kept) + shown), strict=True))
    lost = tuple(name for name in names.assigned if name not in kept and name not in names.counters)
    return EntryFunction(function, parameters, results, lost, tuple(names.deleted & set(variables)))


def _may_stay(name: str, names: NameUses) -> bool:
    """True if the variable is set on some paths only, so that on the others its old value stays."""
    return name in names.assigned and name not in names.defined


def _body(statements: Sequence[Tree], kept: Sequence[str]) -> tuple[list[Tree], bool]:
    """The statements, ended by a `return` of the names and of the last value; and True if there is such a value."""
    last = statements[-1]
    shown = last.kind == ExprStmt.kind and not _prints(ExprStmt(last).expression)
    results = [Var.make(last.range, name) for name in kept] + ([ExprStmt(last).expression] if shown else [])
    rest = list(statements[:-1] if shown else statements)
    if not results:
        return rest, shown
    value = results[0] if len(results) == 1 else TupleLiteral.make(last.range, results)
    return [*rest, Return.make(last.range, value)], shown


def _prints(tree: Tree) -> bool:
    """True for a call of `print`, which gives no value, not even None."""
    callee = Apply(tree).callee if tree.kind == Apply.kind else None
    return callee is not None and callee.kind == Var.kind and Var(callee).name == "print"


def _result_types(function: Function, count: int) -> Iterable[Type]:
    type = function.schema.returns[0].type if function.schema.returns else NONE
    if count == 1:
        return (type,)
    if count == 0:
        return ()
    assert isinstance(type, TupleType), f"an entry of {count} results returns {type}"
    return type.elements


_TYPE_PREFIX: Final = "$type_"


def _type_name(index: int) -> str:
    """The annotation of a parameter: no program can write it."""
    return f"{_TYPE_PREFIX}{index}"
