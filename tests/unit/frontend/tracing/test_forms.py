"""In which form operators are recorded: what the graph says where it is not what ran."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as torch
import engine.torch as facade
from engine.torch import nn
from engine.torch.nn import functional as F

X = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
N = torch.arange(6).view(2, 3)


def operators(function: Callable[..., Any], *examples: Any) -> str:
    """The operators of the traced function, with their constants, one after the other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        traced = torch.jit.trace(function, examples, check_trace=False)
    text = traced.code.partition("\n")[2].replace("\n", " ")
    return " ".join(re.findall(r"torch\.(\w+)\(", text))


FORMS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: (x.T, x.mT, x.H, x.mH), "numpy_T mT matrix_H mH"),
    (lambda x: x[...], "alias"),
    (lambda x: x[[0, 1]], "to index"),
    (lambda x: x + torch.as_tensor([1, 2, 3]), "to add"),
    (lambda x: x + torch.tensor([1, 2, 3]), "to add detach"),
    (lambda x: x + x.new_tensor([1.0]), "to add detach"),
    (lambda x: x + torch.from_numpy(np.ones(3, np.float32)), "lift_fresh add"),
    (lambda x: x + torch.tensor(np.ones(3, np.float32)), "to lift_fresh device add detach"),
    (lambda x: x.norm() + torch.norm(x, 1, 1) + x.norm(2, -1, keepdim=True), "linalg_vector_norm"),
    (lambda x: x.split([1, 2], 1)[0], "split_with_sizes"),
    (lambda x: F.conv1d(x[None], torch.ones(1, 2, 1)), "unsqueeze ones device _convolution"),
]


@pytest.mark.parametrize(("function", "expected"), FORMS, ids=[expected for _, expected in FORMS])
def test_forms(function: Callable[[Any], Any], expected: str) -> None:
    found = operators(function, X).split()
    assert set(found) - {"add", "device"} == set(expected.split()) - {"add", "device"}


def graph_of(function: Callable[..., Any], *examples: Any) -> str:
    return re.sub(r" # .*", "", str(torch.jit.trace(function, examples, check_trace=False).graph))


def test_numbers_are_tensors_in_the_graph_and_promote_as_numbers() -> None:
    def f(x: Any) -> Any:
        return x * 2 + 1.5

    traced = torch.jit.trace(f, N)
    assert "Double(requires_grad=0, device=cpu) = prim::Constant[value={1.5}]()" in str(traced.graph)
    for x in (N, N.float(), N.half(), N.double()):
        assert traced(x).dtype == f(x).dtype


def test_numbers_promote_as_numbers_after_loading(tmp_path: Any) -> None:
    traced = torch.jit.trace(lambda x: x / 3 + 0.5, N)
    traced.save(tmp_path / "f.pt")
    assert torch.load(tmp_path / "f.pt")(N).dtype == torch.float32


def test_conversions_name_all_that_is_kept() -> None:
    text = graph_of(lambda x: x.to("cpu") * x.to(x) + x.cpu(), X)
    assert text.count("aten::to(") == 3
    assert "aten::cpu" not in text


def test_statistics_of_whole_tensors_have_a_correction() -> None:
    text = graph_of(lambda x: (x.std(), x.std(unbiased=False), x.var(1)), X)
    calls = [line.count("%") for line in text.splitlines() if "aten::std(" in line or "aten::var(" in line]
    assert calls == [5, 3, 5]


def test_operands_of_reflected_operators_keep_their_names_for_later() -> None:
    def f(x: Any) -> Any:
        below = x - 1
        above = 2 - below
        return above, above * 2

    assert "%above : " in graph_of(f, X)
    assert "%below : " not in graph_of(f, X)


def test_constants_are_shown_as_the_original_shows_them() -> None:
    kept = torch.tensor([[0.5, -1.25], [2.0, 3.0]])
    text = graph_of(lambda x: x @ kept, X[:, :2])
    assert "prim::Constant[value= 0.5000 -1.2500  2.0000  3.0000 [ CPUFloatType{2,2} ]]()" in text


def test_foreign_tensors_stay_where_they_are() -> None:
    kept = torch.ones(3)
    traced = torch.jit.trace(lambda x: x + kept, X, check_trace=False)
    kept.fill_(5.0)
    assert traced(X).tolist() == (X + 5).tolist()


def test_sizes_of_splits_become_constants() -> None:
    def f(x: Any) -> Any:
        first, _ = x.split(x.size(1) - 1, 1)
        return first

    with pytest.warns(torch.jit.TracerWarning, match="Python integer"):
        traced = torch.jit.trace(f, X)
    assert traced.code.count("torch.split(x, 2, 1)") == 1


def test_copies_of_tensors_are_followed() -> None:
    with pytest.warns(UserWarning, match="copied more clearly"):
        traced = torch.jit.trace(lambda x: x + torch.tensor(x.size(0)), X, check_trace=False)
    assert traced(torch.zeros(5, 3)).tolist() == [[5.0] * 3] * 5


