"""Plans that call the library on bare arrays give what they give in mode "off", whose functions are numpy's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.values.tensor import Tensor
from engine.executor.plans.executor import executor_of
from engine.fuser.backend import tiering
from engine.fuser.library import serving

pytestmark = pytest.mark.usefixtures("plans_at_once")

PROGRAMS = (
    "x + y", "x - 2 * y", "(x * y).relu()", "x / 3", "-x", "x.abs() + 1", "x > y", "x == 1", "torch.where(x > y, x, y)",
    "x.clamp(0, 1)", "x.masked_fill(x > 0, 2)", "x.sum()", "x.sum(-1)", "x.mean(0, True)", "x.amax(-1)",
    "(x + y).softmax(-1)", "torch.layer_norm(x, [x.size(-1)]) * y", "torch.cat([x, y], 0)", "torch.stack([x, y], -1)",
    "torch.cat([x, -y], -1).sigmoid()", "torch.nn.functional.linear(x, y)", "(x @ y.t()).tanh()", "(x + y).t() * 2.5",
    "x.add_(y) * 2", "(x * y).exp_().neg_()", "(x + 1).mul_(x).sum(0)", "torch.nn.functional.gelu(x) + x[0]",
    "(x + y).chunk(2, -1)[0] * 3", "x.expand([2, x.size(0), x.size(1)]) + y", "(x * 1e40) + y", "x.sum() * y.sum()",
)  # fmt: skip
DTYPES = ("f4", "f8", "i8", "i4", "u1", "?", "f2", "c8")


def operands(dtype: str) -> Iterator[tuple[Any, Any]]:
    """Two arrays of a dtype, in all sizes and orders."""
    random = np.random.default_rng(3)
    for shape in ((4, 4), (4, 1), (0, 4), (1, 4)):
        numbers = random.normal(0, 2, (2, *shape))
        numbers.flat[: numbers.size // 7] = np.nan if dtype[0] in "fc" else 0
        with np.errstate(invalid="ignore"):
            x, y = numbers.astype(dtype)
        yield x, y
        yield np.asfortranarray(x), y
        yield x.T.copy().T, np.asfortranarray(y)
        yield np.repeat(x, 2, -1)[:, ::2], np.broadcast_to(y[:1], y.shape)
        yield x, y[:1, :1]
    yield x[0, 0, ...], y
    yield x[0, 0, ...], y[0, 0, ...]


def outcome(function: Any, given: tuple[Any, Any]) -> list[Any]:
    """What a call gives, and what it makes of its arguments; the type and text of an error."""
    tensors = [Tensor(each) for each in given]
    try:
        result = function(*tensors)
    except RuntimeError as error:
        return [type(error).__name__, str(error).partition("RuntimeError")[2]]
    return [each.array for each in (result, *tensors)]


def compiled(expression: str) -> Any:
    return torch.jit.CompilationUnit(f"def f(x, y):\n    return {expression}\n").f


def agree(found: list[Any], wanted: list[Any], dtype: str) -> None:
    assert len(found) == len(wanted), (found, wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, str):
            assert one == other
            continue
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.strides == other.strides or one.size < 2
        exact = other.dtype.kind in "iub"
        tolerance = 0 if exact else 2e-3 if dtype == "f2" else 3e-6
        assert np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("expression", PROGRAMS)
@pytest.mark.usefixtures("library")
def test_results_are_those_of_mode_off(expression: str, dtype: str) -> None:
    f, g = compiled(expression), compiled(expression)
    found = [outcome(f, each) for each in operands(dtype)]
    tiering.set_mode("off")
    wanted = [outcome(g, each) for each in operands(dtype)]
    for one, other in zip(found, wanted, strict=True):
        agree(one, other, dtype)


X = np.linspace(-1, 1, 12, dtype="f4").reshape(3, 4)


def source_of(function: Any) -> str:
    return str(executor_of(function._function).plans[-1].source)


@pytest.mark.usefixtures("library")
def test_plans_call_functions_of_the_library() -> None:
    f = compiled("torch.cat([torch.relu(x * y), x], 0).softmax(-1)")
    outcome(f, (X, X))
    lines = source_of(f)
    assert "multiply" not in lines and "turned" not in lines and lines.count("new(Tensor)") == 1
    for name in ("mul", "relu", "cat", "softmax"):
        assert f" = {name}_" in lines


@pytest.mark.usefixtures("library")
def test_in_mode_off_plans_are_numpys_also_those_that_were_made_before() -> None:
    expression = "(x * y).tanh().exp() / 3"
    f = compiled(expression)
    native = outcome(f, (X, X))
    tiering.set_mode("off")
    wanted = outcome(compiled(expression), (X, X))
    assert np.array_equal(outcome(f, (X, X))[0], wanted[0])
    g = compiled(expression)
    outcome(g, (X, X))
    assert "multiply" in source_of(g)
    tiering.set_mode("background")
    for each in (f, g):
        agree(outcome(each, (X, X)), native, "f4")


@pytest.mark.usefixtures("library")
def test_entries_leave_to_python_what_is_not_theirs() -> None:
    op = table.find("aten::mul.Tensor")
    assert op is not None
    left: list[Any] = []
    entry = serving.array_entry(op, lambda *args: left.append(args))
    assert entry is not None and type(entry(X, X)) is np.ndarray and not left
    assert type(entry(X[0, 0, ...], X[0, 0, ...])) is np.ndarray
    assert entry(X, X.astype("f8")).dtype == np.float64 and not left
    assert entry(X.astype("c8"), X.astype("c8")).dtype == np.complex64 and not left
    for args in ((X, X[:, :3]), (X, X.astype(">f4")), (X.astype("O"), X)):
        entry(*args)
    assert len(left) == 3
    tiering.set_mode("off")
    entry(X, X)
    assert len(left) == 4 and serving.array_entry(op, print) is None


@pytest.mark.usefixtures("library")
def test_operators_without_an_entry_are_numpys() -> None:
    for name in ("aten::add_.Tensor", "aten::add.out", "aten::nonzero", "aten::view"):
        op = table.find(name)
        assert op is not None and serving.array_entry(op, print) is None
