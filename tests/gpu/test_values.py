"""Every operator with a sample, in every dtype: on the device what it gives on the CPU, or a refusal as there."""

from __future__ import annotations

import pytest

from engine.aten.dispatch.op import Op
from tests.gpu.variants import calls, compared, operators

ON_THE_DOUBLE = ()
"""Dtypes besides float32 for the double, which has numpy's; a GPU gets them all."""


@pytest.mark.parametrize("op", operators(), ids=lambda op: op.qualified_name)
def test_an_operator_gives_what_it_gives_on_the_cpu(op: Op, cuda: str) -> None:
    found = [*calls(op)] if cuda == "gpu" else [*calls(op, ON_THE_DOUBLE)]
    if not found:
        pytest.skip("there is no sample for it")
    problems = {str(call): problem for call in found if (problem := compared(call))}
    assert not problems


def test_operators_run_on_devices_that_are_not_the_current_one(two: str) -> None:
    found = [call for op in operators() for call in calls(op, ())]
    problems = {str(call): problem for call in found if (problem := compared(call, two))}
    assert not problems


def test_samples_in_other_dtypes_are_compared_too(cuda: str) -> None:
    chosen = [op for op in operators() if op.qualified_name in ("aten::add.Tensor", "aten::softmax.int", "aten::cat")]
    found = [call for op in chosen for call in calls(op)]
    assert len(found) > 30
    assert not [f"{call}: {problem}" for call in found if (problem := compared(call))]


def test_most_operators_on_tensors_have_a_sample() -> None:
    assert sum(next(calls(op, ()), None) is not None for op in operators()) > 1200
