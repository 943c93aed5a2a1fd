"""Operators for which numpy is not silenced have nothing that it would warn of."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from engine.aten.dispatch import table
from engine.aten.dispatch.calls import call
from engine.aten.dispatch.compile import compile_op
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import find
from engine.aten.values.tensor import Tensor

_ODD = (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5, 3e38, -3e38, 1e-45, 7.0)


def loud_operators() -> list[Op]:
    """Those that are written without switching numpy's warnings off, and compute something."""
    return [
        entry
        for entry in table.entries()
        if entry.scalar is not None and "SILENT" not in "".join(compile_op(entry).text.lines)
    ]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_exact_expressions_never_warn(kind: type) -> None:
    values = np.array(_ODD, np.float64)
    with np.errstate(over="ignore"):
        values = values.astype(kind)
    pairs = [np.repeat(values, len(values)), np.tile(values, len(values))]
    operators = loud_operators()
    assert {"aten::relu", "aten::lt.Tensor", "aten::neg"} <= {entry.qualified_name for entry in operators}
    for entry in operators:
        tensors = iter(pairs)
        args = [Tensor(next(tensors)) for _ in entry.schema.arguments]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            entry.run(*args)


def test_numbers_that_have_to_be_converted_first_do_not_warn_either() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call("lt", (Tensor(np.array([1.0], np.float32)), 1e300), {}).tolist() == [True]
        assert call("eq", (Tensor(np.array([1], np.int8)), Tensor(np.array([1e300]))), {}).tolist() == [False]


@pytest.mark.parametrize("name", ["aten::cat", "aten::stack"])
def test_joining_converts_without_warnings(name: str) -> None:
    entry = find(name)
    assert entry is not None and entry.exact
    wide, narrow = Tensor(np.array([np.nan, 1e300])), Tensor(np.array([1.0, np.inf], np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert entry.run([narrow, wide], 0).array.dtype == np.float64
