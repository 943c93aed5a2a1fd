"""`torch.nn.functional` for eager use.

In: a name.  Out: the function that programs also call: the operator, or a compiled function written in TorchScript
where it is composed of operators.  A package of one file, so that layers which use it do not import `torch.nn` itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor
from engine.torch.namespace import functions


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """A triplet loss: the anchor should be nearer to the positive than to the negative by the margin.

    Raises ValueError for an unknown reduction.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction; write mean, sum or none")
    measure: Any = distance_function or functions.find("pairwise_distance", "torch.nn.functional")
    near, far = measure(anchor, positive), measure(anchor, negative)
    if swap:
        far = call("minimum", (far, measure(positive, negative)), {})
    loss: Tensor = (near - far + margin).clamp(min=0)
    return loss if reduction == "none" else getattr(loss, reduction)()


def __getattr__(name: str) -> Any:
    value = functions.attribute(name, "torch.nn.functional")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({"triplet_margin_with_distance_loss", *functions.known("torch.nn.functional")})
