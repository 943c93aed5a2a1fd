"""Type comments and the declarations they complete.

In: a declaration and the one that `# type: (int) -> str` makes.  Out: the declaration with those types.
"""

from __future__ import annotations

from engine.frontend.tree import Tree
from engine.frontend.views import Decl, Param
from engine.lang.errors import ParseError


def merge_types(decl: Tree, comment: Tree, *, is_method: bool) -> Tree:
    """`decl` with the types of `comment`, which leaves out a method's `self`.

    Raises ParseError when the comment has too many types, or too few.
    """
    params, types = Decl(decl).params, Decl(comment).params
    unnamed = 1 if is_method else 0
    if len(types) != len(params) - unnamed:
        what = "method" if is_method else "function"
        raise ParseError(
            f"Number of type annotations ({len(types)}) did not match "
            f"the number of {what} parameters ({len(params) - unnamed})",
            decl.range,
        )
    typed = [
        Param.make(param.range, param.name, type.annotation, param.default, param.kwarg_only)
        for param, type in zip(params[unnamed:], types, strict=True)
    ]
    return Decl.make(decl.range, [*(param.tree for param in params[:unnamed]), *typed], Decl(comment).returns)
