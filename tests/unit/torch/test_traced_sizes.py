"""A size that a traced program uses as a number, in a function of torch.nn.functional or another of the namespace, is
followed by the trace, or a warning tells that it is not.

`traced_sizes.txt` has a call in each line; n is the size of the trace's input.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
import engine.torch.nn.functional as F
from engine.aten.values.traced import TracedFloat, TracedInt, float_of, number_of
from engine.frontend.tracing.position import TracerWarning
from engine.lang.errors import EngineError

CALLS = (Path(__file__).parent / "traced_sizes.txt").read_text().splitlines()
LEFT = torch.arange(12.0).reshape(2, 6).cos()
GIVEN: dict[str, Any] = {
    "torch": torch, "F": F,
    "X": LEFT * 2, "P": LEFT.abs() + 0.1, "S": torch.arange(16.0).reshape(1, 2, 8).sin(),
    "I": torch.arange(256.0).reshape(1, 4, 8, 8).sin(), "V": torch.arange(1024.0).reshape(1, 2, 8, 8, 8).sin(),
    "IDX": torch.tensor([[0, 1], [2, 3]]), "W": torch.arange(15.0).reshape(5, 3) / 9, "T": torch.tensor([0, 1]),
}  # fmt: skip


def bn(n: Any) -> Any:
    """What a momentum leaves in the running means."""
    means = torch.zeros(6)
    F.batch_norm(GIVEN["X"], means, torch.ones(6), training=True, momentum=n * 0.25)
    return means


def written(x: Any, n: Any) -> Any:
    made = x.clone()
    made[:, n] = n
    return made


GIVEN |= {"bn": bn, "written": written}


@pytest.fixture(autouse=True)
def _off(without_machine_code: None) -> None:
    """A difference is the trace's."""


def flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from flat(each)
    else:
        yield value


def are_same(found: Any, wanted: Any) -> bool:
    a, b = [*flat(found)], [*flat(wanted)]
    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype
        and torch.allclose(x.double(), y.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )  # fmt: skip


def results(program: Callable[[Any], Any]) -> Iterator[tuple[int, Any]]:
    for n in (2, 1, 3, 4):
        try:
            yield n, program(n)
        except (EngineError, TypeError, ValueError, RuntimeError):
            continue


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_sizes_are_followed_or_warned_of(call: str) -> None:
    program = eval(f"lambda n: {call}", GIVEN)
    known = [*results(program)]
    pairs = ((a, b, wanted) for a, first in known for b, wanted in known if a != b and not are_same(first, wanted))
    first, other, wanted = next(pairs)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = torch.jit.trace(lambda x: program(x.shape[0]), torch.zeros(first), check_trace=False)
    warned = any(issubclass(each.category, TracerWarning) for each in told)
    assert warned or are_same(made(torch.zeros(other)), wanted)


def number(x: Any) -> Any:
    return number_of(x.shape[0])


ARITHMETIC: dict[str, Callable[[Any], Any]] = {
    "n + 2": lambda n: n + 2, "2 - n": lambda n: 2 - n, "n * 3": lambda n: n * 3, "n // 2": lambda n: n // 2,
    "7 // n": lambda n: 7 // n, "n / 2": lambda n: n / 2, "1 / n": lambda n: 1 / n, "n % 2": lambda n: n % 2,
    "n ** 2": lambda n: n**2, "n ** 0.5": lambda n: n**0.5, "2 ** n": lambda n: 2**n, "-n": lambda n: -n,
    "(n / 2) * n": lambda n: (n / 2) * n, "-(n / 4)": lambda n: -(n / 4), "n / 3 + n": lambda n: n / 3 + n,
}  # fmt: skip


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_of_the_library_with_sizes_is_followed(name: str) -> None:
    """Numbers of the library know their tensors, ints as well as floats, in double precision."""
    compute = ARITHMETIC[name]

    def program(x: Any) -> Any:
        found = compute(number(x))
        assert isinstance(found, (TracedInt, TracedFloat))
        return torch.full((1,), found, dtype=torch.float64)

    made = torch.jit.trace(program, torch.zeros(3), check_trace=False)
    for n in (3, 5, 8):
        assert made(torch.zeros(n)).item() == compute(n)


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "float(n)": float, "int(n / 1)": lambda n: int(n / 1), "round(n / 1)": lambda n: round(n / 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_of_the_library_warn(name: str) -> None:
    convert = CONVERSIONS[name]
    with pytest.warns(TracerWarning):
        torch.jit.trace(lambda x: x * convert(number(x)), torch.zeros(3), check_trace=False)


def test_a_size_as_a_float_is_the_same_tensor() -> None:
    seen: list[Any] = []

    def program(x: Any) -> Any:
        seen.append(float_of(x.shape[0]))
        return x

    torch.jit.trace(program, torch.zeros(3), check_trace=False)
    assert isinstance(seen[0], TracedFloat) and seen[0] == 3.0
    assert type(float_of(3)) is float


def test_indexed_writes_take_other_numbers_of_places() -> None:
    def moved(x: Any, rows: Any) -> Any:
        copy = x * 0
        copy[:, rows] = x[:, rows] + 1
        return copy

    made = torch.jit.trace(moved, (torch.ones(1, 6, 2), torch.tensor([4, 0])), check_trace=False)
    for batch in (1, 3):
        x = torch.arange(batch * 12.0).reshape(batch, 6, 2)
        for rows in ([0, 4], [5], [1, 2, 3, 3, 5]):
            assert torch.equal(made(x, torch.tensor(rows)), moved(x, torch.tensor(rows)))
