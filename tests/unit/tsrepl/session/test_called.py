"""Texts that commands about functions share."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from engine.executor.plans.explanation import KernelExplanation
from engine.executor.plans.fusion import Kernel
from engine.ir.graph import Graph
from tsrepl.session.called import measured

if TYPE_CHECKING:
    from engine.executor.plans.lowered import Lowered


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(0.0, ""), (0.314, "0.31 times the time without it"), (1.34, "not used: 1.3 times the time without it")],
)
def test_what_was_measured_of_calls_beside_those_without_a_kernel(ratio: float, shown: str) -> None:
    kernel = Kernel(cast("Lowered", None), (), 0.1, ratio)
    assert measured(KernelExplanation(0.1, kernel, lambda: None, Graph())) == shown
