"""Every operator whose results are new: however its operands lie, there are no gaps in what it gives, so that a `view`
of it is not refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from tests.table.optional_arguments import every_call
from tests.table.samples import copied, mapped, tensors_in


def _as_they_are(array: Any) -> Any:
    return array


def _backwards(array: Any) -> Any:
    """The same numbers with the first dimension innermost."""
    return np.asfortranarray(array)


def _apart(array: Any) -> Any:
    """The same numbers, with others between them."""
    wide = np.zeros([2 * size for size in array.shape], array.dtype)
    shown = wide[(..., *(slice(None, None, 2) for _ in array.shape))]
    shown[...] = array
    return shown


FORMS = (_as_they_are, _backwards, _apart)


def _is_dense(array: Any) -> bool:
    span = 1 + sum((size - 1) * step for size, step in zip(array.shape, array.strides, strict=True)) // array.itemsize
    return array.size == 0 or (span == array.size and min(array.strides, default=0) >= 0)


def _with_gaps(op: Op, args: list[Any]) -> Iterator[Any]:
    """New results that have gaps."""
    for form in FORMS:
        given = mapped(copied(args), form)
        try:
            made = op.run(*given)
        except Exception:  # the sample does not fit
            continue
        for array in (t.array for t in tensors_in(made)):
            shares = any(np.may_share_memory(array, each.array) for each in tensors_in(given))
            if not shares and not _is_dense(array):
                yield form.__name__, array.shape, array.strides


OPERATORS = [op for op in table.entries() if not op.schema.is_mutable and every_call(op)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.qualified_name)
def test_new_results_have_no_gaps(op: Op) -> None:
    assert [found for args in every_call(op) for found in _with_gaps(op, args)] == []
