"""Further names of operators.

In: the table as it stands.  Out: entries that do the same under another name; programs are compiled to the first name.
"""

from __future__ import annotations

from typing import Any, Final

from engine.aten.dispatch import out_checks, table
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import checks
from engine.aten.kernels.refusals import no_code, unsupported
from engine.lang.errors import OperatorDtypeError, OperatorTypeError

_PAIRS: Final = (
    "absolute abs, arccos acos, arccosh acosh, arcsin asin, arcsinh asinh, arctan atan, arctan2 atan2, arctanh atanh, "
    "clip clamp, concat cat, concatenate cat, divide div, fix trunc, ger outer, greater gt, "
    "greater_equal ge, less lt, less_equal le, linalg_matmul matmul, "
    "moveaxis movedim, multiply mul, negative neg, "
    "not_equal ne, row_stack vstack, special_digamma digamma, special_erf erf, "
    "special_erfc erfc, special_erfinv erfinv, special_exp2 exp2, special_expit sigmoid, special_expm1 expm1, "
    "special_gammainc igamma, special_gammaincc igammac, special_gammaln lgamma, special_i0 i0, special_log1p log1p, "
    "special_logit logit, special_logsumexp logsumexp, special_multigammaln mvlgamma, "
    "special_polygamma polygamma, special_psi digamma, special_sinc sinc, subtract sub"
)
_RENAMED: Final = (
    # name with its arguments, the entry it does the same as, whether it has an out= form
    ("inverse(Tensor self) -> Tensor", "linalg_inv", "function method out"),
    ("orgqr(Tensor self, Tensor input2) -> Tensor", "linalg_householder_product", "function method out"),
    ("det(Tensor self) -> Tensor", "linalg_det", "function method"),
    ("matrix_exp(Tensor self) -> Tensor", "linalg_matrix_exp", "function method"),
    ("matrix_power(Tensor self, int n) -> Tensor", "linalg_matrix_power", "function method out"),
    ("adjoint(Tensor(a) self) -> Tensor(a)", "mH", "function method"),
    ("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", "transpose.int", "function method"),
    ("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", "transpose.int", "function method"),
    ("special_xlogy(Tensor self, Tensor other) -> Tensor", "xlogy.Tensor", "function out"),
    ("special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor", "xlogy.Scalar_Other", "function out"),
    ("special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor", "xlogy.Scalar_Self", "function out"),
    ("special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", "softmax.int", "function"),
    ("special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", "log_softmax.int", "function"),
    ("special_round(Tensor self, *, int decimals=0) -> Tensor", "round.decimals", "function out"),
)
_NO_METHOD: Final = ("special_", "linalg_", "concat", "row_stack")
_INTO_OUT: Final = ("divide", "multiply", "subtract")
"""Operators with a single out= variant, without one for numbers."""


def _copy_entry(entry: Op, text: str, variants: str, autocast: str = "") -> Op:
    """The entry under another schema text."""
    facts: dict[str, Any] = {
        "scalar": entry.scalar, "kernel": entry.kernel, "python": entry.python,
        "dtype": entry.dtype, "keeps": entry.keeps,
        "gradient": _renamed_gradient(entry, text), "nondeterministic": entry.nondeterministic,
        "gradient_in_place": entry.gradient_in_place, "layout": entry.layout, "alias_of": entry.name,
        "autocast": autocast,
    }  # fmt: skip
    return op(text, variants=variants, **facts)


def _renamed_gradient(entry: Op, text: str) -> dict[str, str]:
    """The gradient formulas, if the alias has the same argument names; else autograd never sees this name."""
    same = entry.gradient and all(f" {argument.name}" in text for argument in entry.schema.arguments)
    return dict(entry.gradient) if same else {}


def _variants(alias: str, entry: Op) -> str:
    kept = set(entry.variants)
    if alias.startswith(_NO_METHOD):
        kept -= {"method", *(v for v in kept if v.startswith("inplace"))}
    if alias in _INTO_OUT and entry.overload.startswith("Scalar"):
        kept -= {"out"}
    return " ".join(sorted(kept))


def _has_tensor_self(entry: Op) -> bool:
    """True for an operator of tensors that is neither an in-place nor an out variant (those come with it)."""
    arguments = entry.text.partition("(")[2]
    return "Tensor" in arguments and "(a!)" not in arguments and "Tensor[] a" not in arguments


for _alias, _name in (pair.split() for pair in _PAIRS.split(", ")):
    for _entry in list(table.registered(f"aten::{_name}")):
        if _has_tensor_self(_entry):
            _copy_entry(_entry, _entry.text.replace(f"aten::{_name}", f"aten::{_alias}", 1), _variants(_alias, _entry))
for _text, _name, _wanted in _RENAMED:
    (_entry,) = (
        e for e in table.registered(f"aten::{_name.partition('.')[0]}") if e.qualified_name == f"aten::{_name}"
    )
    _copy_entry(_entry, f"aten::{_text}", _wanted, _entry.autocast)


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("fix", refuses=no_code("b", "trunc_vml_cpu"))
describe("special_polygamma", refuses=no_code("c", "polygamma_kernel"))
describe("special_erf", refuses=no_code("c", "erf_vml_cpu"))
describe("special_erfc", refuses=no_code("c", "erfc_vml_cpu"))
describe("special_logit", refuses=no_code("c", "logit_cpu"))
describe("orgqr", refuses=no_code("bih", "orgqr_cpu"))
describe("det", refuses=no_code("h", "lu_cpu", empty=False))
describe("arctan2", refuses=no_code("c", "atan2_cpu", common=True))
describe("special_gammainc", refuses=no_code("bi", "igamma_cpu", common=True))
describe("special_gammaincc", refuses=no_code("bi", "igammac_cpu", common=True))
describe("fix", refuses=unsupported("c", "trunc is not supported for complex inputs", error=OperatorDtypeError))
describe("greater_equal.Tensor greater_equal.Scalar", refuses=no_code("c", "ge_cpu", common=True))
describe("greater.Tensor greater.Scalar", refuses=no_code("c", "gt_cpu", common=True))
describe("less_equal.Tensor less_equal.Scalar", refuses=no_code("c", "le_cpu", common=True))
describe("less.Tensor less.Scalar", refuses=no_code("c", "lt_cpu", common=True))
describe("subtract.Tensor subtract.Scalar", check=checks.no_bool_difference)
describe("negative", check=checks.no_bool_negation)
describe("absolute_", check=checks.not_in_place)
describe("inverse.out", out_check=out_checks.check_same)
describe("clip.out fix.out negative.out", out_check=out_checks.check_found)
describe("concat.out row_stack.out", out_check=out_checks.cast_in_words("torch.cat(): input types", OperatorTypeError))
describe("absolute.out", out_check=out_checks.check_size_of)
