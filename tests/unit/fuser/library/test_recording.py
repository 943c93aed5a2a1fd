"""Nodes that stubs give their results are those that Python gives them, and are left to Python where it knows more."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.autograd.node import Saved
from engine.aten.dispatch import table
from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Tensor
from engine.fuser.library import serving
from tests.unit.fuser.library.test_serving import calls_of_python


@pytest.fixture(autouse=True)
def _served(library: None) -> None:
    """The library is there, and serves."""


class Missed(Exception):
    pass


def missed(*args: Any) -> Any:
    raise Missed


def tensor(requires_grad: bool = True, d: Any = np.float32) -> Tensor:
    return Tensor(np.linspace(0.25, 2, 12, dtype=d).reshape(3, 4), requires_grad)


def row(requires_grad: bool = True) -> Tensor:
    return Tensor(np.linspace(0.5, 1, 4, dtype=np.float32), requires_grad)


def recording_stub(name: str) -> tuple[Any, Any]:
    """The stubs of an operator, which record, with nothing behind them, and its function in Python."""
    op = table.find(f"aten::{name}")
    assert op is not None
    serving.take_parts()
    serving.record(op)
    return serving._chained(op.name, serving._known(op, is_hooked=True), missed), op.compiled.run


CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("exp", (tensor(),)),
    ("relu", (tensor(),)),
    ("sin", (tensor(d=np.float64),)),
    ("mul.Tensor", (tensor(), tensor())),
    ("mul.Tensor", (tensor(), tensor(False))),
    ("div.Tensor", (tensor(False), tensor())),
    ("add.Tensor", (tensor(), tensor(), 3)),
    ("mul.Scalar", (tensor(), 2.5)),
    ("pow.Tensor_Scalar", (tensor(), 2)),
    ("sum", (tensor(), None)),
    ("sum.dim_IntList", (tensor(), [1], False, None)),
    ("mean.dim", (tensor(), [0], True, None)),
    ("softmax.int", (tensor(), -1, None)),
    ("gelu", (tensor(), "none")),
    ("add.Tensor", (tensor(), row(), 1)),
    ("mul.Tensor", (row(), tensor())),
    ("where.self", (Tensor(np.eye(3, 4) > 0), tensor(), tensor(False))),
    ("lerp.Tensor", (tensor(False), tensor(), row())),
    ("softmax.int", (tensor(), 0, None)),
    ("sum.dim_IntList", (tensor(), [0, 1], False, None)),
    ("clamp", (tensor(), 0.5, None)),
]


def kept_of(value: Any) -> Any:
    """What is kept as it can be compared."""
    if isinstance(value, Saved):
        held = value.held.array if value.output < 0 else value.held
        return held.tolist(), value.version, value.output, value.output < 0 or value.storage.owner is held
    return value


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_nodes_are_those_of_python(name: str, args: tuple[Any, ...]) -> None:
    native, python = recording_stub(name)
    one, other = native(*args), python(*args)
    np.testing.assert_allclose(one.array, other.array, rtol=1e-5)
    assert one.requires_grad and type(one.grad_fn) is type(other.grad_fn) and one.grad_fn.plan is other.grad_fn.plan
    assert one.grad_fn.sequence < other.grad_fn.sequence and one.grad_fn.outputs == other.grad_fn.outputs
    assert [edge and (edge.node, edge.input, edge.form) for edge in one.grad_fn.edges] == [*other.grad_fn.edges]
    for a, b in zip(map(kept_of, one.grad_fn.kept), map(kept_of, other.grad_fn.kept), strict=True):
        assert type(a) is type(b)
        if isinstance(a, tuple) and isinstance(a[0], list):
            np.testing.assert_allclose(a[0], b[0], rtol=1e-5)
            assert a[1:] == b[1:]
        else:
            assert a == b
    leaves = [each for each in args if isinstance(each, Tensor) and each.requires_grad]
    found = torch.autograd.grad(one.sum(), leaves)
    for a, b in zip(found, torch.autograd.grad(other.sum(), leaves), strict=True):
        np.testing.assert_allclose(a.array, b.array, rtol=1e-5, atol=1e-6)


def test_edges_lead_to_the_nodes_of_results() -> None:
    x = tensor()
    native, _ = recording_stub("mul.Tensor")
    y = native(x, x)
    z = native(y, y)
    assert [edge.node for edge in z.grad_fn.edges] == [y.grad_fn, y.grad_fn]
    z.sum().backward()
    np.testing.assert_allclose(x.grad.array, 4 * x.array**3, rtol=1e-5)  # type: ignore[union-attr]


def test_each_choice_of_tensors_that_require_grad_is_recorded() -> None:
    native, python = recording_stub("mul.Tensor")
    for needs in ((True, True), (True, False), (False, True)):
        x, y = map(tensor, needs)
        one, other = native(x, y), python(x, y)
        assert one.grad_fn.plan is other.grad_fn.plan and len(one.grad_fn.edges) == sum(needs)
    assert native(tensor(False), tensor(False)).grad_fn is None


def test_results_that_are_no_floats_are_left_to_the_fallback() -> None:
    native, python = recording_stub("lt.Tensor")
    with pytest.raises(Missed):
        native(tensor(), tensor())
    assert not python(tensor(), tensor()).requires_grad


def test_what_is_left_out_is_kept_as_its_default() -> None:
    native, python = recording_stub("add.Tensor")
    one, other = native(tensor(), tensor()), python(tensor(), tensor(), 1)
    assert [*one.grad_fn.kept] == [*other.grad_fn.kept]


def test_a_dimension_that_is_no_list_is_kept_as_one() -> None:
    x = tensor()
    for y in (x.sum(1), x.mean(-1)):
        (place,) = [each for each in y.grad_fn.kept if isinstance(each, list)]
        assert place in ([1], [-1])
        assert torch.autograd.grad(y.sum(), x)[0].shape == (3, 4)


def test_operators_that_are_made_of_others_are_left_to_the_fallback() -> None:
    """What is recorded are these others."""
    native, python = recording_stub("mse_loss")
    assert not native(tensor(False), tensor(False)).requires_grad
    with pytest.raises(Missed):
        native(tensor(), tensor(False))
    assert python(tensor(), tensor(False), 1).requires_grad


def test_writes_that_are_recorded_are_left_to_the_fallback() -> None:
    x = tensor() * 1
    native, _ = recording_stub("mul_.Tensor")
    with pytest.raises(Missed):
        native(x, tensor(False))
    with torch.no_grad():
        assert native(x, tensor(False)) is x


def test_what_is_not_recorded_or_otherwise_is_left_to_the_fallback() -> None:
    x = tensor()
    native, _ = recording_stub("exp")
    with torch.no_grad():
        assert not native(x).requires_grad
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t), pytest.raises(Missed):
        native(x)
    assert native(x).requires_grad


def test_views_of_memory_that_was_written_are_left_to_the_fallback() -> None:
    x = tensor()
    native, _ = recording_stub("exp")
    base = x * 1
    view = base[1:]
    assert native(view).grad_fn.edges[0].node is view.grad_fn
    base.mul_(2)
    with pytest.raises(Missed):
        native(view)
    assert native(base).grad_fn.edges[0].node is base.grad_fn


def test_later_results_of_a_node_are_left_to_the_fallback() -> None:
    values, indices = torch.sort(tensor())
    del indices
    native, _ = recording_stub("exp")
    assert native(values).grad_fn.edges[0].node is values.grad_fn
    _, second = torch.var_mean(tensor(), 1)
    assert second.output_nr == 1
    native, _ = recording_stub("exp")
    with pytest.raises(Missed):
        native(second)


def test_writes_to_what_was_kept_are_noticed() -> None:
    x = tensor()
    native, _ = recording_stub("exp")
    y = native(x)
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_nothing_is_left_behind() -> None:
    x, y = tensor(), tensor()
    native, _ = recording_stub("mul.Tensor")
    exp, _ = recording_stub("exp")
    objects = x, y, x.array, x.array.dtype, Storage, Saved, None, True, False, -1, 0

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(each) for each in objects]

    native(x, y), exp(x)
    before = counts()
    for _ in range(500):
        native(x, y)
        exp(native(x, y)).sum().backward()
    x.grad = y.grad = None
    assert all(abs(now - then) < 50 for now, then in zip(counts(), before, strict=True))


@pytest.mark.parametrize(
    "call",
    [lambda x: x.exp(), lambda x: x * x, lambda x: x + 2, lambda x: x.sum(), lambda x: x.relu(), lambda x: x.mean(1)],
)
def test_calls_of_methods_that_record_make_no_call_of_python(call: Callable[[Any], Any]) -> None:
    assert calls_of_python(call, requires_grad=True) == []
