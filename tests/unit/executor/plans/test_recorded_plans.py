"""Plans that record gradients: the same gradients and errors as the interpreter's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from engine.aten.autograd import engine, saving
from engine.aten.values.tensor import Tensor, tensor
from engine.executor.calls.call import call_function
from engine.executor.plans.switches import optimized_execution
from engine.frontend.compilation.compile import compile_source
from engine.ir.unit import Function
from engine.lang.errors import OperatorError

PROGRAMS = {
    "chain": "def f(x: Tensor, y: Tensor):\n    return torch.exp(torch.tanh(x * y + x)) / 2.0\n",
    "views": "def f(x: Tensor, y: Tensor):\n    return x.t().mm(y[1:, :].t().select(1, 0).unsqueeze(1)).view([-1])\n",
    "cat": "def f(x: Tensor, y: Tensor):\n    z = torch.relu(x)\n    return torch.cat([z, y, z], 1)\n",
    "chunk": "def f(x: Tensor, y: Tensor):\n    a, b = torch.sigmoid(x + y).chunk(2, 1)\n    return a * b.exp()\n",
    "two": "def f(x: Tensor, y: Tensor):\n    a = torch.exp(x)\n    b = a * y\n    return a, b\n",
    "branch": (
        "def f(x: Tensor, y: Tensor):\n    a = x * y\n    if a.dim() == 2 and a.size(0) > 1:\n        a = a.sin() + a\n"
        "    return a * 3\n"
    ),
    "check": (
        "def f(x: Tensor, y: Tensor):\n    a = x * y\n    if a.dim() != 2:\n        raise ValueError('no')\n"
        "    return a.cos() * a\n"
    ),
    "loop": (
        "def f(x: Tensor, y: Tensor):\n    for i in range(int(x.size(0))):\n        x = torch.tanh(x * y) + x\n"
        "    return x\n"
    ),
    "norm": "def f(x: Tensor, y: Tensor):\n    return torch.layer_norm(x, [2], y[0], y[1]) * x\n",
    "softmax": "def f(x: Tensor, y: Tensor):\n    return torch.log_softmax(x @ y, 1) + torch.softmax(y, 0)\n",
    "several": "def f(x: Tensor, y: Tensor):\n    v, i = torch.max(x * y, 1)\n    return v * 2, i\n",
    "questions": "def f(x: Tensor, y: Tensor):\n    return (x * y > 0.1).float() * x + torch.where(x > y, x, y * y)\n",
    "still": "def f(x: Tensor, y: Tensor):\n    return torch.dropout(x * y, 0.5, False).exp()\n",
    "write": "def f(x: Tensor, y: Tensor):\n    a = x * y\n    b = a.exp()\n    a.mul_(2)\n    return a + b\n",
    "attended": (
        "def f(x: Tensor, y: Tensor):\n    a = torch.nn.functional.scaled_dot_product_attention(x * 1.0, y, x)\n"
        "    return a.sum(0)\n"
    ),
    "padded": (
        "def f(x: Tensor, y: Tensor):\n    a = torch.nn.functional.pad(x * y, [1, 1], mode='reflect')\n"
        "    return a.exp() * 2\n"
    ),
    "sum of ints": "def f(x: Tensor, y: Tensor):\n    return (x * y).sum(dtype=torch.int64).to(torch.float32) + x\n",
}  # fmt: skip


def leaves() -> tuple[Tensor, Tensor]:
    random = np.random.default_rng(3)
    x, y = (random.uniform(0.1, 1.0, (2, 2)).astype("f4") for _ in range(2))
    return tensor(x, requires_grad=True), tensor(y, requires_grad=True)


def tensors(result: Any) -> list[Tensor]:
    return [*result] if isinstance(result, (tuple, list)) else [result]


def gradients(function: Function, needs_y: bool = True) -> tuple[list[Any], list[Any]]:
    """The results of a call, and the gradients of their weighted sum."""
    x, y = leaves()
    y.requires_grad = needs_y
    found = tensors(call_function(function, (x, y)))
    told = [(each.array.tolist(), each.requires_grad) for each in found]
    for place, each in enumerate(found):
        if each.requires_grad:
            engine.backward([each], [tensor(np.full(each.array.shape, 1.5 + place, "f4"))], retain_graph=True)
    return told, [None if leaf.grad is None else leaf.grad.array.tolist() for leaf in (x, y)]


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("needs_y", [True, False])
def test_gradients_are_the_interpreters(name: str, needs_y: bool) -> None:
    function = compile_source(PROGRAMS[name]).functions["f"]
    with optimized_execution(False):
        expected = gradients(function, needs_y)
    for _ in range(3):
        assert gradients(function, needs_y) == expected


def test_without_need_nothing_is_noted() -> None:
    function = compile_source(PROGRAMS["chain"]).functions["f"]
    x, y = (each.detach() for each in leaves())
    result = call_function(function, (x, y))
    assert result.grad_fn is None and not result.requires_grad


def test_gradients_of_gradients() -> None:
    function = compile_source(PROGRAMS["chain"]).functions["f"]

    def second() -> Any:
        x, y = leaves()
        (first,) = engine.grad([call_function(function, (x, y)).sum()], [x], create_graph=True)
        assert first is not None
        first.sum().backward()
        assert x.grad is not None and y.grad is not None
        return x.grad.array.tolist(), y.grad.array.tolist()

    with optimized_execution(False):
        expected = second()
    assert second() == expected


def test_a_result_between_has_its_own_gradient() -> None:
    function = compile_source(PROGRAMS["two"]).functions["f"]
    x, y = leaves()
    a, b = call_function(function, (x, y))
    (of_a,) = engine.grad([b.sum()], [a], retain_graph=True)
    assert of_a is not None
    assert of_a.array.tolist() == y.array.tolist()
    seen: list[Any] = []
    a.register_hook(lambda gradient: seen.append(gradient.array.tolist()))
    a.retain_grad()
    b.sum().backward()
    assert seen[-1] == a.grad.array.tolist() == y.array.tolist()


def test_a_second_pass_is_refused_as_ever() -> None:
    x, y = leaves()
    result = call_function(compile_source(PROGRAMS["chain"]).functions["f"], (x, y)).sum()
    result.backward()
    with pytest.raises(OperatorError, match="a second time"):
        result.backward()


@pytest.mark.parametrize("written", ["input", "result"])
def test_writes_after_the_call_are_noticed(written: str) -> None:
    function = compile_source("def f(x: Tensor, y: Tensor):\n    return torch.exp(x * y)\n").functions["f"]
    x, y = leaves()
    x = x * 1.0
    result = call_function(function, (x, y))
    (x if written == "input" else result).detach().mul_(2)
    with pytest.raises(OperatorError, match="modified by an inplace operation"):
        result.sum().backward()


def test_a_history_that_changes_after_the_call_is_not_the_calls() -> None:
    function = compile_source("def f(x: Tensor):\n    return x + 1.0\n").functions["f"]
    x, _ = leaves()
    middle = x * 2.0
    result = call_function(function, (middle,))
    middle.mul_(100.0)
    result.sum().backward()
    assert x.grad is not None
    assert x.grad.array.tolist() == [[2.0, 2.0], [2.0, 2.0]]


@contextmanager
def packing(seen: list[Any]) -> Iterator[None]:
    def pack(saved: Tensor) -> Tensor:
        seen.append(saved.array.shape)
        return saved

    with saving.saved_tensors_hooks(pack, lambda saved: saved):
        yield


def test_hooks_for_saved_tensors_are_called_while_the_program_runs() -> None:
    function = compile_source(PROGRAMS["chain"]).functions["f"]
    seen: list[Any] = []
    with packing(seen):
        result = call_function(function, leaves())
    assert seen and result.requires_grad


def test_a_dropout_that_drops_hands_back_what_it_kept() -> None:
    function = compile_source("def f(x: Tensor):\n    return torch.dropout(x * 1.0, 0.5, True) * 1.0\n").functions["f"]
    x = tensor(np.ones((8, 8), "f4"), requires_grad=True)
    result = call_function(function, (x,))
    result.sum().backward()
    assert x.grad is not None
    assert x.grad.array.tolist() == result.array.tolist()
    assert {0.0, 2.0} == set(np.unique(result.array).tolist())


@pytest.mark.parametrize("shape", [(2, 3, 6), (3, 6)])
def test_convolutions_with_and_without_a_batch(shape: tuple[int, ...]) -> None:
    text = "def f(x: Tensor, w: Tensor, b: Tensor):\n    return torch.relu(torch.conv1d(x, w, b, [1], [1])) * 2\n"
    check(text, shape, (4, 3, 3), (4,))


def test_a_step_of_an_lstm() -> None:
    text = (
        "def f(x: Tensor, h: Tensor, c: Tensor, w: Tensor, v: Tensor, b: Tensor):\n"
        "    a, d = torch.lstm_cell(x, [h, c], w, v, b, b)\n    return a * d\n"
    )
    check(text, (2, 3), (2, 4), (2, 4), (16, 3), (16, 4), (16,))


def check(text: str, *shapes: tuple[int, ...]) -> None:
    """The plan gives what the interpreter gives, gradients included."""
    function = compile_source(text).functions["f"]

    def run() -> list[Any]:
        return _run(function, shapes)

    with optimized_execution(False):
        expected = run()
    for found, wanted in zip(run(), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def _run(function: Function, shapes: tuple[tuple[int, ...], ...]) -> list[Any]:
    random = np.random.default_rng(5)
    given = [tensor(random.normal(size=shape).astype("f4"), requires_grad=True) for shape in shapes]
    result = call_function(function, tuple(given))
    result.sum().backward()
    return [result.array, *(each.grad.array for each in given if each.grad is not None)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("torch.native_layer_norm(x, [3], None, None, 1e-5)", [True, False, False]),
     ("torch.linalg.lu(x)", [False, True, True]), ("torch.linalg.cholesky_ex(x @ x.t())", [True, False])],
)  # fmt: skip
def test_results_without_a_gradient_have_no_history(text: str, wanted: list[bool]) -> None:
    program = compile_source(f"def f(x: Tensor):\n    y = {text}\n    return y\n").functions["f"]
    x = Tensor(np.eye(3) + 0.5, requires_grad=True)
    for _ in range(2):
        assert [part.requires_grad for part in call_function(program, (x,), {})] == wanted
