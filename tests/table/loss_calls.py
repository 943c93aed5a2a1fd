"""Losses of operands of two dtypes, as expressions over `F`, a module `torch.nn.functional`.

In: modules.  Out: for each expression and pair of dtypes the dtype of the result, or None where the call is refused.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("loss_dtypes.json")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "bool")
_PAIRS = (
    "mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss binary_cross_entropy hinge_embedding_loss "
    "binary_cross_entropy_with_logits kl_div poisson_nll_loss multilabel_soft_margin_loss"
).split()
EXPRESSIONS = (
    *(f"F.{name}(x, y, reduction='{reduction}')" for reduction in ("mean", "none") for name in _PAIRS),
    *(
        f"F.{form}, reduction='{reduction}')"
        for reduction in ("mean", "none")
        for form in (
            "gaussian_nll_loss(x, x, y", "gaussian_nll_loss(x, y, x", "margin_ranking_loss(row_x, row_y, row_x",
            "margin_ranking_loss(row_x, row_x, row_y", "cosine_embedding_loss(x, y, row_x",
            "cosine_embedding_loss(x, x, row_y", "triplet_margin_loss(x, y, x", "triplet_margin_loss(x, x, y",
            "nll_loss(x, row_y", "nll_loss(x, places, each_y", "cross_entropy(x, row_y", "cross_entropy(x, y",
            "cross_entropy(x, places, each_y", "cross_entropy(x, x, each_y", "multi_margin_loss(x, row_y",
            "multi_margin_loss(x, places, weight=each_y", "multilabel_margin_loss(x, y",
            "binary_cross_entropy(x, x, y", "binary_cross_entropy_with_logits(x, x, y",
            "binary_cross_entropy_with_logits(x, x, pos_weight=y", "multilabel_soft_margin_loss(x, x, each_y",
        )
    ),
    "F.kl_div(x, y, reduction='sum', log_target=True)", "F.poisson_nll_loss(x, y, log_input=False, full=True)",
    "F.cross_entropy(x, places, each_y, label_smoothing=0.1)", "F.cross_entropy(x, y, label_smoothing=0.1)",
    "F.cosine_similarity(x, y)", "F.pairwise_distance(x, y)",
    "F.layer_norm(x, [4], each_y)", "F.prelu(x, each_y)",
)  # fmt: skip
NAMES = ("x", "y", "row_x", "row_y", "each_y", "places")
"""Operands: `x` (first dtype) and `y` (second) are (3, 4), `row_x` (3,), `each_y` (4,), `places` whole numbers."""


def operands(t: Any, first: str, second: str) -> list[Any]:
    def made(dtype: str, *shape: int) -> Any:
        numbers = (t.arange(prod(shape)).reshape(*shape) * 7 % 10 + 0.5) / 11
        suited = {"int64": numbers * 3, "bool": numbers > 0.5}.get(dtype, numbers)
        return suited.to(getattr(t, dtype))

    return [
        made(first, 3, 4), made(second, 3, 4), made(first, 3), made(second, 3), made(second, 4), t.tensor([0, 1, 2])
    ]  # fmt: skip


def outcome(call: Any, given: list[Any]) -> str | None:
    try:
        return str(call(*given).dtype).rpartition(".")[2]
    except (RuntimeError, ValueError, TypeError):
        return None


def evaluated(functional: Any, expression: str) -> Any:
    """The expression as a Python function of the operands."""
    return eval(f"lambda {', '.join(NAMES)}: {expression}", {"F": functional})
