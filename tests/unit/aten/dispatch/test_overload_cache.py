"""Calls that are made again run from a plan: what comes out must be what came out the first time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from engine.aten.autograd import no_grad
from engine.aten.dispatch import calls
from engine.aten.dispatch.calls import call, call_function, call_method
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Size, tensor
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


def test_functions_learn_calls_and_still_take_others() -> None:
    total = calls.function("sum")
    for _ in range(2):
        assert total(X).tolist() == 21.0
        assert total(X, 0).tolist() == [5.0, 7.0, 9.0]
        assert total(X, dim=1, keepdim=True).tolist() == [[6.0], [15.0]]
        assert total(X, keepdim=True, dim=1).tolist() == [[6.0], [15.0]]
        assert total(X, [0, 1]).tolist() == 21.0
        assert total(X, 0, True).tolist() == [[5.0, 7.0, 9.0]]
        assert total(input=X, axis=1).tolist() == [6.0, 15.0]
        assert total(X, 0, dtype=scalars.float64).dtype is scalars.float64
        assert total(tensor([1, 2])).dtype is scalars.int64
        with pytest.raises(ArgumentError):
            total(X, dim="a")
        with pytest.raises(ArgumentError):
            total(X, dimm=1)
        with pytest.raises(ArgumentError):
            total()


def test_functions_that_somebody_holds_learn_too(monkeypatch: pytest.MonkeyPatch) -> None:
    held, choices = calls.function("add"), []
    choose = calls._choose
    monkeypatch.setattr(calls, "_choose", lambda *args: choices.append(args) or choose(*args))
    assert held(X, X, alpha=2)[0, 0].item() == 3.0
    assert held(X, X, alpha=2)[0, 0].item() == 3.0
    assert len(choices) == 1
    assert held(X, X, alpha=3)[0, 0].item() == 4.0
    assert held(X, other=X)[0, 0].item() == 2.0


def test_what_was_learnt_first_is_not_what_is_done_to_lists_of_others() -> None:
    cat = calls.function("cat")
    ints, floats = tensor([1, 2]), tensor([1.0, 2.0])
    assert cat([floats, floats]).tolist() == [1.0, 2.0, 1.0, 2.0]
    assert cat([floats, ints]).dtype is scalars.float32
    assert cat((floats, ints), dim=0).dtype is scalars.float32
    for _ in range(2):
        with pytest.raises(ArgumentError):
            cat([floats, 1.0])
    assert cat([ints]).tolist() == [1, 2]


def test_what_makes_tensors_may_be_asked_for_ones_that_require_grad() -> None:
    zeros = calls.function("zeros", makes_tensors=True)
    for wanted in (False, True, False):
        assert zeros(2, requires_grad=wanted).requires_grad is wanted
        assert zeros(2, 3, dtype=scalars.float64, requires_grad=wanted).requires_grad is wanted
        assert not zeros(2).requires_grad


def test_a_learnt_call_can_be_recorded_and_traced() -> None:
    exp, leaf = calls.function("exp"), tensor([0.0], requires_grad=True)
    assert exp(tensor([0.0])).grad_fn is None
    assert exp(leaf).grad_fn.name() == "ExpBackward0"
    assert exp(leaf).grad_fn.name() == "ExpBackward0"
    seen: list[str] = []

    def hook(op: Any, args: tuple[Any, ...], body: Any) -> Any:
        seen.append(op.name)
        return body(*args)

    HOOKS.trace = hook
    try:
        exp(leaf)
    finally:
        HOOKS.trace = None
    assert seen == ["aten::exp"]


def python_calls(function: Callable[[], object]) -> int:
    """How many Python functions run, when it is called once more."""
    for _ in range(3):
        function()
    count = 0

    def profile(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count - 1


@pytest.mark.parametrize(
    ("name", "args", "most"),
    [
        ("contiguous", (X,), 4),
        ("t", (X,), 5),
        ("size", (X, 0), 3),
        ("unsqueeze", (X, 0), 6),
        ("view", (X, 6), 6),
        ("detach", (X,), 5),
        ("flatten", (X,), 7),
        ("broadcast_to", (X, [2, 2, 3]), 8),
    ],
)
@pytest.mark.usefixtures("without_machine_code")
def test_calls_take_few_python_functions(name: str, args: tuple[Any, ...], most: int) -> None:
    function = calls.function(name)
    assert python_calls(lambda: function(*args)) <= most


def test_what_several_threads_teach_is_kept_apart() -> None:
    for _ in range(20):
        function = calls.function("sum")
        found: list[Any] = []
        teach = [lambda f=function: f(X, 0), lambda f=function: f(X), lambda f=function: f(X, dim=1)]
        note = [lambda each=each, found=found: found.append(each().tolist()) for each in teach]
        threads = [threading.Thread(target=each) for each in note]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(str, found)) == ["21.0", "[5.0, 7.0, 9.0]", "[6.0, 15.0]"]
        assert function(X).tolist() == 21.0 and function(X, 0).tolist() == [5.0, 7.0, 9.0]
        assert function(X, dim=1).tolist() == [6.0, 15.0]
