"""Functions and methods with several signatures.

In: declarations marked `@torch.jit._overload` or `@torch.jit._overload_method`, in the order in which Python runs
over them.  Out: the declarations of the function that follows them under the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from engine.frontend.syntax.tree import DefaultIfFits, PythonDefault, Tree
from engine.frontend.syntax.unparse import unparse
from engine.frontend.syntax.views import Decl, Def, Param
from engine.lang.errors import CompileError

_waiting: Final[dict[tuple[str, str], list[Callable[..., Any]]]] = {}
"""Declarations whose function was not asked for yet, by module and name."""
_of: Final[WeakKeyDictionary[Callable[..., Any], list[Callable[..., Any]]]] = WeakKeyDictionary()
"""The declarations of functions."""


def declare_overload(fn: Callable[..., Any]) -> None:
    """Record one signature.  When a definition is run again, as in a notebook, the new signatures replace the old."""
    known = _waiting.setdefault(_key(fn), [])
    line = fn.__code__.co_firstlineno
    if known and (known[-1].__code__.co_firstlineno >= line or known[-1].__globals__ is not fn.__globals__):
        known.clear()
    known.append(fn)


def overloads_of(fn: Callable[..., Any]) -> Sequence[Callable[..., Any]]:
    """The signatures declared for that function, if there are any; those that wait under its name become its own."""
    if fn not in _waiting.get(_key(fn), (fn,)):
        _of.setdefault(fn, []).extend(_waiting.pop(_key(fn)))
    return _of.get(fn, ())


def refuse_missing_implementation(fn: Callable[..., Any]) -> None:
    """Raise CompileError for a declaration that no function of its name follows; `fn` is what the name stands for."""
    if fn in _waiting.get(_key(fn), ()):
        what = "method" if fn.__qualname__.rpartition(".")[0].rpartition(".")[2] not in ("", "<locals>") else "function"
        raise CompileError(
            f'Implementation for the {what} "{fn.__name__}" is missing. Please make sure a definition is provided and '
            "defined after all overload declarations.",
            hints=(f"write def {fn.__name__}(...) with its body behind the declarations",),
        )


def refuse_body(declaration: Tree) -> None:
    """Raise CompileError for a declared signature with a body."""
    view = Def(declaration)
    if any(part.kind not in ("pass", "expression_statement") or _says_something(part) for part in view.body):
        raise CompileError(
            "Only `pass` statement or `...` can be the body of overload declaration",
            view.range,
            hints=("leave the mark @torch.jit._overload to the declarations, and write the function behind them",),
        )


def _says_something(statement: Tree) -> bool:
    return any(part.kind not in ("dots", "string_literal") for part in statement.trees)


def with_signature(implementation: Tree, declaration: Tree, name: str) -> Tree:
    """The implementation under a new name, with the declared parameters, its other ones, and its defaults.

    Raises CompileError where a declared default is another one, or where a parameter has no type.
    """
    view, declared = Def(implementation), Def(declaration).decl
    own = {param.name: param for param in view.decl.params}
    params = [_declared_param(p, own.get(p.name)) for p in declared.params]
    others = [own[name] for name in own if name not in {p.name for p in declared.params}]
    for param in others:
        if param.annotation is None:
            raise CompileError(
                "Parameters not specified on overload declaration must have a type annotation in the implementation "
                f"function. Did not find type for param {param.name}",
                param.range,
                hints=(f"write its type: `{param.name}: int`",),
            )
    params += [param.tree for param in others]
    return renamed(implementation, name, Decl.make(declared.range, params, declared.returns))


def _declared_param(declared: Param, own: Param | None) -> Tree:
    """The declared parameter with the default of the implementation."""
    default = None if own is None else own.default
    if declared.default is not None and not _are_same(declared.default, default):
        raise CompileError(
            "Default parameters on overloads do not affect the runtime so they must equal to the default parameter on "
            f"the implementation function. Found on parameter {declared.name}",
            declared.range,
        )
    if default is not None and not isinstance(default, PythonDefault):
        default = DefaultIfFits(default)
    ident = Tree("ident", (declared.name,), declared.range)
    return Param.make(declared.range, ident, declared.annotation, default, declared.kwarg_only)


def _are_same(declared: Tree, own: Tree | None) -> bool:
    return own is not None and _shown(declared) == _shown(own)


def _shown(default: Tree) -> str:
    """The default as text; of what Python has evaluated, the value's."""
    return repr(default.value) if isinstance(default, PythonDefault) else unparse(default)


def renamed(definition: Tree, name: str, decl: Tree | None = None) -> Tree:
    """The definition under another name."""
    view = Def(definition)
    ident = Tree("ident", (name,), view.range)
    return Def.make(view.range, ident, decl or view.decl.tree, view.body)


def _key(fn: Callable[..., Any]) -> tuple[str, str]:
    return fn.__module__, fn.__qualname__
