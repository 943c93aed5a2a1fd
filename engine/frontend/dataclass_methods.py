"""Methods that Python's `dataclass` makes.

In: a dataclass and its tree.  Out: the tree with `__init__` and `__eq__` written out, unless the class has its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from engine.frontend.parser import parse_program
from engine.frontend.tree import Tree
from engine.frontend.views import Assign, ClassDef, Def, Var
from engine.lang.errors import NotSupportedError
from engine.lang.source import Source


def with_dataclass_methods(cls: type, tree: Tree) -> Tree:
    """The class with the methods that it would have.  Raises NotSupportedError for defaults made by functions."""
    view = ClassDef(tree)
    own = {Def(part).name for part in view.body if part.kind == "def"}
    made = [part for part in parse_program(Source(_methods(cls, view), "<dataclass>")) if Def(part).name not in own]
    return ClassDef.make(view.range, view.name, None, [*view.body, *made], [p.tree for p in view.properties])


def _methods(cls: type, view: ClassDef) -> str:
    fields = [field for field in dataclasses.fields(cls) if field.init]
    annotations = dict(_annotations(view))
    params = ", ".join(["self", *(f"{f.name}: {annotations.get(f.name, 'Tensor')}{_default(f, view)}" for f in fields)])
    lines = [f"def __init__({params}):", *(f"    self.{field.name} = {field.name}" for field in fields)]
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    equal = " and ".join(f"self.{f.name} == other.{f.name}" for f in fields if f.compare) or "True"
    lines += ["" if len(lines) > 1 else "    pass", f"def __eq__(self, other: {cls.__name__}) -> bool:"]
    return "\n".join([*lines, f"    return {equal}", ""])


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
    return "" if field.default is dataclasses.MISSING else f" = {field.default!r}"
