"""Values of programs, as text.

In: values as programs hold them.  Out: the whole text that a prompt shows, a one-line summary for tables, and the
facts about a tensor that stand beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from engine.aten.values import xp
from engine.aten.values.ivalue import CustomObject, EnumValue, Object
from engine.aten.values.tensor import Tensor
from engine.ir.unit import Function
from engine.lang.types import TupleType, Type

SUMMARY = 44
"""Characters of a one-line summary."""
DEEPEST = 6
"""Containers nested deeper than this are shown as `…`: a list may contain itself."""
MOST_ITEMS = 1000
RESULT = 200
"""Characters of the summary of what a call returned."""
FIRST_ELEMENTS = 3
"""Elements of a tensor that its summary shows."""


def value_text(value: Any, type: Type | None = None) -> str:
    """The value as the prompt shows it: tensors as PyTorch prints them, strings quoted, objects with their slots.

    `type` tells the names of a named tuple's fields.
    """
    if isinstance(type, TupleType) and type.name is not None:
        fields = (f"{name}={_text(each, 1)}" for name, each in zip(type.fields, value, strict=True))
        return f"{type.name.rpartition('.')[2]}({', '.join(fields)})"
    return _text(value, 0)


def tensor_facts(tensor: Tensor) -> str:
    """`float32 (2, 3)`, and device or gradient where they are out of the ordinary."""
    sizes = "(" + ", ".join(map(str, tensor.shape)) + ("," if len(tensor.shape) == 1 else "") + ")"
    extra = [str(tensor.device)] if tensor.device.type != "cpu" else []
    extra += ["requires grad"] if tensor.requires_grad else []
    return ", ".join([f"{tensor.dtype.name} {sizes}", *extra])


def summary(value: Any, limit: int = SUMMARY) -> str:
    """One line about the value, at most `limit` characters."""
    text = _summary(value, 0)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def described(value: Any, limit: int = SUMMARY) -> str:
    """The summary; of a tensor with more than a few elements, what these are like instead of the first of them.

    Behind a list, tuple or dict stand the numbers of NaN and infinities in its tensors.
    """
    if isinstance(value, (list, tuple, dict)):
        return ", ".join([summary(value, limit), *_bad_numbers(value.values() if isinstance(value, dict) else value)])
    if not isinstance(value, Tensor) or value.numel() <= FIRST_ELEMENTS or value.is_quantized:
        return summary(value, limit)
    return f"{tensor_facts(value)}  {statistics(value)}"


def _bad_numbers(values: Iterable[Any]) -> list[str]:
    """`2 NaN` and the like for what is in tensors among the values; nothing for what there is none of."""
    total: Counter[str] = Counter()
    for each in islice(values, MOST_ITEMS):
        if isinstance(each, Tensor) and not each.is_quantized:
            total.update(dict(_others(each.detach().cpu().numpy())))
    return [f"{count:,} {name}" for name, count in total.items() if count]


BARS = "▁▂▃▄▅▆▇█"
"""The bars of a histogram, from few elements to many."""


def statistics(tensor: Tensor) -> str:
    """The least, the mean and the greatest element, how many are no numbers, and a histogram of the finite ones."""
    array = tensor.detach().cpu().numpy()
    if array.dtype == xp.BOOL:
        return f"{int(array.sum()):,} of {array.size:,} true"
    numbers = np.abs(array) if array.dtype in xp.COMPLEX else array
    finite = numbers[np.isfinite(numbers)].astype(np.float64)
    parts = []
    if finite.size:
        low, high = float(finite.min()), float(finite.max())
        counts = np.histogram(finite, len(BARS), (low, high))[0] if low < high else np.array([finite.size])
        bars = "".join(BARS[int(each)] for each in np.ceil(counts / counts.max() * (len(BARS) - 1)))
        parts.append(f"{bars if low < high else ''} {low:.3g} … {float(finite.mean()):.3g} … {high:.3g}".strip())
    parts += _bad_numbers([tensor])
    return ", ".join(parts)


def _others(array: Any) -> list[tuple[str, int]]:
    """The numbers of NaN and infinities; masks are made of negative ones, so that the sign matters."""
    numbers = np.abs(array) if array.dtype in xp.COMPLEX else array
    infinite = np.isinf(numbers)
    return [("NaN", int(np.isnan(numbers).sum())), ("inf", int((infinite & (numbers > 0)).sum())),
            ("-inf", int((infinite & (numbers < 0)).sum()))]  # fmt: skip


def _text(value: Any, depth: int) -> str:
    if isinstance(value, (list, tuple, dict, Object)) and depth >= DEEPEST:
        return "…"
    if isinstance(value, list):
        return f"[{_joined((_text(v, depth + 1) for v in value[:MOST_ITEMS]), len(value))}]"
    if isinstance(value, tuple):
        return _tuple_text(value, [_text(v, depth + 1) for v in value])
    if isinstance(value, dict):
        rows = (f"{_text(k, depth + 1)}: {_text(v, depth + 1)}" for k, v in list(value.items())[:MOST_ITEMS])
        return f"{{{_joined(rows, len(value))}}}"
    if isinstance(value, CustomObject):
        return f"<{value.type.name} {_text(value.state, depth + 1)}>"
    if isinstance(value, Object) and value.type.is_module:
        return f"<module {value.type.name}>"
    if isinstance(value, Object):
        pairs = zip(value.type.attributes, value.slots, strict=False)
        return f"{value.type.name}({', '.join(f'{a.name}={_text(v, depth + 1)}' for a, v in pairs)})"
    return f"{value.type.qualname.rpartition('.')[2]}.{value.name}" if isinstance(value, EnumValue) else repr(value)


def _summary(value: Any, depth: int) -> str:
    if isinstance(value, Tensor):
        facts = tensor_facts(value)
        return f"{value!r}" if value.ndim == 0 else facts + (f"  {_first_elements(value)}" if depth == 0 else "")
    if isinstance(value, (list, tuple, dict)) and depth >= 2:
        return "…"
    if isinstance(value, dict):
        rows = [f"{_summary(k, depth + 1)}: {_summary(v, depth + 1)}" for k, v in list(value.items())[:4]]
        return f"{{{_joined(rows, len(value))}}}"
    if isinstance(value, list):
        return f"[{_joined((_summary(v, depth + 1) for v in value[:4]), len(value))}]"
    if isinstance(value, tuple):
        return _tuple_text(value, [_summary(v, depth + 1) for v in value[:8]])
    if isinstance(value, CustomObject):
        return f"<{value.type.name} {_summary(value.state, depth + 1)}>"
    if isinstance(value, Object):
        return f"<{'module ' if value.type.is_module else ''}{value.type.name}>"
    if isinstance(value, Function):
        return f"<function {value.name}>"
    return _text(value, depth).replace("\n", " ")


def _first_elements(tensor: Tensor) -> str:
    """The first elements in row order: `1, 2.5, -3 …`."""
    tensor = tensor.dequantize() if tensor.is_quantized else tensor
    first = tensor.detach().numpy().ravel()[:FIRST_ELEMENTS].tolist()
    shown = ", ".join(f"{each:.4g}" if isinstance(each, float) else str(each) for each in first)
    return shown + (" …" if tensor.numel() > FIRST_ELEMENTS else "")


def _tuple_text(value: tuple[Any, ...], parts: list[str]) -> str:
    fields = getattr(value, "_fields", None)
    if fields:
        inside = ", ".join(f"{field}={part}" for field, part in zip(fields, parts, strict=False))
        return f"{type(value).__name__}({inside})"
    if len(value) == 1:
        return f"({parts[0]},)"
    return f"({_joined(parts, len(value))})"


def _joined(parts: Iterable[str], total: int) -> str:
    shown = list(parts)
    rest = [f"… {total - len(shown)} more"] if total > len(shown) else []
    return ", ".join([*shown, *rest])
