"""Kernels for threads on a device: the groups of the fuser's tests, and every operator with an expression.

On the double the host runs the launches; on a GPU they are the driver's, and shapes are those of large tensors, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.fuser.gpu import compiler, emulated, launcher
from engine.fuser.gpu.driver import CUPY
from engine.fuser.groups.from_graph import NotFused
from engine.lang.errors import EngineError
from tests.table.gradient_programs import program
from tests.table.kernel_samples import FLOATS, OPERATORS, agree, arguments, dtypes, flat, strided
from tests.unit.fuser import samples_of_groups as samples
from tests.unit.fuser.emulated_driver import EmulatedDriver
from tests.unit.fuser.gpu_kernels import all_of, binding_of, unit_of
from tests.unit.fuser.kernels_of_groups import tensor

GROUPS = [
    *samples.POINTWISE, *samples.REDUCING, *samples.COLUMNS, *samples.NORMS, *samples.CHOOSING, *samples.PARTS,
]  # fmt: skip
LARGE = [(16384, 1024), (1000, 33), (3, 200_000), (70_001, 6), (5, 4096)]
"""Shapes for a GPU: many rows, odd sizes, few long rows, many short ones."""


@pytest.fixture
def driver(cuda: str) -> Any:
    if cuda == "double" and not emulated.is_possible():
        pytest.skip("the C library has no contexts")
    return EmulatedDriver() if cuda == "double" else CUPY


def missed(*args: Any) -> Any:
    raise AssertionError("no kernel takes these arguments")


def on_device(value: Any) -> Any:
    return value.to("cuda") if isinstance(value, Tensor) else value


def compared(text: str, args: list[Any], driver: Any) -> None:
    """The kernel for these arguments gives on the device what the program gives on the CPU."""
    run = launcher.bind("f", [binding_of(text, *args)], missed, driver)
    found, expected = all_of(run(*map(on_device, args))), all_of(unit_of(text, args).f(*args))
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
        scale = max(1.0, float(np.abs(b.numpy().astype(float)).max(initial=0.0, where=np.isfinite(b.numpy()))))
        np.testing.assert_allclose(
            a.cpu().numpy().astype(float), b.numpy().astype(float), rtol=1e-4, atol=1e-4 * scale, equal_nan=True
        )


@pytest.mark.parametrize("text", GROUPS)
def test_groups(text: str, driver: Any) -> None:
    compared(text, [tensor(6, 9) if driver is not CUPY else tensor(60, 300)], driver)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", LARGE, ids=str)
@pytest.mark.parametrize("text", [*samples.REDUCING, *samples.COLUMNS])
def test_large_groups(text: str, shape: tuple[int, int], driver: Any, cuda: str) -> None:
    if cuda != "gpu":
        pytest.skip("the host takes too long")
    compared(text, [tensor(*shape)], driver)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.qualified_name)
def test_operators_with_expressions(op: Op, driver: Any) -> None:
    made = 0
    for dtype in dtypes(op) if driver is CUPY else (np.float32, np.int64):
        number = 2.5 if dtype in FLOATS else 2
        calls = [arguments(op, tensors, number) for tensors in (*flat(dtype), *strided(dtype))]
        for call in calls if driver is CUPY else calls[:1]:
            made += follows(op, call, driver)
    assert made > 0


def follows(op: Op, call: list[Any], driver: Any) -> bool:
    """Check a call; false where the operator refuses it, or has no kernel for it."""
    try:
        expected = op.compiled.run(*call)
        function, tensors = program(op, call)
        binding = compiler.lower(function.graph, tensors, [expected])
    except (EngineError, NotFused):
        return False
    found = launcher.bind("f", [binding], missed, driver)(*map(on_device, tensors))
    agree(found.cpu(), expected)
    return True
