"""Operators as expressions of generated Python: one row each.

In: an operator's qualified name, or a node's kind.  Out: a `Row`: the text of an expression over `{0}`, `{1}` …, its
inputs, and what has to be known about it.  To let generated code do an operator without a call, add a row; operators
without one are called.

Rows have to give just what the operator's own body gives, errors included: where the text can raise, `raises` is set,
and the operator itself runs again on the same inputs to raise its own error.
"""

from __future__ import annotations

from typing import Any, Final

from engine.aten.formatting import values as text
from engine.aten.values import arithmetic
from engine.ir.graph import Node
from engine.ir.ops import op_of
from engine.lang.records import dataclass
from engine.lang.types import TensorType


@dataclass(frozen=True, slots=True)
class Row:
    """`wraps`: an int that may have left 64 bits, and has to wrap around unless the ranges of the inputs tell that it
    does not.  `divides`: raises, unless the range of the second input leaves out zero.  `largest`: the second input has
    to lie in ± this, else the operator is called.  `is_statement`: done for its effect; its result is the first input.
    """

    text: str
    wraps: bool = False
    raises: bool = False
    divides: bool = False
    largest: int = 0
    is_statement: bool = False

    @property
    def is_plain(self) -> bool:
        """True if the expression may move to where its result is used: it cannot fail, and takes each input once."""
        simple = not (self.wraps or self.raises or self.divides or self.largest or self.is_statement)
        return simple and all(self.text.count(f"{{{i}}}") <= 1 for i in range(3))


NAMES: Final[dict[str, Any]] = {
    "wrap": arithmetic.wrap, "div": arithmetic.div, "length": text.length, "normal": text.normal,
}  # fmt: skip
"""Functions that the rows call."""

_COMPARE: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_RING: Final = {"add": "+", "sub": "-", "mul": "*"}
_BITS: Final = {"__and__": "&", "__or__": "|", "__xor__": "^"}


def _rows() -> dict[str, Row]:
    rows: dict[str, Row] = {
        # integers
        "aten::neg.int": Row("-{0}", wraps=True),
        "aten::floordiv.int": Row("{0} // {1}", wraps=True, divides=True),
        "aten::remainder.int": Row("{0} % {1}", divides=True, largest=2**62 - 1),
        "prim::min.int": Row("{0} if {0} < {1} else {1}"),
        "prim::max.int": Row("{0} if {0} > {1} else {1}"),
        # floats
        "aten::neg.float": Row("-{0}"),
        "prim::abs.float": Row("abs({0})"),
        "prim::min.float": Row("{0} if {0} < {1} else {1}"),
        "prim::max.float": Row("{0} if {0} > {1} else {1}"),
        # conversions and bools
        "aten::Float.int": Row("float({0})"),
        "aten::Float.bool": Row("float({0})"),
        "aten::Int.bool": Row("int({0})"),
        "aten::Bool.int": Row("{0} != 0"),
        "aten::Bool.float": Row("{0} != 0.0"),
        "aten::__not__": Row("not {0}"),
        # lists and tuples
        "aten::len.t": Row("len({0})"),
        "aten::__getitem__.t": Row("{0}[{1}]", raises=True),
        "aten::_set_item.t": Row("{0}[{1}] = {2}", raises=True, is_statement=True),
        "aten::append.t": Row("{0}.append({1})", is_statement=True),
        "prim::TupleIndex": Row("{0}[{1}]", raises=True),
        # lists of numbers and strings, dicts, strings
        **{f"aten::any.{kind}": Row("any({0})") for kind in ("str", "int", "float", "bool")},
        **{f"aten::all.{kind}": Row("all({0})") for kind in ("int", "float", "bool")},
        **{f"aten::__contains__.{kind}_list": Row("{1} in {0}") for kind in ("str", "int")},
        **{f"aten::__contains__.{kind}": Row("{1} in {0}") for kind in ("str", "int")},
        **{f"aten::__getitem__.Dict_{kind}": Row("{0}[{1}]", raises=True) for kind in ("str", "int")},
        "aten::len.str": Row("len({0}) if {0}.isascii() else length({0})"),
        "aten::add.str": Row("normal({0} + {1})"),
        # what tensors and devices tell
        "prim::requires_grad": Row("{0}.requires_grad"),
        "prim::type": Row("{0}.type"),
        # casts
        "prim::unchecked_cast": Row("{0}"),
        "prim::unchecked_unwrap_optional": Row("{0}"),
    }
    for name, sign in _RING.items():
        rows[f"aten::{name}.int"] = Row(f"{{0}} {sign} {{1}}", wraps=True)
        for overload in ("float", "int_float", "float_int"):
            rows[f"aten::{name}.{overload}"] = Row(f"{{0}} {sign} {{1}}")
    rows["aten::div.int"] = Row("float({0}) / {1} if {1} else div({0}, {1})")
    rows["aten::div.float"] = Row("{0} / {1} if {1} else div({0}, {1})")
    for name, sign in _COMPARE.items():
        rows[f"aten::{name}.int_float"] = Row(f"float({{0}}) {sign} {{1}}")
        rows[f"aten::{name}.float_int"] = Row(f"{{0}} {sign} float({{1}})")
        for overload in ("int", "float", "str"):
            rows[f"aten::{name}.{overload}"] = Row(f"{{0}} {sign} {{1}}")
    rows["aten::eq.bool"], rows["aten::ne.bool"] = Row("{0} == {1}"), Row("{0} != {1}")
    for name, sign in _BITS.items():
        for overload in ("int", "bool"):
            rows[f"aten::{name}.{overload}"] = Row(f"{{0}} {sign} {{1}}")
    return rows


ROWS: Final = _rows()


ASKED: Final[dict[str, str]] = {
    "aten::dim": "{0}.ndim",
    "aten::size": "[*{0}.shape]",
    "aten::size.int": "{0}.shape[{1}]",
    "aten::len.Tensor": "len({0})",
    "aten::numel": "{0}.size",
    "prim::device": "place({0})",
    "prim::dtype": "FROM_NUMPY[{0}.dtype].number",
}
"""Questions about the form of a tensor, asked of its array; an error is the operator's own (see `plan`)."""


def asks(node: Node) -> bool:
    """True if the node asks about the form of a tensor and its array answers."""
    if not node.inputs or not isinstance(node.inputs[0].type, TensorType):
        return False
    if node.kind in ASKED:
        return True
    op = op_of(node)
    return op is not None and op.qualified_name in ASKED


def question(node: Node) -> str:
    """The expression for a node that asks."""
    op = op_of(node)
    return ASKED[op.qualified_name if op is not None and op.qualified_name in ASKED else node.kind]
