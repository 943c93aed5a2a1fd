"""Modules that a statement makes: `net = Net(8)`, `nn.Linear(2, 3)(x)`.

In: the statement.  Out: the same with hidden variables for the modules, and these.  They are made before the statement
is compiled, because a module's type is known only then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.aten.values.ivalue import Object
from engine.frontend.syntax.name_uses import COMPREHENSIONS
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Apply, Def, For, If, Select, TernaryIf, Var, While, With
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from tsrepl.session.module_methods import CHANGES, path_of

_MADE: Final = "$made"
"""The variables that stand for modules begin so: no program can write them."""
_LATER: Final = frozenset([
    *COMPREHENSIONS, If.kind, For.kind, While.kind, With.kind, TernaryIf.kind, Def.kind, "and", "or",
])  # fmt: skip
"""Trees whose parts may never run, or often."""
_ALONE: Final = (
    "make it in an entry of its own, as in m = Net(), or in the __init__ of a module",
    "many at once: nn.ModuleList([Net() for i in range(3)])",
)

IsClass = Callable[[str], bool]
"""True for the dotted name of a class of modules."""
Make = Callable[[SourceRange], Object]
"""Makes the module of a call."""


def with_made(tree: Tree, is_class: IsClass, make: Make, made: dict[str, Object], *, later: bool = False) -> Tree:
    """The tree with names for the modules in it, which are added to `made`.

    Raises CompileError where a module would be made `later`, and what `make` raises.
    """
    path = _class_path(tree, is_class)
    if path:
        if later:
            raise CompileError(
                f"{path}(...) is made before the statement runs, not in the middle", tree.range, hints=_ALONE
            )
        name = f"{_MADE}{len(made)}"
        made[name] = make(tree.range)
        return Var.make(tree.range, name)
    later = later or tree.kind in _LATER
    children = tuple(
        with_made(each, is_class, make, made, later=later) if isinstance(each, Tree) else each for each in tree.children
    )
    is_new = any(new is not old for new, old in zip(children, tree.children, strict=True))
    return Tree(tree.kind, children, tree.range) if is_new else tree


def _class_path(tree: Tree, is_class: IsClass) -> str:
    """The class whose module the tree makes, as `Net(8)` and `Net(8).eval()` do; "" for another tree."""
    if tree.kind != Apply.kind:
        return ""
    callee = Apply(tree).callee
    if callee.kind == Select.kind and Select(callee).name in CHANGES:
        return _class_path(Select(callee).value, is_class)
    path = path_of(callee)
    return path if path and is_class(path) else ""
