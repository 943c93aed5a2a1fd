"""Operators that move elements as they are, and pairs of operators, of which the stubs alone know how.

In: nothing.  Out: the forms of their calls; there is a row for each operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from engine.aten.dispatch.op import Op
from engine.fuser.ir.kernel import BOOL
from engine.fuser.library.forms import Entry, Form, Given, fewest
from engine.fuser.library.words import SIZES, TYPES

_JOINED: Final = (Given("LISTS"), Given("AXIS"))
_OTHERS: Final = (Given("UNREAD"),) * 3
_SELF, _TABLE, _INDICES = Given("TENSORS"), Given("TABLES"), Given("INDICES")
_PLACED: Final = (Given("TARGETS"), Given("LISTS"), Given("TENSORS"), Given("SAME", False))
_TO: Final = (Given("UNREAD"), Given("SAME", False), Given("SAME", None))
"""The rest of the arguments: a copy is made where the dtype changes alone, and lies as what is copied does."""
_LIKE: Final = (Given("SAME", None),) * 5
_ALONG: Final = (Given("WHOLES"), Given("AXIS"), Given("KEEPS"))


def _copied(row: str, *given: Given, fewest: int, asked: tuple[int, ...] = ()) -> Form:
    """A form of row functions that copy, for each size of elements (`copying_calls`)."""
    types = [type for type in TYPES if type != BOOL or all(each.kind != "SETTINGS" for each in given)]
    return Form(given, fewest, asked, {type: Entry(f"{row}_{SIZES[type]}", type, _WORK) for type in types})


_WORK: Final = 100
"""Nanoseconds for 1024 elements, roughly."""
MOVING: Final[Mapping[str, Form]] = {
    "aten::cat": Form(_JOINED, 1, (), {}, "serve_joined"),
    "aten::concat": Form(_JOINED, 1, (), {}, "serve_joined"),
    "aten::concatenate": Form(_JOINED, 1, (), {}, "serve_joined"),
    "aten::stack": Form(_JOINED, 1, (), {}, "serve_joined", is_stacked=True),
    "aten::copy_": _copied("second", _SELF, _SELF, Given("SAME", False), fewest=2),
    "aten::fill.Scalar": _copied("second", _SELF, Given("SETTINGS"), fewest=2, asked=(0,)),
    "aten::zero_": _copied("zero", _SELF, fewest=1),
    "aten::full_like": _copied("second", _SELF, Given("SETTINGS"), *_LIKE, fewest=2, asked=(0,)),
    "aten::zeros_like": _copied("zero", _SELF, *_LIKE, fewest=1, asked=(0,)),
    "aten::contiguous": _copied("first", _SELF, Given("SAME", 0), fewest=1),
    "aten::clone": _copied("first", _SELF, Given("SAME", None), fewest=1, asked=(0,)),
    "aten::embedding": Form((_TABLE, _INDICES, *_OTHERS), 2, (), {}, "serve_looked_up", rank=2),
    "aten::index_select": Form((_TABLE, Given("AXIS"), _INDICES), 3, (), {}, "serve_looked_up"),
    "aten::index.Tensor": Form((_TABLE, Given("LISTS")), 2, (), {}, "serve_looked_up"),
    "aten::gather": Form((_TABLE, Given("AXIS"), _INDICES, Given("SAME", False)), 3, (), {}, "serve_gathered"),
    "aten::index_put_": Form(_PLACED, 3, (), {}, "serve_placed"),
    "aten::index_put_.hacked_twin": Form(_PLACED, 3, (), {}, "serve_placed"),
}


def _converted(*given: Given, fewest: int) -> Form:
    return Form(given, fewest, (), {}, "serve_converted", work=_WORK)


CONVERTING: Final[Mapping[str, Form]] = {
    "aten::to.dtype": _converted(Given("SHOWN"), Given("NUMBERED"), *_TO, fewest=2),
    "aten::to.other": _converted(Given("SHOWN"), Given("LIKE"), *_TO, fewest=2),
    "aten::to.prim_dtype": _converted(Given("SHOWN"), Given("NUMBERED"), *_TO[:2], fewest=2),
    "aten::type_as": _converted(Given("SHOWN"), Given("LIKE"), fewest=2),
    "aten::copy_": _converted(Given("TARGETS"), Given("SHOWN"), Given("SAME", False), fewest=2),
}
"""The same where the dtype changes."""


def _paired(*pair: str, given: Sequence[Given] = _ALONG) -> Form:
    return Form(tuple(given), 0, (), {}, "serve_paired", pair=[f"aten::{name}" for name in pair])


def _spread(name: str) -> Mapping[str, Sequence[Form]]:
    """Variances or their roots, with means: of all elements or along dimensions."""
    ways, whole, keeps = (Given("SAME", True), Given("SAME", False)), Given("WHOLES"), Given("KEEPS")
    pair = f"{name}.dim", "mean.dim"
    return {
        f"aten::{name}_mean": [_paired(name, "mean", given=(whole, way)) for way in ways],
        f"aten::{name}_mean.dim": [
            _paired(*pair, given=(whole, axes, way, keeps))
            for axes in (Given("AXES"), Given("SAME", None))
            for way in ways
        ],
    }


PAIRED: Final[Mapping[str, Sequence[Form]]] = {
    "aten::max.dim": [_paired("amax", "argmax")],
    "aten::min.dim": [_paired("amin", "argmin")],
    **_spread("var"), **_spread("std"),
}  # fmt: skip
"""Operators whose two results others give, of the same arguments as far as they have them."""


def moves_of(op: Op) -> list[Form]:
    """The forms of an operator; none where it is not one of these."""
    alone = [each[op.qualified_name] for each in (MOVING, CONVERTING) if op.qualified_name in each]
    both = PAIRED.get(op.qualified_name, ())
    return [*alone, *(replace(each, fewest=fewest(op, each.given)) for each in both)]
