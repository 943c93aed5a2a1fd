"""Steps in machine code do what Python's definitions do, and leave nothing behind."""

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.autograd.node import Saved
from engine.aten.autograd.record import OperatorNode
from engine.aten.kernels.rules import steps as steps_of
from engine.aten.values import hot_helpers as steps
from engine.aten.values.parameter import Parameter
from engine.aten.values.size import Size
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import FROM_NUMPY
from engine.fuser import tiering
from engine.fuser.hot_helpers import install
from engine.lang.errors import OperatorIndexError
from engine.lang.scalars import CPU

SLOTS = ("array", "_storage", "_seen", "_requires_grad", "_grad_fn", "output_nr", "_base")


class Derived(Tensor):
    pass


@pytest.fixture(autouse=True, scope="module")
def _installed() -> None:
    tiering.wait()
    install.install()
    assert install.refused() is None


def made(step: str, *args: Any) -> tuple[Any, Any]:
    """What machine code and Python's definition give."""
    found = getattr(steps.HOT, step)
    assert type(found).__name__ == "builtin_function_or_method"
    return found(*args), steps.DEFINITIONS[step](*args)


def whole() -> Tensor:
    return Tensor(np.arange(12, dtype=np.float32).reshape(3, 4).copy())


def shown() -> Tensor:
    return whole()[1:]


def written() -> Tensor:
    return whole().add_(1)  # type: ignore[no-any-return]


def of_numpy() -> Tensor:
    return torch.from_numpy(np.arange(12.0)[2:8].reshape(2, 3))  # type: ignore[no-any-return]


SOURCES: dict[str, Callable[[], Tensor]] = {
    "whole": whole, "a view": shown, "written": written, "of numpy": of_numpy, "turned": lambda: whole().t(),
    "a parameter": lambda: Parameter(whole()), "derived": lambda: whole().as_subclass(Derived)
    if hasattr(Tensor, "as_subclass") else Derived(whole().array), "no dimensions": lambda: whole()[0, 0],
    "no elements": lambda: whole()[:0], "wide": lambda: Tensor(np.zeros((2, 70000), np.int64)),
}  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_views(source: str) -> None:
    x = SOURCES[source]()
    for array in (x.array[...], x.array.T, x.array[None], x.array.copy(), x.array):
        native_view, view = made("view", array, x)
        for name in SLOTS:
            ours, expected = getattr(native_view, name, None), getattr(view, name, None)
            assert ours is expected or (type(ours) is int and ours == expected), name
        assert type(native_view) is type(view)


@pytest.mark.parametrize("source", SOURCES)
def test_new_tensors_and_what_is_kept(source: str) -> None:
    x = SOURCES[source]()
    fresh, expected = made("fresh", x.array)
    assert [getattr(fresh, n, None) for n in SLOTS if n != "array"] == [
        getattr(expected, n, None) for n in SLOTS if n != "array"
    ]
    assert fresh.array is x.array
    for storage in (x.memory, None):
        again, expected = made("wrapped", x.array, storage)
        assert all(getattr(again, n, None) is getattr(expected, n, None) for n in SLOTS)
    ours, form = made("form_of", x)
    assert ours == form and [type(n) for n in ours[0]] == [int] * x.ndim
    for step in ("saved", "saved_result"):
        kept, wanted = made(step, x)
        assert type(kept) is Saved and kept.held is wanted.held
        assert (kept.version, kept.output) == (wanted.version, wanted.output)
        assert getattr(kept, "storage", None) is getattr(wanted, "storage", None)


def test_numbers_become_tensors_as_before() -> None:
    fresh, expected = made("fresh", np.float32(2.5))
    assert fresh.tolist() == expected.tolist() == 2.5


@pytest.mark.parametrize("source", SOURCES)
def test_nodes(source: str) -> None:
    plan, sources, kept = object(), (1, 2), (3,)
    nodes = []
    for step in (steps.HOT.attach, steps.DEFINITIONS["attach"]):
        x = SOURCES[source]().detach()
        assert step(x, plan, sources, kept) is x and x._requires_grad is True
        nodes.append(x._grad_fn)
    ours, expected = nodes
    assert type(ours) is type(expected) is OperatorNode
    for name in ("plan", "sources", "kept", "_edges", "hooks", "prehooks", "retained", "tensor_hooks", "outputs"):
        assert getattr(ours, name) == getattr(expected, name), name
    assert type(ours.sequence) is int and ours.sequence < expected.sequence


