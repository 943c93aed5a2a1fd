"""One name for each operator.

In: the names that programs use.  Out: the name that the rest of the engine knows.
"""

from __future__ import annotations

from typing import Final

_PAIRS: Final = (
    "absolute abs, adjoint mH, arccos acos, arccosh acosh, arcsin asin, arcsinh asinh, arctan atan, arctan2 atan2, "
    "arctanh atanh, clip clamp, concat cat, concatenate cat, det linalg_det, divide div, fix trunc, ger outer, "
    "greater gt, greater_equal ge, inverse linalg_inv, less lt, less_equal le, linalg_matmul matmul, "
    "matrix_exp linalg_matrix_exp, matrix_power linalg_matrix_power, moveaxis movedim, multiply mul, "
    "negative neg, not_equal ne, "
    "orgqr linalg_householder_product, row_stack vstack, special_digamma digamma, special_erf erf, special_erfc erfc, "
    "special_erfinv erfinv, special_exp2 exp2, special_expit sigmoid, special_expm1 expm1, special_gammainc igamma, "
    "special_gammaincc igammac, special_gammaln lgamma, special_i0 i0, special_log1p log1p, "
    "special_log_softmax log_softmax, special_logit logit, special_logsumexp logsumexp, special_multigammaln mvlgamma, "
    "special_polygamma polygamma, special_psi digamma, special_round round, special_sinc sinc, "
    "special_softmax softmax, special_xlogy xlogy, subtract sub, swapaxes transpose, swapdims transpose, "
    "true_divide div"
)
_ALIASES: Final = dict(pair.split() for pair in _PAIRS.split(", "))
ALIASES: Final = {
    **{f"aten::{alias}": f"aten::{name}" for alias, name in _ALIASES.items()},
    **{f"aten::{alias}_": f"aten::{name}_" for alias, name in _ALIASES.items()},
}
