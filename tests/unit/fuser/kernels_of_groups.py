"""Functions in TorchScript as kernels, and the comparison of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import engine.torch as torch
from engine.executor.plans.executor import executor_of
from engine.fuser.groups import from_graph
from engine.fuser.stubs import stub
from engine.fuser.stubs.binding import Binding
from engine.ir.clone import copy_graph


def tensor(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    random = np.random.default_rng(seed + sum(shape))
    return torch.from_numpy((random.standard_normal(shape) * 3).astype(dtype))


def _missed(*args: Any) -> Any:
    raise AssertionError("no kernel takes these arguments")


def kernel_of(text: str, args: Sequence[Any]) -> tuple[Any, Any]:
    """The kernel of `def f(...)`, and the function itself."""
    unit = torch.jit.CompilationUnit(text)
    with torch.no_grad():
        plan = executor_of(unit._unit.functions["f"]).plan_for(args)
        graph = plan.fusion.graph if plan.fusion is not None else plan.graph  # also where its groups are on disk
        binding = from_graph.lower(copy_graph(graph), args, _all(unit.f(*args)))
    return stub.bind("f", [binding], _missed), unit.f


def check(text: str, *args: Any, others: Sequence[Sequence[Any]] = (), tolerance: float = 2e-5) -> None:
    """The kernel of `parameters: expression` for the first arguments gives what the program gives, for all."""
    check_program(
        f"def f({text.partition(':')[0]}):\n    return {text.partition(':')[2]}\n", *args,
        others=others, tolerance=tolerance,
    )  # fmt: skip


def check_program(text: str, *args: Any, others: Sequence[Sequence[Any]] = (), tolerance: float = 2e-5) -> None:
    kernel, function = kernel_of(text, args)
    for given in (args, *others):
        with torch.no_grad():
            found, expected = kernel(*given), function(*given)
        assert isinstance(found, tuple) == isinstance(expected, tuple)
        for a, b in zip(_all(found), _all(expected), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert _order(a) == _order(b)
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance, equal_nan=True)


def _order(value: Any) -> list[int]:
    """The dimensions of several elements as they lie in memory."""
    return sorted((d for d in range(value.ndim) if value.shape[d] > 1), key=lambda d: -value.stride(d))


def _all(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def binding_of(text: str, *args: Any) -> Binding:
    """The binding of `parameters: expression` for such arguments."""
    unit = torch.jit.CompilationUnit(f"def f({text.partition(':')[0]}):\n    return {text.partition(':')[2]}\n")
    with torch.no_grad():
        plan = executor_of(unit._unit.functions["f"]).plan_for(args)
    return from_graph.lower(copy_graph(plan.graph), args)
