"""Functions and methods with several signatures.

In: declarations marked `@torch.jit._overload` or `@torch.jit._overload_method`, in the order in which Python runs
over them.  Out: the declarations of the function that follows them under the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Decl, Def, Param

_declared: Final[dict[tuple[str, str], list[Callable[..., Any]]]] = {}


def declare_overload(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Record one signature.  When a definition is run again, as in a notebook, the new signatures replace the old."""
    known = _declared.setdefault(_key(fn), [])
    line = fn.__code__.co_firstlineno
    if known and (known[-1].__code__.co_firstlineno >= line or known[-1].__globals__ is not fn.__globals__):
        known.clear()
    known.append(fn)
    return fn


def overloads_of(fn: Callable[..., Any]) -> Sequence[Callable[..., Any]]:
    """The signatures declared for that function, if there are any."""
    found = _declared.get(_key(fn), ())
    return () if fn in found else tuple(found)


def with_signature(implementation: Tree, declaration: Tree, name: str) -> Tree:
    """The implementation under a new name, with the declared parameters and its own defaults."""
    view = Def(implementation)
    defaults = {param.name: param.default for param in view.decl.params}
    declared = Def(declaration).decl
    params = [
        Param.make(p.range, Tree("ident", (p.name,), p.range), p.annotation, defaults.get(p.name), p.kwarg_only)
        for p in declared.params
    ]
    return renamed(implementation, name, Decl.make(declared.range, params, declared.returns))


def renamed(definition: Tree, name: str, decl: Tree | None = None) -> Tree:
    """The definition under another name."""
    view = Def(definition)
    ident = Tree("ident", (name,), view.range)
    return Def.make(view.range, ident, decl or view.decl.tree, view.body)


def _key(fn: Callable[..., Any]) -> tuple[str, str]:
    return fn.__module__, fn.__qualname__
