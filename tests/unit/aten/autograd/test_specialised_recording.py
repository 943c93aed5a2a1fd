"""Operators written out for recording leave the trail that the general way leaves."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from engine.aten.autograd import grad, no_grad
from engine.aten.autograd.record import record
from engine.aten.dispatch.calls import call
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor, tensor
from engine.lang.errors import OperatorError

PROGRAMS: list[Callable[[Tensor, Tensor], Tensor]] = [
    lambda x, y: x + y,
    lambda x, y: x * y.detach() + 1,
    lambda x, y: (x.exp() * y).sum(),
    lambda x, y: x.view(4).unsqueeze(0).t(),
    lambda x, y: x[0] * y[:, 1],
    lambda x, y: (x @ y).softmax(-1).relu(),
    lambda x, y: x.where(x > y, 0.0) - y.mean(0),
    lambda x, y: x.double() * 2,
    lambda x, y: x.sum(dim=0, keepdim=True) / y.max(),
    lambda x, y: call("cat", ([x, y.detach(), y * 2, x.t()], 1), {}),
    lambda x, y: call("stack", ([x, x.unbind(0)[1].expand(2, 2)],), {}) * y,
    lambda x, y: x[tensor([0, 1, 1])].sum() * y[1, 0],
    lambda x, y: x.chunk(2)[1] * y.unbind(0)[0],
    lambda x, y: (x * y).split(1, 1)[0].sum() + x.sort(1)[0][:, 0].sum(),
    lambda x, y: x.max(1)[0] * y.topk(1, 1)[0],
    lambda x, y: call("add", (x, y), {"alpha": 3}).unsqueeze(-1).expand(2, 2, 3).sum(),
    lambda x, y: call("std_mean", (x,), {})[0] * y.flatten().reshape(2, 2),
]


@pytest.fixture
def general() -> Iterator[Callable[[bool], None]]:
    """Switches to the general way of recording and back."""

    def switch(on: bool) -> None:
        HOOKS.grad = (lambda op, args, body: record(op, args, body)) if on else record

    yield switch
    HOOKS.grad = record


def trail(result: Tensor) -> list[str]:
    names, stack = [], [result.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None:
            names.append(node.name())
            stack += [each for each, _ in node.next_functions]
    return names


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("program", PROGRAMS)
def test_both_ways_agree(program: Callable[[Tensor, Tensor], Tensor], general: Callable[[bool], None]) -> None:
    found = []
    for slow in (False, True):
        general(slow)
        x = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y = tensor([[0.5, 2.5], [1.5, 1.0]], requires_grad=True)
        result = program(x, y)
        gradients = grad(result.sum(), [x, y], allow_unused=True, create_graph=True)
        found.append((trail(result), [g if g is None else g.tolist() for g in gradients], trail(gradients[0] * 1)))  # type: ignore[operator, arg-type]
    assert found[0] == found[1]


def test_kept_values_are_watched() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    result = x.exp()
    with no_grad():
        result.add_(1)
    with pytest.raises(OperatorError, match="modified by an inplace operation"):
        result.sum().backward()


def test_a_result_without_fractions_has_no_history() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    assert (x < 2).grad_fn is None
    assert not x.argmax().requires_grad


def test_a_leaf_is_freed_with_what_was_computed_from_it() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    result, leaf = x * x, weakref.ref(x)
    assert result.grad_fn.next_functions[0][0] is result.grad_fn.next_functions[1][0], "one node for one leaf"
    del x
    assert leaf() is not None
    result.sum().backward()
    del result
    assert leaf() is None


def test_a_call_for_several_gradients_is_made_once() -> None:
    x, w, b = (tensor([[1.0, 2.0, 4.0]] if i == 0 else [1.0, 2.0, 3.0], requires_grad=True) for i in range(3))
    result: Tensor = call("layer_norm", (x, [3], w, b), {})
    calls: list[str] = []
    before = HOOKS.trace
    HOOKS.trace = lambda op, args, body: (calls.append(op.name), body(*args))[1]
    try:
        result.sum().backward()
    finally:
        HOOKS.trace = before
    assert calls.count("aten::_layer_norm_backward") == 1
    assert b.grad is not None and b.grad.tolist() == [1.0, 1.0, 1.0]


def test_a_pause_is_the_thread_s_own() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    found: list[object] = []
    with no_grad():
        assert HOOKS.paused
        thread = threading.Thread(target=lambda: found.append((x * x).grad_fn))
        thread.start()
        thread.join()
        assert (x * x).grad_fn is None
        assert (x * x.detach()).grad_fn is None
    assert not HOOKS.paused
    assert found[0] is not None
    assert (x * x).grad_fn is not None


def test_a_step_goes_by_the_formulas_where_it_cannot_be_quick() -> None:
    z = tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (z * z).backward(tensor([1j, 1 + 1j]))
    assert z.grad is not None and z.grad.tolist() == [1j * (2 - 4j), (1 + 1j) * (6 + 2j)]
    x, y = tensor([[1.0, 2.0]], requires_grad=True), tensor([[3.0], [4.0]], requires_grad=True)
    (x * y).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[7.0, 7.0]]
    assert y.grad is not None and y.grad.tolist() == [[3.0], [3.0]]
    again = x * y
    again.sum().backward()
    with pytest.raises(OperatorError, match="a second time"):
        again.sum().backward()


def test_both_gradients_of_a_product_come_from_one_call_or_one_is_left_out() -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = tensor([[1.0, 0.0], [2.0, 1.0]])
    (x @ y).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[1.0, 3.0], [1.0, 3.0]]
    (y @ x).sum().backward()
    assert x.grad.tolist() == [[4.0, 6.0], [2.0, 4.0]]


def test_the_second_gradient_of_a_leaf_is_added_in_place() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    x.exp().sum().backward()
    first = x.grad
    x.sum().backward()
    assert first is not None and x.grad is first


class _OnlyOnce:
    """True when it is first asked: a count that falls to 0 right then, as where a tensor is collected."""

    def __init__(self) -> None:
        self.asked = 0

    def __bool__(self) -> bool:
        self.asked += 1
        return self.asked == 1


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.sqrt(), lambda x: x.sum(), lambda x: x * x, lambda x: call("cat", ([x, x],), {}),
        lambda x: x.chunk(2)[0], lambda x: x.max(0)[0], lambda x: x.reshape(-1), lambda x: x.clamp_(0.0, 1.0),
    ],
)  # fmt: skip
def test_nothing_is_recorded_for_tensors_that_ask_for_nothing(
    use: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor where the last view of written memory dies while an operator begins."""
    x = tensor([[0.5, 2.0], [1.0, 3.0]])
    use(x.clone())
    watched = _OnlyOnce()
    monkeypatch.setattr(HOOKS, "rebased", watched)
    result = use(x)
    monkeypatch.undo()
    assert watched.asked
    assert not result.requires_grad
