"""The quick way down to the leaves gives what the pass with an eye for more gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.aten.autograd import Function, backward, detect_anomaly, engine, grad
from engine.aten.autograd.node import AccumulateGrad
from engine.aten.values.tensor import Tensor, tensor
from engine.lang.errors import OperatorError


def leaves() -> tuple[Any, Any]:
    return tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)


class Twice(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2


PROGRAMS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: (x + x).sum(),
    lambda x, y: (x * y + x.exp() * y).sum(),
    lambda x, y: (x @ y).t()[0].sum() * y.mean(),
    lambda x, y: sum(part.sum() * i for i, part in enumerate(x.unbind(0))) + y.max(1)[0].sum(),
    lambda x, y: x.chunk(2)[1].sum(),
    lambda x, y: Twice.apply(x * y).sum() + Twice.apply(x).mean(),
    lambda x, y: (x.detach() * y).sum(),
    lambda x, y: x[0, 0] * y[:, 1].sum(),
    lambda x, y: (x * 3).mul_(y).sum(),
    lambda x, y: (x.view(4)[1:3].clone() * 2).sum() + (y + x.sum(0)).sum(),
    lambda x, y: x.sum().expand(3).sum() * y.std(),
    lambda x, y: call_through_many(x, y),
]


def call_through_many(x: Any, y: Any) -> Any:
    for _ in range(3000):
        x = x * 1.0 + y * 1e-4
    return x.sum()


@pytest.fixture
def watchful() -> Callable[[Any], Any]:
    """Runs something by the other pass."""

    def run(call: Callable[[], Any]) -> Any:
        with detect_anomaly():
            return call()

    return run


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_of_all_leaves(program: Callable[[Any, Any], Any], watchful: Callable[[Any], Any]) -> None:
    ours, expected = leaves(), leaves()
    for _ in range(2):
        program(*ours).backward()
        result = program(*expected)
        watchful(lambda result=result: result.backward())
    for one, other in zip(ours, expected, strict=True):
        assert (one.grad is None) == (other.grad is None)
        assert one.grad is None or one.grad.tolist() == other.grad.tolist()


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_on_request(program: Callable[[Any, Any], Any], watchful: Callable[[Any], Any]) -> None:
    ours, expected = leaves(), leaves()
    for wanted in (slice(0, 2), slice(0, 1), slice(1, 2)):
        found = grad(program(*ours), ours[wanted], allow_unused=True)
        result = program(*expected)
        other = watchful(lambda result=result, wanted=wanted: grad(result, expected[wanted], allow_unused=True))
        assert [g if g is None else g.tolist() for g in found] == [g if g is None else g.tolist() for g in other]
    assert ours[0].grad is None and ours[1].grad is None


def test_a_leaf_that_is_not_asked_for_gets_nothing() -> None:
    x, y = leaves()
    y.register_hook(lambda _: pytest.fail("nobody asked"))
    beside = y.exp()
    beside.register_hook(lambda _: pytest.fail("nobody asked"))
    found: Any = grad((x * y + beside).sum(), x)
    assert found[0].tolist() == y.tolist()
    assert x.grad is None and y.grad is None


def test_hooks_are_called_on_the_way() -> None:
    x, y = leaves()
    seen: list[str] = []
    middle = x * y
    middle.retain_grad()
    middle.register_hook(lambda g: seen.append("middle") or g * 2)  # type: ignore[func-returns-value]
    x.register_hook(lambda g: seen.append("leaf") or g + 1)  # type: ignore[func-returns-value]
    x.register_post_accumulate_grad_hook(lambda _: seen.append("after"))
    middle.grad_fn.register_prehook(lambda _: seen.append("before the node"))
    middle.grad_fn.register_hook(lambda *_: seen.append("after the node"))
    middle.sum().backward()
    assert seen == ["middle", "before the node", "after the node", "leaf", "after"]
    assert middle.grad.tolist() == [[2, 2], [2, 2]]
    assert x.grad.tolist() == (y * 2 + 1).tolist() and y.grad.tolist() == (x * 2).tolist()


def test_a_hook_changes_what_is_asked_for() -> None:
    x, _ = leaves()
    x.register_hook(lambda g: g * 10)
    found: Any = grad((x * 2).sum(), x)
    assert found[0].tolist() == [[20, 20], [20, 20]]


def test_leaves_with_a_node_of_their_own_are_reached_once() -> None:
    x, y = leaves()
    product = x * y
    node = product.grad_fn.next_functions[0][0]
    assert isinstance(node, AccumulateGrad)
    calls: list[Any] = []
    node.register_prehook(lambda g: calls.append(g[0].tolist()))
    (product + x).sum().backward()
    assert calls == [(y + 1).tolist()] and x.grad.tolist() == (y + 1).tolist()


def test_several_places_to_begin() -> None:
    x, y = leaves()
    first = x * y
    second = first.exp()
    backward([second.sum(), first.sum(), first.sum()], [tensor(2.0), tensor(1.0), tensor(1.0)])
    assert x.grad.tolist() == (((x * y).exp() * 2 + 2) * y).tolist()
    x.grad = None
    x.backward(tensor([[1.0, 1.0], [1.0, 1.0]]))
    assert x.grad.tolist() == [[1, 1], [1, 1]]


def test_what_is_kept_is_let_go() -> None:
    x, y = leaves()
    total = (x * y).sum()
    total.backward(retain_graph=True)
    total.backward()
    with pytest.raises(OperatorError, match="a second time"):
        total.backward()


def test_no_node_is_made_for_a_plain_leaf() -> None:
    x, y = leaves()
    (x * y).sum().backward()
    assert x._hooks is None and y._hooks is None


def test_gradients_of_gradients() -> None:
    x, _ = leaves()
    first: Any = grad((x**3).sum(), x, create_graph=True)[0]
    (first * first).sum().backward()
    assert x.grad.tolist() == (36 * x**3).tolist()


def test_the_other_pass_is_taken_where_it_has_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []
    monkeypatch.setattr(engine._Pass, "run", lambda self, roots: taken.append(True))
    x, y = leaves()
    middle = x * y
    middle.sum().backward()
    assert not taken
    grad(middle.sum(), middle, allow_unused=True)
    grad(middle.sum(), x, allow_unused=True)
    backward(middle.sum(), inputs=x)
    assert len(taken) == 3


def test_writes_are_noticed_in_spite_of_the_quick_way() -> None:
    x, y = leaves()
    a = x * 1
    b = (a * y).sum()
    a.add_(1)
    with pytest.raises(OperatorError, match="modified by an inplace"):
        b.backward()


def test_factors_of_one_are_left_out() -> None:
    x, y = leaves()
    seen: list[Tensor] = []
    total = (x + y).sum()
    total.register_hook(lambda g: seen.append(g))
    total.backward()
    x.grad = y.grad = None
    (x - y).sum().backward()
    assert y.grad.tolist() == [[-1, -1], [-1, -1]]
    y.grad = None
    x.sub(y, alpha=2.5).sum().backward()
    assert y.grad.tolist() == [[-2.5, -2.5], [-2.5, -2.5]]
