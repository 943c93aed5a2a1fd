"""The law of powers: however one is written, in every mode and however often it ran, it is IEEE 754's, whose special
values are those of C's `pow`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.values import xp
from engine.fuser.backend import tiering
from engine.lang import scalars

INF: Final = math.inf
BASES: Final = (-INF, -4.0, -3.0, -1.0, -0.5, -(2.0**-24), -0.0, 0.0, 2.0**-24, 0.25, 1.0, 2.0, 9.0, INF, math.nan)
EXPONENTS: Final = (0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1.0, -1.0, 0.0, 2.5, -0.25, INF, -INF, math.nan)
WAYS: Final = ("x ** {e}", "torch.pow(x, {e})", "x.clone().pow_({e})", "x.pow({e}) * 1", "torch.pow(x * 1, {e})",
               "torch.pow(x, torch.full_like(x, {e}))", "torch.pow(x, torch.full_like(x[:1], {e}))",
               "torch.pow(x.view(-1, 1), torch.full_like(x[:1], {e})).view(-1)", "torch.float_power(x, {e})",
               "torch.float_power(x, torch.full_like(x[0], {e}))")  # fmt: skip
"""Spellings of powers of the elements of `x`, which plans and kernels take by different ways."""
OTHER_WAYS: Final = ("{b} ** y", "torch.pow({b}, y)", "torch.pow(torch.full_like(y, {b}), y)",
                     "torch.pow(torch.full_like(y[:1], {b}), y)", "torch.float_power({b}, y)")  # fmt: skip
"""Spellings of powers of a number, to the elements of `y`."""
CALLS: Final = 3


def ieee(x: float, y: float) -> float:
    """C's `pow`, which Python's raises errors in place of."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.copysign(INF, x) if y % 2 == 1 else INF
    except ValueError:
        return math.nan if x else math.copysign(INF, x) if y % 2 == 1 else INF


@contextmanager
def in_mode(mode: str) -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode(mode)
    try:
        yield
    finally:
        tiering.wait()
        tiering.set_mode(before)


@pytest.fixture(params=["off", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("eager", "background"))])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    with in_mode(request.param):
        yield request.param


def spelled(number: float) -> str:
    """The number as it is written in programs."""
    return f"({number!r})" if math.isfinite(number) else f'float("{number}")'


def program(name: str, expressions: Sequence[str]) -> Callable[[Any], Any]:
    """A function of one tensor that returns the values of the expressions."""
    text = f"def f({name}: Tensor):\n    return [{', '.join(expressions)}]\n"
    return torch.jit.CompilationUnit(text).f  # type: ignore[no-any-return]


def assert_are(found: Any, wanted: Sequence[float], what: str) -> None:
    """Zeros, infinities and NaN to the bit, others as precise as the dtype is."""
    assert found.dtype.is_floating_point, what
    with np.errstate(over="ignore"):
        exact = np.array(wanted).astype(found.array.dtype).astype(np.float64)
    numbers, eps = found.array.astype(np.float64), float(xp.limits(found.array.dtype).eps)
    np.testing.assert_allclose(numbers, exact, rtol=4 * eps, err_msg=what)
    zeros = exact == 0
    np.testing.assert_array_equal(np.signbit(numbers[zeros]), np.signbit(exact[zeros]), err_msg=what)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", sorted(xp.FLOATING, key=str), ids=str)
def test_powers_of_tensors(way: str, dtype: Any, mode: str) -> None:
    x = torch.tensor(BASES, dtype=xp.FROM_NUMPY[dtype])
    bases = x.array.astype(np.float64).tolist()
    wanted = [[ieee(b, e) for b in bases] for e in EXPONENTS]
    check(program("x", [way.format(e=spelled(e)) for e in EXPONENTS]), x, wanted, EXPONENTS)
    check(lambda x: [eager(way.format(e=spelled(e)), x=x) for e in EXPONENTS], x, wanted, EXPONENTS)


@pytest.mark.parametrize("way", OTHER_WAYS)
@pytest.mark.parametrize("dtype", sorted(xp.FLOATING, key=str), ids=str)
def test_powers_of_numbers(way: str, dtype: Any, mode: str) -> None:
    y = torch.tensor(EXPONENTS, dtype=xp.FROM_NUMPY[dtype])
    bases = [float(np.asarray(b).astype(dtype)) for b in BASES]
    for some in (bases[:7], bases[7:]):  # constants 0.0 and -0.0 are one in a graph, as in PyTorch's
        wanted = [[ieee(b, e) for e in EXPONENTS] for b in some]
        check(program("y", [way.format(b=spelled(b)) for b in some]), y, wanted, some)
        check(lambda y, some=some: [eager(way.format(b=spelled(b)), y=y) for b in some], y, wanted, some)


def test_powers_of_whole_numbers_to_broken_ones(mode: str) -> None:
    x = torch.tensor([-9, -1, 0, 1, 4])
    wanted = [[ieee(b, e) for b in x.tolist()] for e in EXPONENTS]
    for way in WAYS[:5]:
        if "pow_" not in way:  # a tensor of integers keeps its dtype
            check(program("x", [way.format(e=spelled(e)) for e in EXPONENTS]), x, wanted, EXPONENTS)


def test_powers_of_numbers_alone(mode: str) -> None:
    f = torch.jit.CompilationUnit("def f(x: float, y: float) -> float:\n    return x ** y\n").f
    for x in BASES:
        for y in EXPONENTS:
            if (x or not y < 0) and not (-INF < x < 0 and y % 1):  # those are errors of Python's
                np.testing.assert_equal([f(x, y) for _ in range(CALLS)], [ieee(x, y)] * CALLS, err_msg=f"{x} ** {y}")


def eager(text: str, **names: Any) -> Any:
    return eval(text, {"torch": torch, **names})


def check(f: Callable[[Any], Any], given: Any, wanted: Sequence[Sequence[float]], numbers: Sequence[float]) -> None:
    """Check the first call, which makes what later ones use, and these."""
    for call in range(CALLS):
        for found, values, number in zip(f(given), wanted, numbers, strict=True):
            assert_are(found, values, f"{number}, call {call}")
        tiering.wait()


def test_a_sample_of_powers_in_kernels() -> None:
    wanted = [[ieee(b, e) for b in BASES] for e in (0.5, -0.5)]
    with in_mode("eager"):
        check(program("x", ["x ** 0.5", "x ** -0.5"]), torch.tensor(BASES), wanted, (0.5, -0.5))


def test_all_floating_dtypes_are_tried() -> None:
    assert {xp.FROM_NUMPY[d] for d in xp.FLOATING} == {d for d in scalars.DTYPES if d.is_floating_point}
