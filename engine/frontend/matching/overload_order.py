"""The order in which a call tries the overloads of an operator.

In: the name of an operator.  Out: its entries in PyTorch's order, of which the first that fits is taken: functional
forms before those with `out`, then those for numbers and lists; and some overloads before others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Final

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import overloads
from engine.lang.deferred import pattern_of

_BASE: Final = (
    "angle count dict einsum gcd lgamma list polar "
    "_upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_lanczos2d_aa _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_bicubic2d upsample_bilinear2d upsample_linear1d "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d"
)
_COMPARISONS: Final = "eq_ ge_ greater_ greater_equal_ gt_ le_ less_ less_equal_ lt_ ne_ not_equal_ pow_"
_LISTS: Final = (
    "Tensor", "Scalar", "int_list", "device", "bool", "enum", "int", "complex", "float", "int_float", "float_int",
    "float_complex", "complex_float", "", "str", "float_list",
)  # fmt: skip
_FIRST: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(_BASE.split(), ("",)),
    **dict.fromkeys(("__lshift__", "__or__", "__rshift__", "__xor__", "frexp", "ldexp", "bernoulli_"), ("Tensor",)),
    **dict.fromkeys(_COMPARISONS.split(), ("Scalar",)),
    **dict.fromkeys(("bitwise_left_shift_", "bitwise_right_shift_"), ("Tensor_Scalar",)),
    **dict.fromkeys(("eq", "ne"), _LISTS),
    "__contains__": ("int_list", "str_list", "str", "int", "bool", "float", "complex", "Tensor"),
    "Complex": ("Scalar", "Tensor_Tensor", "int_bool", "bool_int", "float_bool", "bool_float", "float_int"),
    "copysign": ("Tensor", "Scalar"), "div_": ("Tensor", "Tensor_mode"),
    "divide_": ("Tensor", "Tensor_mode", "Scalar_mode"), "index": ("Tensor", "Tensor_hacked_twin", "str"),
    "moveaxis": ("intlist",), "remove": ("int", "float", "bool", "Tensor"), "scatter_": ("src",),
    "split": ("Tensor", "sizes", "str"),
}  # fmt: skip
"""Operator -> the overloads that are tried before its others."""


def ordered_overloads(name: str) -> Sequence[Op]:
    """The overloads of the operator in the order in which calls try them."""
    entries = tuple(overloads(name))
    return _sorted(name, entries) if len(entries) > 1 else entries


@cache
def _sorted(name: str, entries: tuple[Op, ...]) -> Sequence[Op]:
    first = _FIRST.get(name.removeprefix("aten::"), ())
    functional = sorted((entry for entry in entries if not _is_out(entry)), key=partial(_place, first))
    of_tensors = [index for index, entry in enumerate(functional) if _starts_with_tensor(entry)]
    end = of_tensors[-1] + 1 if of_tensors else len(functional)
    return [*functional[:end], *filter(_is_out, entries), *functional[end:]]


def _is_out(entry: Op) -> bool:
    """Decided by the text: to parse the schemas of all overloads, most of which no call reaches, takes long."""
    return _OUT.search(entry.text) is not None


def _starts_with_tensor(entry: Op) -> bool:
    return _TENSOR_FIRST.search(entry.text) is not None


_OUT: Final = pattern_of(r"\*,.* out\w*( *=[^,)]*)?[,)].* -> ")
"""An argument that is given by name, which begins with `out`."""
_TENSOR_FIRST: Final = pattern_of(r"^[^(]*\(Tensor(\([^)]*\))? ")


def _place(first: tuple[str, ...], entry: Op) -> int:
    return first.index(entry.overload) if entry.overload in first else len(first)
