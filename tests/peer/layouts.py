"""PyTorch's layouts of results, written to `tests/table/strides.txt`, which the law of layouts reads.

    python -m tests.peer.layouts

In: the operators that have a layout by their row, and the calls of `layout_calls`.  Runs where PyTorch is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import entries
from engine.aten.values.tensor import Tensor
from tests.table.layout_calls import RECORDED, calls, layout

PLAIN = ("dtype", "memory_format", "layout", "device", "generator")
"""Arguments whose numbers stand for objects of PyTorch."""


def given(value: Any, torch: Any) -> Any:
    """An argument for PyTorch, with the strides that it has here."""
    if isinstance(value, list):
        return [given(each, torch) for each in value]
    if not isinstance(value, Tensor):
        return value
    numbers = torch.from_numpy(np.ascontiguousarray(value.array)).reshape(value.array.shape)
    return torch.empty_strided(tuple(value.shape), tuple(value.stride()), dtype=numbers.dtype).copy_(numbers)


def results(made: Any) -> Iterator[Any]:
    if isinstance(made, (list, tuple)):
        for each in made:
            yield from results(each)
    elif hasattr(made, "stride"):
        yield made


def line(op: Op, torch: Any) -> str | None:
    """The row's line; None for one that PyTorch does not have, or of which there is no sample."""
    overloads = getattr(torch.ops.aten, op.name.removeprefix("aten::"), None)
    function = getattr(overloads, op.overload or "default", None)
    if function is None or any(a.name in PLAIN and not a.has_default for a in op.schema.arguments):
        return None
    try:
        found = [_found(op, function, call, torch) for call in calls(op)]
    except (KeyError, TypeError):
        return None
    return " ".join((op.qualified_name, *found)) if any(each != "-" for each in found) else None


def _found(op: Op, function: Any, call: list[Any], torch: Any) -> str:
    named = {a.name: given(v, torch) for a, v in zip(op.schema.arguments, call, strict=True) if a.kwarg_only}
    plain = [given(v, torch) for a, v in zip(op.schema.arguments, call, strict=True) if not a.kwarg_only]
    named = {name: value for name, value in named.items() if name not in PLAIN}
    try:
        return ";".join(layout(each.shape, each.stride()) for each in results(function(*plain, **named))) or "-"
    except (RuntimeError, TypeError, IndexError, NotImplementedError):
        return "-"


def has_layout(op: Op) -> bool:
    """True for a row whose results lie as its facts tell."""
    writes = op.functional is not None or any(a.is_write for a in op.schema.arguments)
    return (op.scalar is not None or bool(op.layout)) and not writes and not op.name.endswith("mkldnn")


def main() -> None:
    torch = import_module("torch")
    lines = [made for op in entries() if has_layout(op) and (made := line(op, torch))]
    RECORDED.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    print(len(lines), "rows")


if __name__ == "__main__":
    main()
