"""Operators whose result shows the memory of an argument: which calls of theirs the library serves.

In: operators.  Out: the forms of their calls.  `VIEWS` says for each operator which function of `viewing_calls` gives
the sizes and steps of its result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.scalar import is_tensor
from engine.fuser.library.forms import Form, Given, fewest
from engine.lang.schema import Argument
from engine.lang.types import INT, ListType, OptionalType

VIEWS: Final[Mapping[str, str]] = {
    "aten::view": "viewed", "aten::view_as": "viewed", "aten::reshape": "reshaped", "aten::reshape_as": "reshaped",
    "aten::flatten.using_ints": "flattened", "aten::expand": "expanded", "aten::expand_as": "expanded",
    "aten::broadcast_to": "expanded", "aten::t": "t", "aten::transpose.int": "transposed", "aten::permute": "permuted",
    "aten::unsqueeze": "unsqueezed", "aten::squeeze": "squeezed", "aten::squeeze.dim": "squeezed_at",
    "aten::select.int": "selected", "aten::slice.Tensor": "sliced", "aten::narrow": "narrowed",
    "aten::contiguous": "itself",
    "aten::split.Tensor": "split", "aten::chunk": "chunked", "aten::unbind.int": "unbound", "aten::split": "split_with",
    "aten::split.sizes": "split_with", "aten::split_with_sizes": "split_with",
}  # fmt: skip
_BOUNDS: Final = {"start": 0, "end": 2**63 - 1}
"""The numbers that None stands for."""


def forms_of(op: Op) -> list[Form]:
    """The forms of an operator; none where it is no view, or no function gives its sizes and steps."""
    if op.qualified_name not in VIEWS:
        return []
    given = (*_given(op),)
    gives_list = isinstance(op.schema.returns[0].type, ListType)
    stub = "serve_parted" if gives_list else "serve_shown"
    return [Form(given, fewest(op, given), (), {}, stub, function=f"view_{VIEWS[op.qualified_name]}")]


def _given(op: Op) -> Iterator[Given]:
    """The kinds of the arguments."""
    for i, argument in enumerate(op.schema.arguments):
        if is_tensor(argument):
            yield Given("LIKE" if i else "SHOWN")
        elif argument.kwarg_only:  # a memory format, which is a number, too
            yield Given("SAME", argument.default)
        elif isinstance(argument.type, ListType):
            yield Given("MANYINTS")
        elif isinstance(argument.type, OptionalType):
            yield Given("BOUND", _BOUNDS[argument.name])
        elif argument.type == INT:
            yield Given("INDEX", _default(argument))
        else:
            raise AssertionError(f"{op.qualified_name}: no kind for {argument}")


def _default(argument: Argument) -> int:
    return argument.default if isinstance(argument.default, int) else 0