def test_numbers_are_tensors_where_results_are_written_to() -> None:
    text = graph_of(lambda x: torch.add(x, 1, out=torch.empty(2, 3)), X)
    assert "prim::Constant[value={1}]()" in text


def test_counts_of_elements_stay_dynamic() -> None:
    traced = torch.jit.trace(lambda x: x + x.nelement(), X)
    assert traced(torch.zeros(2, 2)).tolist() == [[4.0, 4.0], [4.0, 4.0]]


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "range": lambda x: sum(x[i] for i in range(x.size(0))),
    "index": lambda x: x * [1, 2, 3, 4, 5][x.shape[0]],
    "slice": lambda x: x + sum([1, 2, 3, 4, 5][: x.shape[0]]),
    "equal": lambda x: x * torch.equal(x, X),
    "allclose": lambda x: x * torch.allclose(x, X),
    "is_same_size": lambda x: x * x.is_same_size(X),
    "stride": lambda x: x * x.stride(0),
    "strides": lambda x: x * x.stride()[0],
    "text of a size": lambda x: x * len(str(x.shape[0])),
    "text of a count": lambda x: x * len("%s" % x.numel()),  # noqa: UP031
    "text of elements": lambda x: x * len(repr(x)),
    "formatted": lambda x: x * len(f"{x.sum():.1f}"),
    "new tensor of sizes": lambda x: x.new_tensor([x.shape[0], 2.0]),
    "new tensor of all sizes": lambda x: x.new_tensor(x.shape),
    "new tensor of elements": lambda x: x.new_tensor([x[0, 0], x[0, 1]]),
    "constructor of sizes": lambda x: x + facade.FloatTensor([x.shape[0]]),
    "constructor of elements": lambda x: x + facade.FloatTensor([x[0, 0]]),
    "sizes of a constructor": lambda x: facade.Tensor(x.shape[0], 2).zero_() + 1,
    "sizes of a constructor of a dtype": lambda x: facade.FloatTensor(x.shape[0], 2).zero_() + 1,
    "sizes of new": lambda x: x.new(x.shape[0], 2).zero_(),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_python_that_depend_on_tensors_warn(name: str) -> None:
    with pytest.warns(torch.jit.TracerWarning, match="Converting a tensor to"):
        torch.jit.trace(NUMBERS[name], X, check_trace=False)


@pytest.mark.parametrize("dtype", [None, torch.float64], ids=str)
def test_new_tensors_follow_the_tensor_that_they_copy(dtype: Any) -> None:
    traced = torch.jit.trace(lambda x: x.new_tensor(x * 2, dtype=dtype), X, check_trace=False)
    assert traced(torch.ones(4)).tolist() == [2.0] * 4
    assert traced(torch.ones(4)).dtype == dtype or dtype is None


def test_shapes_print_as_numbers() -> None:
    told: list[str] = []
    torch.jit.trace(lambda x: (told.append(f"{x.shape} {x[0].size()!r}"), x * 2)[1], X, check_trace=False)
    assert told == ["torch.Size([2, 3]) torch.Size([3])"]


def test_constructors_take_sizes_that_are_tensors() -> None:
    n = torch.tensor(2)
    made = [facade.Tensor(n, 3), facade.FloatTensor(3, n), torch.ones(1).new(n, n), facade.Tensor(torch.Size([2]))]
    assert [tuple(each.shape) for each in made] == [(2, 3), (3, 2), (2, 2), (2,)]


@pytest.mark.parametrize("name", ["dim", "is_floating_point", "is_contiguous", "element_size", "storage_offset"])
def test_numbers_that_belong_to_a_kind_of_tensor_do_not_warn(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.jit.trace(lambda x: x + getattr(x, name)(), X, check_trace=False)


class Buffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(3, 4), nn.GRUCell(4, 4), nn.RNNCell(4, 4, nonlinearity="relu")

    def forward(self, x):  # type: ignore[no-untyped-def]
        h, c = self.lstm(x)
        return self.rnn(self.gru(h, c))


def test_cells_are_the_operators_that_they_consist_of() -> None:
    module = Buffer()
    traced = torch.jit.trace(module, X)
    kinds = {node.kind for node in traced.inlined_graph.all_nodes()}
    assert {"aten::unsafe_chunk", "aten::sigmoid_", "aten::relu"} <= kinds
    assert not kinds & {"aten::lstm_cell", "aten::gru_cell", "aten::rnn_relu_cell"}
    other = torch.randn(5, 3)
    assert bool((traced(other) - module(other)).abs().max() < 1e-5)


# ------------------------------------------------------------------ results


def test_results_have_to_come_from_the_inputs() -> None:
    kept = torch.ones(3)
    with pytest.raises(RuntimeError, match="data dependence"):
        torch.jit.trace(lambda x: (x, kept), X)


@pytest.mark.parametrize("result", [lambda x: {"a": [x]}, lambda x: {"a": {"b": x}}])
def test_dicts_hold_tensors(result: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match="only outputs matching Dict"):
        torch.jit.trace(result, X, strict=False)
    assert torch.jit.trace(lambda x: {"a": (x, x + 1)}, X, strict=False) is not None
