"""The law of half types in networks: scripted and traced, in each mode, cold and warm, they give what modules give.

The rounding of a training amplifies itself, so each step starts from the state that mode off had.  What results may be
farther from the numbers of float64 than those of mode off, by a factor of what roundings in another order come to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from tests.table.half_networks import NETWORKS, STEPS, Step, given, made, stepped, training

FACTOR, LEAST = 4.0, 4.0
"""Of the worst distance that a step of mode off has; in units of the last place of the largest number."""


def distance(found: torch.Tensor, exact: torch.Tensor, dtype: Any) -> float:
    wanted = np.asarray(exact.detach().tolist())
    apart = np.abs(np.asarray(found.detach().tolist()) - wanted).max()
    return float(apart / (max(np.abs(wanted).max(), 1e-2) * torch.finfo(dtype).eps))


def limits(steps: list[Step], dtype: Any) -> dict[str, float]:
    found = {}
    for name, wanted in steps[0].exact.items():
        if wanted is not None:
            worst = max(distance(step.found[name], step.exact[name], dtype) for step in steps)  # type: ignore[arg-type]
            found[name] = FACTOR * worst + LEAST
    return found


DTYPES = (torch.bfloat16, torch.float16)
SAMPLE = [(network, DTYPES[i % 2], 5) for i, network in enumerate(NETWORKS)]
ALL = [pytest.param(network, dtype, 500, marks=pytest.mark.slow) for network in NETWORKS for dtype in DTYPES]


@pytest.mark.filterwarnings("ignore::engine.torch.jit.TracerWarning")
@pytest.mark.parametrize(("network", "dtype", "calls"), SAMPLE + ALL)
def test_networks_of_half_types_are_alike_in_all_modes(network: Any, dtype: Any, calls: int, mode: str) -> None:
    steps, arguments = training(network, dtype), given(network, dtype)
    allowed = limits(steps, dtype)
    script = torch.jit.script(made(network, dtype))
    trace = torch.jit.trace(made(network, dtype), tuple(arguments), check_trace=False)
    for i in range(calls):
        step = steps[i * 7 % STEPS]
        for model in (script, trace):
            found = stepped(model, arguments, step.state)
            assert found.keys() == step.found.keys()
            for name, wanted in step.found.items():
                each, exact = found[name], step.exact[name]
                assert (each is None) == (wanted is None), name
                if each is not None and wanted is not None and exact is not None:
                    traits = each.dtype, each.shape, each.requires_grad
                    assert traits == (wanted.dtype, wanted.shape, wanted.requires_grad), name
                    assert distance(each, exact, dtype) <= allowed[name], (name, i)
