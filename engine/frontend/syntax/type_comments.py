"""Type comments and the declarations they complete.

In: a declaration and the one that `# type: (int) -> str` makes.  Out: the declaration with those types.
"""

from __future__ import annotations

from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Decl, Param
from engine.lang.errors import ParseError


def with_type(param: Tree, annotation: Tree) -> Tree:
    """The parameter with the type of the comment after it."""
    view = Param(param)
    return Param.make(view.range, view.name, annotation, view.default, view.kwarg_only)


def merge_types(decl: Tree, comment: Tree, *, is_method: bool, extended: bool = False) -> Tree:
    """`decl` with the types of `comment`, which leaves out a method's `self`.

    With `extended`, `(...) -> float` leaves the parameters as they are.
    Raises ParseError when the comment has too many types, or too few.
    """
    params, types = Decl(decl).params, Decl(comment).params
    if extended and [type.annotation.kind for type in types if type.annotation is not None] == ["dots"]:
        return Decl.make(decl.range, [param.tree for param in params], Decl(comment).returns)
    unnamed = 1 if is_method else 0
    if len(types) != len(params) - unnamed:
        what = "method" if is_method else "function"
        raise ParseError(
            f"Number of type annotations ({len(types)}) did not match "
            f"the number of {what} parameters ({len(params) - unnamed})",
            decl.range,
            hints=("the comment names one type for each parameter (not for self)",),
        )
    typed = [
        Param.make(param.range, param.name, type.annotation, param.default, param.kwarg_only)
        for param, type in zip(params[unnamed:], types, strict=True)
    ]
    return Decl.make(decl.range, [*(param.tree for param in params[:unnamed]), *typed], Decl(comment).returns)
