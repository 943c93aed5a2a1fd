"""Profiles: what is noted of values, and how it is merged."""

from __future__ import annotations

from typing import Any

import engine
from engine.executor.bytecode.code import Code
from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.plans.executor import executor_of
from engine.executor.profiling.record import PROFILE, ProfilingRecord


def profiled(text: str, *calls: tuple[Any, ...]) -> ProfilingRecord:
    """The record of a function `f` after these calls."""
    graph = executor_of(engine.CompilationUnit(text).f._function).graph
    record = ProfilingRecord.of(graph, len(calls))
    for args in calls:
        record.begin_run()
        InterpreterState(Code(record.graph, "f")).run(*args)
    return record


LOOP = """
def f(x, y, n: int):
    z = x + y
    for i in range(n):
        if i > 1:
            z = z * x
    return torch.tanh(z)
"""


def test_every_use_of_a_tensor_is_profiled_in_blocks_too() -> None:
    record = profiled(LOOP, (engine.ones(3, 2), engine.ones(1, 2), 4))
    uses = [(each.value, each.user, each.count) for each in record.profiles]
    assert ("z.1", "prim::Loop", 1) in uses
    assert ("x.1", "aten::mul", 2) in uses
    assert len(record.graph.find_all_nodes(PROFILE)) == len(record.profiles)
    assert record.is_ready


def test_sizes_that_vary_together_have_one_symbol() -> None:
    text = "def f(x, y):\n    return torch.mm(x, y)"
    record = profiled(text, (engine.ones(3, 2), engine.ones(2, 3)), (engine.ones(5, 2), engine.ones(2, 5)))
    assert record.texts() == ["Float(s0, 2)", "Float(2, s0)", "Float(s0, s0)"]
    assert str(record.profiles[0]) == "Float(*, 2, strides=[2, 1], requires_grad=0, device=cpu)"


def test_the_history_of_a_type_is_kept() -> None:
    record = profiled(
        "def f(x):\n    return x + x", (engine.ones(3),), (engine.ones(3),), (engine.ones(3, dtype=engine.int64),)
    )
    profile = record.profiles[0]
    assert profile.count == 3
    assert [merge.run for merge in profile.merges] == [1, 3]
    assert profile.merges[1].before == profile.merges[0].after
    assert profile.type is not None
    assert profile.type.dtype is None
    assert profile.type.sizes == (3,)


def test_missing_tensors_are_counted() -> None:
    text = "def f(x: Optional[Tensor]):\n    if x is None:\n        return 0\n    return x.size(0)"
    record = profiled(text, (None,), (engine.ones(2),))
    assert (record.profiles[0].count, record.profiles[0].undefined) == (1, 1)


def test_the_order_of_strides_is_kept_where_sizes_vary() -> None:
    record = profiled("def f(x):\n    return x + x", (engine.ones(3, 2).t(),), (engine.ones(5, 2).t(),))
    assert record.profiles[0].order == (1, 0)
