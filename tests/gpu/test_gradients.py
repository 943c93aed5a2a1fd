"""Gradients of every operator that has one, through differentiable graphs for tensors of the device."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import engine.torch as torch
from engine.aten.dispatch.op import Op
from engine.executor.plans import lowered
from engine.executor.plans.lowered import Compiler
from engine.lang.errors import EngineError
from tests.gpu.variants import MOVING
from tests.table.gradient_programs import check, splitting_everything
from tests.table.test_gradients import ENTRIES

TRIED = [op for op in ENTRIES if op.qualified_name not in MOVING]


def compiler_of_nothing() -> Compiler:
    """A compiler that makes no kernels, so that graphs run operator by operator."""

    def refuse(*_: object) -> None:
        raise AssertionError("nothing is fusible")

    return Compiler(lambda node: False, refuse, refuse, str)  # type: ignore[arg-type]


def problems(device: str, ops: Sequence[Op] = TRIED) -> dict[str, str]:
    found = {}
    with splitting_everything():
        for op in ops:
            try:
                check(op, device)
            except (AssertionError, EngineError) as error:
                found[op.qualified_name] = str(error)
    return found


def test_gradients_of_programs_are_those_of_the_tape(cuda: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lowered.SETTINGS.compilers, "cuda", compiler_of_nothing())
    assert not problems("cuda:0")


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_so_are_those_on_another_device_than_the_current_one(
    two: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each fifth operator: what goes by the device is the same for all."""
    monkeypatch.setitem(lowered.SETTINGS.compilers, "cuda", compiler_of_nothing())
    assert not problems(two, TRIED[::step])


def test_gradients_of_numbers_on_a_device_stay_there(cuda: str) -> None:
    leaf = torch.ones(2, 3, requires_grad=True)
    x = (leaf * 1).to("cuda")
    total = sum(each.sum().cpu() for each in (torch.relu(x), x))
    total.backward()
    assert leaf.grad.tolist() == [[2.0] * 3] * 2
