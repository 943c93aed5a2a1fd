"""Expressions over long arrays as loops give what numpy's steps give."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.dispatch import long_rows, table
from engine.aten.dispatch.long_rows import LongRows
from engine.aten.stepwise import elementary
from engine.aten.stepwise.language import COMPILER
from engine.fuser.backend import tiering
from engine.fuser.operators import loops

SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-20, -1e-20, 88.7, 88.75, 89.0, -87.0, -104.5, 1e30, -0.3)
EXACT: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "tanh": np.tanh,
    "log1p": np.log1p, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "sign": lambda x: np.where(np.isnan(x), 0, np.sign(x)), "relu": lambda x: np.maximum(x, 0),
}  # fmt: skip


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """Calls a function while there is no machine code for loops; elsewhere it comes at once."""
    tiering.wait()
    monkeypatch.setattr(tiering, "mode", lambda: "eager")

    def call(function: Callable[[], Any]) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(COMPILER, "request", None)
            return function()

    return call


def numbers(count: int = 30000, scale: float = 3.0, seed: int = 0) -> np.ndarray[Any, Any]:
    x = np.random.default_rng(seed).normal(0, scale, count).astype(np.float32)
    x[: len(SPECIAL)] = SPECIAL
    return x


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("scale", [0.01, 3.0, 30.0])
def test_functions_are_exact_to_three_units_in_the_last_place(name: str, scale: float, without: Any) -> None:
    x = numbers(scale=scale)
    if name == "log1p":
        x = np.maximum(x, np.float32(-0.5))
    found = LongRows(f"{name}(self)", ["self"], ["self"])(x)
    assert found is not None, loops.refused()
    with np.errstate(all="ignore"):
        wanted = EXACT[name](x.astype(np.float64))
        near = np.abs(found - wanted) <= 3 * np.spacing(np.abs(wanted).astype(np.float32))
        rounded = wanted.astype(np.float32)
    tiny = np.abs(wanted) < 1.2e-38
    assert np.all(near | tiny | (found == rounded) | (np.isnan(found) & np.isnan(wanted)))
    assert np.all(np.abs(found[tiny]) < 2e-38)


@pytest.mark.parametrize("name", ["erf", "erfinv"])
def test_fitted_functions_are_exact_to_a_few_units(name: str, without: Any) -> None:
    x = numbers(scale=0.5 if name == "erfinv" else 2.0)
    kept = torch.from_numpy(x[: 4 * 7000].reshape(4, -1))
    function = getattr(torch, name)
    found, wanted = function(kept).numpy(), without(lambda: function(kept.double())).numpy()
    np.testing.assert_allclose(found, wanted, rtol=6e-7)


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "tanh", "softplus", "erf", "erfinv", "sign"])
def test_the_definition_says_the_same(name: str, without: Any) -> None:
    x = numbers(scale=0.4)
    found = LongRows(f"{name}(self)", ["self"], ["self"])(x)
    assert found is not None
    with np.errstate(all="ignore"):
        defined = np.array([getattr(elementary, name)(each) for each in x[16:80]], np.float32)
    np.testing.assert_allclose(found[16:80], defined, rtol=3e-7)


OPERATORS: dict[str, Callable[..., Any]] = {
    **{name: lambda x, y, z, name=name: getattr(torch.nn.functional, name)(x) for name in (
        "silu mish hardsigmoid hardswish relu6 leaky_relu elu selu celu softplus logsigmoid gelu hardtanh "
        "softshrink".split())},
    "add": lambda x, y, z: x + y, "add with a factor": lambda x, y, z: torch.add(x, y, alpha=0.5),
    "lerp": lambda x, y, z: x.lerp(y, 0.25), "addcmul": lambda x, y, z: torch.addcmul(x, y, z, value=0.5),
    "sign": lambda x, y, z: x.sign(), "sigmoid": lambda x, y, z: x.sigmoid(), "erf": lambda x, y, z: x.erf(),
    "nan_to_num": lambda x, y, z: x.nan_to_num(1.5), "threshold": lambda x, y, z: torch.threshold(x, 0.5, 2),
    "prelu": lambda x, y, z: torch.prelu(x.reshape(10, 10, -1), z.reshape(-1)[:10]),
    "smooth_l1_loss": lambda x, y, z: torch.nn.functional.smooth_l1_loss(x, y, reduction="none", beta=0.7),
    "huber_loss": lambda x, y, z: torch.nn.functional.huber_loss(x, y, reduction="none", delta=0.7),
    "gelu by tanh": lambda x, y, z: torch.nn.functional.gelu(x.clamp(-3, 3), approximate="tanh"),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_on_long_arrays(name: str, dtype: str, without: Any) -> None:
    given = [torch.from_numpy(numbers(seed=i).reshape(100, -1)).to(getattr(torch, dtype)) for i in range(3)]
    found, wanted = OPERATORS[name](*given), without(lambda: OPERATORS[name](*given))
    assert found.dtype == wanted.dtype == getattr(torch, dtype)
    far = {"float32": 3e-6, "float64": 1e-14, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    np.testing.assert_allclose(found.double().numpy(), wanted.double().numpy(), rtol=far, atol=far / 10)


@pytest.mark.parametrize("name", ["silu", "gelu", "leaky_relu", "hardswish", "elu", "relu", "softplus"])
def test_gradients_on_long_arrays(name: str, without: Any) -> None:
    def gradient() -> Any:
        x = torch.from_numpy(numbers().clip(-5, 5)).requires_grad_(True)
        getattr(torch.nn.functional, name)(x[16:]).sum().backward()
        return x.grad.numpy()

    np.testing.assert_allclose(gradient(), without(gradient), rtol=3e-6, atol=3e-7)


def test_short_arrays_and_other_layouts_are_numpy_s(without: Any) -> None:
    rows = LongRows("self * self + other", ["self", "other"], ["self"])
    x = numbers(long_rows.LEAST)
    assert rows(x, 1.0) is not None
    assert rows(x[:-1], 1.0) is None
    assert rows(np.stack([x, x], 1)[:, 0], 1.0) is None
    assert rows(np.ones(long_rows.LEAST, np.int64), 1.0) is None
    assert rows(x, None) is None
    assert rows(x, 1j) is None
    two = LongRows("self * other", ["self", "other"], ["self", "other"])
    assert two(x, x) is not None
    assert two(x, x[:1]) is None
    assert two(x, x.astype(np.float64)) is None


def test_functions_of_single_precision_take_no_other(without: Any) -> None:
    assert LongRows("exp(self)", ["self"], ["self"])(numbers().astype(np.float64)) is None


def test_functions_that_loops_have_not_are_numpy_s(without: Any) -> None:
    assert LongRows("atan2(self, self)", ["self"], ["self"])(numbers()) is None


def test_repeated_arrays_are_written_out(without: Any) -> None:
    x, one = numbers(), np.broadcast_to(np.float32(2), (30000,))
    found = LongRows("self * other", ["self", "other"], ["self", "other"])(x, one)
    np.testing.assert_array_equal(found, x * 2)


def test_every_expression_compiles_or_is_refused_in_words(without: Any) -> None:
    for entry in table.entries():
        if entry.scalar is None or str(entry.dtype).startswith("bool"):
            continue
        names = [a.name for a in entry.schema.arguments]
        tensors = [a.name for a in entry.schema.arguments if str(a.type).startswith("Tensor")]
        arguments = [numbers(long_rows.LEAST) if name in tensors else 1.0 for name in names]
        with np.errstate(all="ignore"):
            LongRows(entry.scalar, names, tensors)(*arguments)
    for words in loops.refused().values():
        assert words.startswith(("no ", "truth values", "f")) or "converted" in words, words
