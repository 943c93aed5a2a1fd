"""The operators that go over rows, with their programs.

In: nothing.  Out: `ROWS`, a `Rows` by the qualified name of each operator.  A program does what the operator's Python
kernel does, in the same order of roundings; where it gives anything else, the entry is not used.
"""

from __future__ import annotations

from typing import Final

from engine.fuser.entries.row_entry import Rows
from engine.fuser.entries.rows import Program
from engine.fuser.expression import FLOATS, HALVES

_NUMBERS: Final = (*FLOATS, *HALVES, "i64")
_SOFTMAX: Final = Program("top = max(x); out = exp(x - top); total = sum(out); out = out / total", ("out",))
_LOG_SOFTMAX: Final = Program("top = max(x); out = x - top; total = log(sum(exp(out))); out = out - total", ("out",))
_SUM: Final = Program("total = sum(x)", ("total",))
_MEAN: Final = Program("total = sum(x); mean = total / count", ("mean",))
_NORM: Final = Program("total = sum(x * x); norm = sqrt(total)", ("norm",), short="norm = sum(abs(x))", few=2)
_LOG_SUM: Final = Program(
    "top = max(x); top = where(isfinite(top), top, 0); total = log(sum(exp(x - top))); result = total + top",
    ("result",),
)
_SPREAD: Final = (
    "mean = sum(x) / count; total = sum((x - mean) * (x - mean)); {} = total / maximum(count - correction, 0)"
)
_VARIANCE: Final = Program(_SPREAD.format("variance"), ("variance",))
_DEVIATION: Final = Program(f"{_SPREAD.format('variance')}; deviation = sqrt(variance)", ("deviation",))
_NORMALIZED: Final = "; rstd = 1 / sqrt(squares / count + eps); out = out * rstd; out = out * weight; out = out + bias"
_LAYER: Final = "mean = sum(x) / count; out = x - mean; squares = sum(out * out)" + _NORMALIZED
_SHORT_LAYER: Final = "mean = running_mean(x); out = x - mean; squares = running_squares(x)" + _NORMALIZED
_AFFINE: Final = ("weight", "bias")


def _extreme(largest: bool) -> dict[str, Rows]:
    name = "max" if largest else "min"
    place = f"place = arg{name}(x)"
    first = Program(f"{place}; value = pick(x, place)", ("value",))
    return {
        f"aten::{name}": Rows(first, ("x",), _NUMBERS),
        f"aten::{name}.dim": Rows(
            Program(f"{place}; value = pick(x, place)", ("value", "place")), ("x", "dim", "keepdim"), _NUMBERS
        ),
        f"aten::a{name}": Rows(Program(f"value = {name}(x)", ("value",)), ("x", "dims", "keepdim"), _NUMBERS),
        f"aten::arg{name}": Rows(Program(place, ("place",)), ("x", "dim or all", "keepdim"), _NUMBERS),
    }


def _spread(name: str, program: Program) -> dict[str, Rows]:
    return {
        f"aten::{name}": Rows(program, ("x", "unbiased"), names={1: "correction"}),
        f"aten::{name}.dim": Rows(program, ("x", "dims", "unbiased", "keepdim"), names={2: "correction"}),
        f"aten::{name}.correction": Rows(program, ("x", "dims", "correction", "keepdim"), names={2: "correction"}),
    }


def _truth(name: str) -> dict[str, Rows]:
    program = Program(f"found = {name}(x)", ("found",))
    return {
        f"aten::{name}": Rows(program, ("x",), ("i1",)),
        f"aten::{name}.dim": Rows(program, ("x", "dim", "keepdim"), ("i1",)),
    }


ROWS: Final[dict[str, Rows]] = {
    "aten::softmax.int": Rows(_SOFTMAX, ("x", "dim", "none")),
    "aten::_softmax": Rows(_SOFTMAX, ("x", "dim", "false")),
    "aten::log_softmax.int": Rows(_LOG_SOFTMAX, ("x", "dim", "none")),
    "aten::_log_softmax": Rows(_LOG_SOFTMAX, ("x", "dim", "false")),
    "aten::sum": Rows(_SUM, ("x", "none"), _NUMBERS),
    "aten::sum.dim_IntList": Rows(_SUM, ("x", "dims", "keepdim", "none"), _NUMBERS),
    "aten::mean": Rows(_MEAN, ("x", "none")),
    "aten::mean.dim": Rows(_MEAN, ("x", "dims", "keepdim", "none")),
    "aten::norm.Scalar": Rows(_NORM, ("x", "two")),
    "aten::norm.ScalarOpt_dim": Rows(_NORM, ("x", "two", "dims", "keepdim")),
    "aten::linalg_vector_norm": Rows(_NORM, ("x", "two", "dims", "keepdim", "none")),
    "aten::logsumexp": Rows(_LOG_SUM, ("x", "dims to last", "keepdim")),
    "aten::native_layer_norm": Rows(
        Program(_LAYER, ("out", "mean", "rstd"), _AFFINE, _SHORT_LAYER, 8),
        ("x", "shape", *_AFFINE, "number"), names={4: "eps"},
    ),
    "aten::layer_norm": Rows(
        Program(_LAYER, ("out",), _AFFINE, _SHORT_LAYER, 8),
        ("x", "shape", *_AFFINE, "number", "any"), names={4: "eps"},
    ),
    **_spread("var", _VARIANCE),
    **_spread("std", _DEVIATION),
    **_truth("any"),
    **_truth("all"),
    **_extreme(largest=True),
    **_extreme(largest=False),
}  # fmt: skip
