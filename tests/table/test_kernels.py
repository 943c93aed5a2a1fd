"""The law of expressions: every operator with one is a kernel, which gives what numpy's functions give, on all dtypes
and layouts, with NaN, infinities, denormal numbers and without elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.fuser.groups.from_graph import NotFused, lower
from engine.fuser.stubs import stub
from engine.lang.errors import EngineError
from tests.table.gradient_programs import program
from tests.table.kernel_samples import FLOATS, OPERATORS, agree, are_alike, arguments, dtypes, flat, strided


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.qualified_name)
def test_kernels_give_what_numpy_gives(op: Op) -> None:
    made = 0
    for dtype in dtypes(op):
        number = 2.5 if dtype in FLOATS else 2
        calls = [arguments(op, tensors, number) for tensors in flat(dtype)]
        for together in of_one_rank(calls) if are_alike(calls[0]) else ([call] for call in calls if call[0].ndim):
            made += follows(op, together, dtype)
    for tensors in strided(np.float32):
        made += follows(op, [arguments(op, tensors, 2.5)], np.float32)
    assert made > 0


Kernel = Callable[..., Any]


def of_one_rank(calls: list[list[Any]]) -> Iterator[list[list[Any]]]:
    """The calls, those together that one kernel is for."""
    for rank in sorted({*map(rank_of, calls)}):
        yield [call for call in calls if rank_of(call) == rank]


def rank_of(call: list[Any]) -> int:
    """The dimensions of the operands, which are alike."""
    return next(each.ndim for each in call if isinstance(each, Tensor))


def kernel_of(op: Op, call: list[Any]) -> Kernel:
    """A kernel for operands that lie in memory as these do, as groups of graphs have it."""
    function, tensors = program(op, call)
    run = stub.bind(op.name, [lower(function.graph, tensors, [op.compiled.run(*call)])], missed)
    return lambda *given: run(*(each for each in given if isinstance(each, Tensor)))


def follows(op: Op, calls: list[list[Any]], dtype: Any) -> bool:
    """Check one kernel, made for the first call, with all calls; false where the operator refuses such arguments.

    Of whole numbers some are left to Python: divisions, which may fail, and what becomes a float in between.
    """
    try:
        op.compiled.run(*calls[0])
    except EngineError:
        with pytest.raises((NotFused, EngineError)):
            kernel_of(op, calls[0])
        return False
    try:
        run = kernel_of(op, calls[0])
    except NotFused:
        assert dtype not in FLOATS
        return False
    for call in calls:
        agree(run(*call), op.compiled.run(*call))
    return True


def missed(*args: Any) -> Any:
    raise AssertionError("no kernel takes these arguments")
