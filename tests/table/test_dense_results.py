"""Every operator whose results are new: however its operands lie, there are no gaps in what it gives, so that a `view`
of it is not refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from tests.table.optional_arguments import calls, samples
from tests.table.samples import copied


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


def _laid(value: Any, form: Any) -> Any:
    if isinstance(value, Tensor):
        return Tensor(form(value.array))
    return type(value)(_laid(each, form) for each in value) if type(value) in (list, tuple) else value


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, Tensor):
        yield value.array
    for each in value if isinstance(value, (list, tuple)) else ():
        yield from _arrays(each)


def _is_dense(array: Any) -> bool:
    span = 1 + sum((size - 1) * step for size, step in zip(array.shape, array.strides, strict=True)) // array.itemsize
    return array.size == 0 or (span == array.size and min(array.strides, default=0) >= 0)


def _calls(op: Op) -> list[list[Any]]:
    try:
        return [*map(list, samples(op)), *calls(op, 0)]
    except (KeyError, TypeError):
        return []


def _with_gaps(op: Op, args: list[Any]) -> Iterator[Any]:
    """New results that have gaps."""
    for form in FORMS:
        given = [_laid(copied(value), form) for value in args]
        try:
            made = op.run(*given)
        except Exception:  # the sample does not fit
            continue
        for array in _arrays(made):
            shares = any(np.may_share_memory(array, each) for each in _arrays(given))
            if not shares and not _is_dense(array):
                yield form.__name__, array.shape, array.strides


OPERATORS = [op for op in table.entries() if not op.schema.is_mutable and _calls(op)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.qualified_name)
def test_new_results_have_no_gaps(op: Op) -> None:
    assert [found for args in _calls(op) for found in _with_gaps(op, args)] == []
