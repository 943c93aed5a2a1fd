"""Backward passes: what is recorded, what is refused, what is freed."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as torch
from engine.aten.autograd import gradcheck, gradgradcheck
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError

Run = Callable[[], Any]


def leaf(*values: float) -> Tensor:
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


def gradient(result: Tensor, of: Tensor) -> list[float]:
    (found,) = torch.autograd.grad(result.sum(), of, retain_graph=True)
    listed: list[float] = found.tolist()
    return listed


# ------------------------------------------------------------------ recording


def test_gradients_of_all_uses_add_up() -> None:
    x = leaf(2.0, 3.0)
    (x * x + x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [5.0, 7.0]
    (x * 2).sum().backward()
    assert x.grad.tolist() == [7.0, 9.0]


def test_a_gradient_has_memory_of_its_own() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    x.grad.mul_(10)
    assert y.grad.tolist() == [1.0, 1.0]


def test_broadcast_arguments_get_summed_gradients_in_their_dtype() -> None:
    x = torch.tensor([2.0], requires_grad=True)
    (x * torch.ones([3, 4], dtype=torch.float64)).sum().backward()
    assert (x.grad.tolist(), x.grad.dtype) == ([12.0], torch.float32)


def test_what_needs_no_gradient_records_nothing() -> None:
    x, y = leaf(1.0), torch.tensor([2.0])
    assert (y * y).grad_fn is None
    assert (x > 0).grad_fn is None
    assert x.to(torch.int64).grad_fn is None
    assert torch.zeros_like(x).grad_fn is None
    assert x.detach().grad_fn is None
    assert x.argmax().requires_grad is False


def test_nodes_have_names_and_edges() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    assert y.grad_fn.name() == "MulBackward0"
    assert repr(y.grad_fn).startswith("<MulBackward0 object at ")
    ((accumulate, place),) = y.grad_fn.next_functions
    assert (accumulate.name(), place) == ("torch::autograd::AccumulateGrad", 0)
    assert (y + x).grad_fn.next_functions[1][0] is accumulate
    assert "grad_fn=<MulBackward0>" in repr(y)


def test_results_of_several_outputs_know_their_number() -> None:
    x = torch.tensor([[1.0, 5.0], [7.0, 3.0]], requires_grad=True)
    values, places = x.max(1)
    assert values.requires_grad
    assert not places.requires_grad
    parts = x.unbind(0)
    assert [p.output_nr for p in parts] == [0, 1]
    parts[1].sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_deep_graphs_need_no_stack() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_complex_gradients_are_conjugates() -> None:
    x, y = leaf(0.5, -1.0), leaf(2.0, 0.25)
    assert gradcheck(lambda a, b: torch.view_as_real(torch.complex(a, b) ** 2 * 3), [x, y])


# ------------------------------------------------------------------ switches


def test_no_grad_is_a_context_and_a_decorator() -> None:
    x = leaf(1.0)

    @torch.no_grad()
    def with_call() -> Tensor:
        return x * 2

    @torch.no_grad
    def without_call() -> Tensor:
        with torch.enable_grad():
            assert (x * 2).requires_grad
        return x * 2

    with torch.no_grad():
        assert not torch.is_grad_enabled()
        assert not (x * 2).requires_grad
    assert not with_call().requires_grad
    assert not without_call().requires_grad
    assert torch.is_grad_enabled()


def test_set_grad_enabled_works_at_once_and_as_a_context() -> None:
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)


def test_inference_mode_records_nothing_and_says_so() -> None:
    x = leaf(1.0)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled()
        assert not (x * 2).requires_grad
    assert not torch.is_inference_mode_enabled()


def test_the_switch_belongs_to_its_thread() -> None:
    seen: list[bool] = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


# ------------------------------------------------------------------ writes and views


def test_a_write_makes_the_values_that_a_formula_needs_unusable() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    total = (y * y).sum()
    y.add_(1)
    with pytest.raises(OperatorError, match=r"modified by an inplace operation.*is at version 1; expected version 0"):
        total.backward()


def test_a_write_to_what_only_gave_its_shape_is_allowed() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 3
    part = y[1:]
    total = part.sum()
    y.add_(1)
    total.backward()
    assert x.grad.tolist() == [0.0, 3.0, 3.0]


def test_in_place_operators_change_the_history() -> None:
    x, w = leaf(2.0, 3.0), leaf(5.0, 7.0)
    y = x * 1
    y.mul_(w)
    y.exp_()
    expected = np.exp(x.detach().numpy() * w.detach().numpy())
    np.testing.assert_allclose(gradient(y, x), expected * w.detach().numpy())
    np.testing.assert_allclose(gradient(y, w), expected * x.detach().numpy())


def test_a_write_to_a_view_reaches_its_base() -> None:
    x = leaf(1.0, 2.0)
    base = torch.zeros([2, 3], dtype=torch.float64)
    other = base[1]
    base[0, :2].copy_(x * 5)
    base.t()[2].add_(x.sum())
    assert base.grad_fn.name() == "CopySlices"
    assert other.requires_grad
    assert gradient(base, x) == [7.0, 7.0]
    assert gradient(other, x) == [1.0, 1.0]


def test_views_from_before_a_write_see_it_in_operators() -> None:
    x = leaf(3.0)
    base = torch.zeros([2], dtype=torch.float64)
    early = base[0]
    base.add_(x)
    result = early * 2
    assert HOOKS.rebased == 1
    assert gradient(result, x) == [2.0]
    del base, early, result
    gc.collect()
    assert HOOKS.rebased == 0


def test_the_gradient_of_what_was_overwritten_is_zero() -> None:
    x, y = leaf(1.0, 2.0, 3.0), leaf(4.0)
    z = x * 2
    z[1:2] = y * 10
    assert gradient(z, x) == [2.0, 0.0, 2.0]
    assert gradient(z, y) == [10.0]


def test_tensors_that_become_other_views_of_themselves() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    y = x * torch.tensor([[1.0, 10.0, 100.0]])
    y.t_()
    y.squeeze_(1)
    assert gradient(y, x) == [[1.0, 10.0, 100.0]]


def test_detach_shares_memory_and_its_version() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    total = (y * y).sum()
    y.detach().add_(1)
    with pytest.raises(OperatorError, match="modified by an inplace operation"):
        total.backward()
    y.detach_()
    assert y.is_leaf
    assert not y.requires_grad


def views_of_many() -> None:
    a, _ = (leaf(1.0, 2.0) * 1).chunk(2)
    a.mul_(2)


def view_made_without_recording() -> None:
    h = leaf(1.0, 2.0) * 1
    with torch.no_grad():
        part = h[0:1]
    part.mul_(leaf(1.0))


def leaf_used_twice() -> None:
    total = (leaf(1.0).exp()).sum()
    total.backward()
    total.backward()


REFUSALS: dict[str, Run] = {
    "a leaf Variable that requires grad is being used": lambda: leaf(1.0).add_(1),
    "a view of a leaf Variable that requires grad": lambda: leaf(1.0, 2.0)[0].add_(1),
    "function that returns multiple views": views_of_many,
    "A view was created in no_grad mode": view_made_without_recording,
    r"add\(\): functions with out=... arguments": lambda: torch.add(leaf(1.0), 1, out=torch.zeros([1])),
    "grad can be implicitly created only for scalar outputs": lambda: (leaf(1.0, 2.0) * 2).backward(),
    "Trying to backward through the graph a second time": leaf_used_twice,
    "element 0 of tensors does not require grad": lambda: torch.zeros([1]).backward(),
    "Only Tensors of floating point": lambda: torch.tensor([1]).requires_grad_(),
    "you can only change requires_grad flags of leaf": lambda: (leaf(1.0) * 2).requires_grad_(False),
    "One of the differentiated Tensors does not": lambda: torch.autograd.grad(leaf(1.0).sum(), torch.zeros([1])),
    "appears to not have been used in the graph": lambda: torch.autograd.grad(leaf(1.0).sum(), leaf(1.0)),
    "Mismatch in shape": lambda: (leaf(1.0) * 2).backward(torch.ones([3])),
    "attempting to assign a gradient of size": lambda: setattr(leaf(1.0), "grad", torch.ones([3])),
    "cannot register a hook": lambda: torch.zeros([1]).register_hook(print),
    "can't retain_grad": lambda: torch.zeros([1]).retain_grad(),
    "Can't detach views in-place": lambda: (leaf(1.0, 2.0) * 1)[0].detach_(),
    "derivative for aten::floor_divide is not implemented": lambda: torch.floor_divide(leaf(1.0), 2).sum().backward(),
    "requires grad.": lambda: leaf(1.0).numpy(),
}


@pytest.mark.parametrize("message", REFUSALS)
def test_refusals(message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        REFUSALS[message]()


# ------------------------------------------------------------------ passes


def test_a_graph_can_be_kept() -> None:
    x = leaf(2.0)
    total = (x * x).sum()
    total.backward(retain_graph=True)
    total.backward()
    assert x.grad.tolist() == [8.0]


def test_gradients_of_gradients() -> None:
    x = leaf(2.0)
    (first,) = torch.autograd.grad((x**4).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    assert (first.item(), second.item(), third.item()) == (32.0, 48.0, 48.0)


def test_results_that_formulas_read_keep_their_history() -> None:
    x = leaf(0.5)
    (first,) = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
    first.sum().backward()
    np.testing.assert_allclose(x.grad.item(), np.exp(0.5))


def test_grad_leaves_grad_alone_and_finds_inner_tensors() -> None:
    x = leaf(1.0, 2.0)
    h = x * 2
    found = torch.autograd.grad((h * h).sum(), [h, x])
    assert [g.tolist() for g in found] == [[4.0, 8.0], [8.0, 16.0]]
    assert x.grad is None


def test_unused_inputs() -> None:
    x, y = leaf(1.0), leaf(1.0)
    assert torch.autograd.grad(x.sum(), [x, y], allow_unused=True)[1] is None
    assert torch.autograd.grad(x.sum(), [x, y], materialize_grads=True)[1].tolist() == [0.0]


def test_backward_to_chosen_inputs_only() -> None:
    x, y = leaf(1.0), leaf(2.0)
    h = x * 3
    (h * y).sum().backward(inputs=[h, y])
    assert (x.grad, h.grad.tolist(), y.grad.tolist()) == (None, [2.0], [3.0])


def test_hooks_see_and_replace_gradients() -> None:
    x = leaf(1.0)
    h = x * 2
    seen: list[float] = []
    handle = h.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(g.item()))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    h.sum().backward(retain_graph=True)
    handle.remove()
    h.sum().backward()
    assert seen == [20.0, 20.0, 2.0, 22.0]


def test_inner_gradients_are_kept_on_request() -> None:
    x = leaf(1.0)
    h = x * 2
    h.retain_grad()
    assert h.retains_grad
    (h * 5).sum().backward()
    assert h.grad.item() == 5.0


def test_the_graph_is_freed_after_the_pass() -> None:
    x = leaf(1.0, 2.0)
    h = x * 2
    inner, node = weakref.ref(h), weakref.ref(h.grad_fn)
    total = h.exp().sum()
    del h
    total.backward()
    assert inner() is None
    del total
    assert node() is None


def test_a_graph_without_a_pass_is_freed_without_the_collector() -> None:
    x = leaf(1.0, 2.0)
    gc.disable()
    try:
        h = x.exp()
        node = weakref.ref(h.grad_fn)
        del h
        assert node() is None
    finally:
        gc.enable()


# ------------------------------------------------------------------ functions


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * x * factor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        assert ctx.needs_input_grad == (True, False)
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x * ctx.factor, None


def test_functions_with_gradients_of_their_own() -> None:
    x = leaf(2.0)
    y = Cube.apply(x, 10.0)
    assert y.grad_fn.name() == "CubeBackward"
    assert gradient(y, x) == [120.0]
    assert gradgradcheck(lambda t: Cube.apply(t, 2.0), [leaf(0.5, -1.5)])


def test_functions_may_write_and_return_several() -> None:
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(x: Tensor) -> tuple[Tensor, Tensor]:
            return x.add_(1), x.argmax()

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
            ctx.mark_dirty(inputs[0])
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx: Any, grad: Tensor, _: Tensor) -> Tensor:
            return grad * 7

    x = leaf(2.0)
    h = x * 1
    y, place = Both.apply(h)
    assert y is h
    assert not place.requires_grad
    assert gradient(y, x) == [7.0]


@pytest.mark.parametrize(
    ("returned", "message"),
    [((1, 2, 3), "returned an incorrect number of gradients"), (torch.ones([5]), "returned an invalid gradient")],
)
def test_functions_that_return_wrong_gradients(returned: Any, message: str) -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return returned

    with pytest.raises(OperatorError, match=message):
        Wrong.apply(leaf(1.0, 2.0)).sum().backward()


def test_once_differentiable_refuses_second_gradients() -> None:
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.once_differentiable
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * 2 * ctx.saved_tensors[0]

    x = leaf(3.0)
    (first,) = torch.autograd.grad(Once.apply(x), x, leaf(1.0), create_graph=True)
    assert first.item() == 6.0
    with pytest.raises(OperatorError, match="differentiate twice"):
        first.sum().backward()


def test_gradcheck_finds_a_wrong_gradient() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * 2

    assert not gradcheck(Doubled.apply, [leaf(1.0)], raise_exception=False)
    with pytest.raises(OperatorError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Doubled.apply, [leaf(1.0)])


# ------------------------------------------------------------------ programs


def test_programs_run_backward_passes_and_switch_recording() -> None:
    source = """
def f(x: Tensor):
    y = x.clone().requires_grad_(True)
    with torch.no_grad():
        w = y * 2
    (y * y).sum().backward()
    g = y.grad
    assert g is not None
    return g, w.requires_grad, torch.is_grad_enabled()
"""
    found, recorded, enabled = torch.CompilationUnit(source).f(torch.tensor([1.0, 2.0]))
    assert (found.tolist(), recorded, enabled) == ([2.0, 4.0], False, True)
