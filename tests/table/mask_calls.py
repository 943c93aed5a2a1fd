"""Writes of values where a mask is set, as calls of a module `t` of tensors.

In: modules.  Out: for each mask, value, form of the call and dtype the numbers afterwards and, of floats, the gradients
of the tensor and of the value; or the first words of the refusal; None where PyTorch itself fails.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("mask_writes.json")
DTYPES = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "complex32", "complex64")
DIFFERENTIABLE = frozenset({"float16", "bfloat16", "float32", "complex64"})
"""PyTorch has no sums of complex32."""
MASKS = {
    "whole": "[t.tensor([[True, False, True], [False, True, False]])]",
    "turned": "[t.tensor([[True, False], [False, True], [True, False]]).t()]",
    "rows": "[t.tensor([True, False])]",
    "columns": "[None, t.tensor([True, False, True])]",
    "two": "[t.tensor([True, True]), t.tensor([True, False, True])]",
    "beside places": "[t.tensor([True, True]), t.tensor([0, 2])]",
    "everything": "[t.ones(2, 3, dtype=t.bool)]",
    "nothing": "[t.zeros(2, 3, dtype=t.bool)]",
    "true": "[t.tensor(True)]",
    "false": "[t.tensor(False)]",
    "bytes": "[t.tensor([[1, 0, 1], [0, 1, 0]], dtype=t.uint8)]",
    "one byte": "[t.tensor(3, dtype=t.uint8)]",
    "too long": "[t.tensor([True, False, True])]",
    "of another shape": "[t.ones(2, 2, dtype=t.bool)]",
}
VALUES = {
    "number": "2.5",
    "no dimension": "t.tensor(7).to(d)",
    "one": "t.tensor([7]).to(d)",
    "one, two dimensions": "t.tensor([[7]]).to(d)",
    "full": "(t.arange(count) + 10).to(d)",
    "too many": "t.zeros(count + 2).to(d)",
    "none": "t.zeros(0).to(d)",
    "other, no dimension": "t.tensor(2.5).to(other)",
    "other, one": "t.tensor([2.5]).to(other)",
    "other, too many": "t.zeros(count + 2).to(other)",
    "other, full": "(t.arange(count) + 0.5).to(other)",
}
"""Of the dtype `d` or of another one; `count` is how many numbers the mask selects."""


def by_subscript(x: Any, mask: list[Any], value: Any) -> Any:
    x[mask[0] if len(mask) == 1 else tuple(mask)] = value
    return x


def added(x: Any, mask: list[Any], value: Any) -> Any:
    return x.index_put(mask, value, accumulate=True)


def added_in_place(x: Any, mask: list[Any], value: Any) -> Any:
    return x.index_put_(mask, value, accumulate=True)


FORMS: dict[str, Callable[[Any, list[Any], Any], Any]] = {
    "x[mask] = value": by_subscript,
    "index_put": lambda x, mask, value: x.index_put(mask, value),
    "index_put_": lambda x, mask, value: x.index_put_(mask, value),
    "added": added,
    "added in place": added_in_place,
}
CALLS = [
    (mask, value, form)
    for mask in MASKS
    for value in VALUES
    for form in FORMS
    if value != "number" or FORMS[form] is by_subscript
]


def counted(t: Any, mask: list[Any]) -> int:
    """How many of six numbers the mask selects; 3 where it does not fit."""
    try:
        return int(t.arange(6).reshape(2, 3)[tuple(mask)].numel())
    except (RuntimeError, IndexError):
        return 3


def outcome(t: Any, mask_name: str, value_name: str, form: str, dtype: str) -> str | None:
    """Of the call in the module `t`; its tensors are (2, 3)."""
    d = getattr(t, dtype)
    mask = eval(MASKS[mask_name], {"t": t})
    others = {"t": t, "d": d, "other": t.float64 if dtype == "float32" else t.float32, "count": counted(t, mask)}
    value = eval(VALUES[value_name], others)
    x = t.arange(6).reshape(2, 3).to(d)
    has_gradients = dtype in DIFFERENTIABLE
    if has_gradients:
        x.requires_grad_()
        if value_name != "number":
            value.requires_grad_()
    try:
        result = FORMS[form](x.clone(), mask, value)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        text = next(line for line in str(error).splitlines() if line)
        return None if "INTERNAL ASSERT" in text or "NoneType" in text else "refused: " + " ".join(text.split()[:3])
    if not has_gradients:
        return _numbers(t, result)
    try:
        result.backward(t.arange(1, 7).reshape(2, 3).to(d))
    except RuntimeError:  # the formula of `index_put` gives a gradient of more dimensions than the value has
        return None
    parts = [result, x.grad, *([] if value_name == "number" else [value.grad])]
    return "; ".join("no gradient" if part is None else _numbers(t, part) for part in parts)


def _numbers(t: Any, x: Any) -> str:
    """The numbers of a tensor, whose imaginary parts are 0."""
    return " ".join(f"{each.real:g}" for each in x.detach().to(t.complex64).reshape(-1).tolist())
