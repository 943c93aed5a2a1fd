"""The methods that Python's `dataclass` generates, as trees.

In: a dataclass and its tree.  Out: the tree with `__init__`, `__repr__`, `__eq__` and, for one that has an order, the
comparisons written out, unless the class has its own.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from engine.frontend.syntax.parser import parse_program
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Assign, ClassDef, Def, Var
from engine.lang.errors import NotSupportedError
from engine.lang.literals import string_literal
from engine.lang.source import Source


def with_dataclass_methods(cls: type, tree: Tree) -> Tree:
    """The class with the methods that `dataclass` gives it.  Raises NotSupportedError for default factories."""
    view = ClassDef(tree)
    own = {Def(part).name for part in view.body if part.kind == "def"}
    made = [
        part
        for part in parse_program(Source(_methods(cls, view), "<dataclass>", is_generated=True))
        if Def(part).name not in own
    ]
    return ClassDef.make(view.range, view.name, None, [*view.body, *made], [p.tree for p in view.properties])


def _methods(cls: type, view: ClassDef) -> str:
    annotations = dict(_annotations(view))
    known: dict[str, dataclasses.Field[object]] = getattr(cls, "__dataclass_fields__")  # noqa: B009
    taken = [known[name] for name in inspect.signature(cls).parameters]
    fields = [field for field in dataclasses.fields(cls) if field.init]
    types = {f.name: _INIT_VAR.sub(r"\1", annotations.get(f.name, "Tensor")) for f in taken}
    params = ", ".join(["self", *(f"{f.name}: {types[f.name]}{_default(f, view)}" for f in taken)])
    lines = [f"def __init__({params}):", *(f"    self.{field.name} = {field.name}" for field in fields)]
    if hasattr(cls, "__post_init__"):
        lines.append(f"    self.__post_init__({', '.join(f.name for f in taken if f not in fields)})")
    if len(lines) == 1:
        lines.append("    pass")
    options: Any = getattr(cls, "__dataclass_params__")  # noqa: B009
    compared = [(f.name, _may_be_none(annotations.get(f.name, ""))) for f in fields if f.compare]
    if options.repr:
        shown = ", ".join(f"{f.name}=self.{f.name}" for f in fields if f.repr)
        lines += ["def __repr__(self) -> str:", f"    return '{cls.__name__}({shown})'"]
    if options.eq:
        lines += _comparison(cls, "__eq__", compared, _UNEQUAL, at_the_end=True)
    for name, (operator, at_the_end) in _ORDER.items() if options.order else ():
        ordered = [line.format(operator=operator) for line in _ORDERED]
        lines += _comparison(cls, name, compared, ordered, at_the_end=at_the_end)
    return "\n".join([*lines, ""])


def _comparison(
    cls: type, name: str, fields: list[tuple[str, bool]], test: Sequence[str], *, at_the_end: bool
) -> list[str]:
    """A method that compares field by field; `test` makes the statements that return where two values decide."""
    lines = [f"def {name}(self, other: {cls.__name__}) -> bool:"]
    for field, optional in fields:
        lines += [f"    val1 = self.{field}", f"    val2 = other.{field}"]
        if not optional:
            lines += [f"    {line}" for line in test]
            continue
        lines += ["    if val1 is not None and val2 is not None:", *(f"        {line}" for line in test)]
        outcome = "return False" if name == "__eq__" else f"raise TypeError('cannot compare {field}: one is None')"
        lines += ["    elif (val1 is None) != (val2 is None):", f"        {outcome}"]
    return [*lines, f"    return {at_the_end}"]


def _may_be_none(annotation: str) -> bool:
    return annotation.startswith(("Optional[", "typing.Optional[")) or "None" in annotation


_INIT_VAR: Final = re.compile(r"(?:\w+\.)*InitVar\[(.*)\]", re.DOTALL)
_UNEQUAL: Final = ("if val1 != val2:", "    return False")
_ORDERED: Final = (
    "if val1 {operator} val2:", "    return True", "elif val2 {operator} val1:", "    return False",
)  # fmt: skip
_ORDER: Final = {"__lt__": ("<", False), "__le__": ("<", True), "__gt__": (">", False), "__ge__": (">", True)}
"""Comparison -> the operator between two values that differ, and the result for equal ones."""


def _annotations(view: ClassDef) -> Iterator[tuple[str, str]]:
    """Field -> its annotation as written."""
    for tree in view.body:
        if tree.kind == "assign" and Assign(tree).annotation is not None:
            yield Var(Assign(tree).targets[0]).name, Assign(tree).annotation.range.text  # type: ignore[union-attr]


def _default(field: dataclasses.Field[object], view: ClassDef) -> str:
    if field.default_factory is not dataclasses.MISSING:
        raise NotSupportedError(
            f"Default factory initializers are not supported in TorchScript dataclasses: '{field.name}'", view.range
        )
    if field.default is dataclasses.MISSING:
        return ""
    return f" = {string_literal(field.default) if isinstance(field.default, str) else repr(field.default)}"