@pytest.mark.parametrize("source", SOURCES)
def test_questions(source: str) -> None:
    x: Any = SOURCES[source]()
    assert x.shape == x.size() == x.array.shape and type(x.shape) is type(x.size()) is Size
    assert hash(x.shape) == hash(x.array.shape) and repr(x.shape) == f"torch.Size({list(x.array.shape)})"
    assert x.ndim == x.dim() == x.array.ndim and x.numel() == x.array.size
    assert x.stride() == steps_of(x.array) and tuple(x.stride(d) for d in range(x.ndim)) == steps_of(x.array)
    assert x.dtype is FROM_NUMPY[x.array.dtype] and x.device is CPU
    assert x.is_contiguous() is x.array.flags.c_contiguous
    assert (x.float() is x) == (x.dtype is torch.float32) and (x.long() is x) == (x.dtype is torch.int64)
    assert x.double().dtype is torch.float64
    assert [x.size(d) for d in range(-x.ndim, x.ndim)] == [*x.array.shape] * 2
    for d in (x.ndim, -x.ndim - 1):
        with pytest.raises(OperatorIndexError):
            x.size(max(d, 1) if d >= 0 else min(d, -2))
    assert (x.contiguous() is x) == x.array.flags.c_contiguous
    assert x.contiguous(memory_format=torch.contiguous_format).tolist() == x.tolist()
    with pytest.raises(AttributeError):
        x.shape = (1,)


@pytest.mark.parametrize("source", SOURCES)
def test_detached(source: str) -> None:
    x = SOURCES[source]()
    if not isinstance(x, Parameter):
        x = (x * 1.5).requires_grad_(True).exp()
    y = x.detach()
    assert type(y) is Tensor and y.array is x.array and y._storage is x._storage and y._base is None
    assert not y.requires_grad and y.grad_fn is None and y.output_nr == 0
    version = x._version
    y.add_(1)
    assert x._version == version + 1


def test_traces_see_sizes() -> None:
    traced = torch.jit.trace(lambda x: x.reshape(x.shape[1], x.size(0)).contiguous() * x.dim(), whole())
    assert traced(Tensor(np.zeros((5, 2), np.float32))).shape == (2, 5)


def test_what_is_written_in_between_is_noticed() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = y.exp()
    part = y[1:]
    y.add_(1)
    assert part.grad_fn.name() == "AsStridedBackward0"
    z.sum().backward(retain_graph=True)
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


X: Any = whole()
GROWING: Any = torch.ones(3, 4).requires_grad_(True)
CALLS: dict[str, Callable[[], Any]] = {
    "shape": lambda: X.shape, "size": lambda: X.size(0), "detach": lambda: X.detach(), "stride": lambda: X.stride(),
    "contiguous": lambda: X.contiguous(), "dtype": lambda: X.dtype, "device": lambda: X.device,
    "float": lambda: X.float(), "is_contiguous": lambda: X.is_contiguous(), "expand": lambda: X.expand(2, 3, 4),
    "a view": lambda: X[1:], "a view of a view": lambda: X[1:][0], "no view": lambda: X.t().reshape(12),
    "a recorded view": lambda: GROWING[1:][0], "recorded": lambda: GROWING.exp().sum(),
    # No product of matrices: `dot` of numpy 2.5 itself keeps a reference to the dtype of operands out of order.
    "a pass": lambda: (GROWING * GROWING.exp()).sum().backward(),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("path", CALLS)
def test_references_are_counted_right(path: str) -> None:
    call = CALLS[path]
    watched = [X, X.array, X.array.dtype, GROWING, GROWING.array, Tensor, OperatorNode, Saved, Size]
    for _ in range(500):
        call()
    tiering.wait()
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    for _ in range(2000):
        call()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    assert all(abs(sys.getrefcount(each) - b) < 100 for each, b in zip(watched, before, strict=True))
    assert grown < 50_000
