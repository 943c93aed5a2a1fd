"""Calls that are made again run from a plan: what comes out must be what came out the first time."""

from __future__ import annotations

from typing import Any

import pytest

from engine.aten.autograd import no_grad
from engine.aten.calls import call, call_function, call_method
from engine.aten.dispatch import HOOKS
from engine.aten.tensor import Size, tensor
from engine.lang import scalars
from engine.lang.errors import ArgumentError

X = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def shown(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [shown(v) for v in value]
    return (value.tolist(), value.dtype) if hasattr(value, "tolist") else value


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("sum", (X,), {}),
        ("sum", (X, 0), {}),
        ("sum", (X, [0, 1]), {}),
        ("sum", (X, (0,)), {"keepdim": True}),
        ("sum", (X,), {"dim": 1, "dtype": scalars.float64}),
        ("view", (X, 3, 2), {}),
        ("view", (X, (3, 2)), {}),
        ("zeros", (2, 3), {"dtype": scalars.float64}),
        ("zeros", ([2, 3],), {"device": "cpu"}),
        ("add", (X, X), {"alpha": 2}),
        ("clamp", (X, 2), {"max": 5}),
        ("max", (X, 0), {}),
        ("where", (X > 2, X, 0.0), {}),
        ("adaptive_avg_pool1d", (X, 2), {}),
        ("size", (X,), {}),
    ],
)
def test_a_call_gives_the_same_again(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    first = shown(call_function(name, args, kwargs))
    assert shown(call_function(name, args, kwargs)) == first
    assert shown(call_function(name, args, kwargs)) == first


def test_python_sees_sizes_again_and_again() -> None:
    for _ in range(3):
        assert type(X.size()) is Size


def test_what_is_in_a_list_decides_anew() -> None:
    ints, floats = tensor([1, 2]), tensor([1.0, 2.0])
    for _ in range(2):
        assert call("cat", ([ints, ints],), {}).dtype is scalars.int64
        assert call("cat", ([floats, ints],), {}).dtype is scalars.float32
        with pytest.raises(ArgumentError):
            call("cat", ([floats, 1],), {})


def test_a_refused_value_is_refused_again() -> None:
    assert X.permute(1, 0).shape == (3, 2)
    for _ in range(2):
        with pytest.raises(ArgumentError):
            X.permute(1, "x")
        with pytest.raises(ArgumentError):
            X.sum(dims=0)


def test_methods_whose_tensor_is_not_the_schema_s_first() -> None:
    for _ in range(2):
        assert call_method("where", (X, X > 3, 0.0), {}).tolist() == [[0.0, 0.0, 0.0], [4.0, 5.0, 6.0]]


def test_plans_are_not_used_while_a_program_is_traced() -> None:
    X.exp()
    seen: list[str] = []

    def hook(op: Any, args: tuple[Any, ...], body: Any) -> Any:
        seen.append(op.name)
        return body(*args)

    HOOKS.trace = hook
    try:
        X.exp()
    finally:
        HOOKS.trace = None
    assert seen == ["aten::exp"]


def test_recorded_calls_and_others_take_turns() -> None:
    leaf = tensor([1.0, 2.0], requires_grad=True)
    for _ in range(2):
        assert not tensor([1.0]).exp().requires_grad
        assert leaf.exp().grad_fn.name() == "ExpBackward0"
        with no_grad():
            assert not leaf.exp().requires_grad
