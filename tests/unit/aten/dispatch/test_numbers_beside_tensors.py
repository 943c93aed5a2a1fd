"""Numbers become elements and operands as PyTorch has it: rounded once, to the right dtype, or refused.

What is listed was recorded with PyTorch 2.13; `tests/peer/sweep` found it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import engine.torch as torch

RECORDED: dict[str, tuple[str, Any]] = {
    "torch.tensor(0.1, dtype=torch.float64)": ("float64", 0.1),
    "torch.tensor([0.1, 1], dtype=torch.float64)": ("float64", [0.1, 1.0]),
    "torch.as_tensor(0.1, dtype=torch.complex128)": ("complex128", (0.1 + 0j)),
    "torch.ones(1).new_tensor([[0.1]], dtype=torch.float64)": ("float64", [[0.1]]),
    "torch.tensor([0.1, 65520], dtype=torch.float16)": ("float16", [0.0999755859375, math.inf]),
    "torch.tensor(-200, dtype=torch.uint8)": ("uint8", 56),
    "torch.tensor([torch.tensor(0.1, dtype=torch.float64)])": ("float64", [0.1]),
    "torch.full((), 1e30, dtype=torch.float16)": ("float16", math.inf),
    "torch.tensor([0.1, 0.3], dtype=torch.float16) == 0.1": ("bool", [True, False]),
    "torch.tensor([0.1, 0.3], dtype=torch.bfloat16) <= 0.3": ("bool", [True, True]),
    "torch.tensor([math.inf], dtype=torch.float16) != 2**63 - 1": ("bool", [False]),
    "torch.tensor([0.1, 2.5], dtype=torch.float16) % 0.3": ("float16", [0.0999755859375, 0.099609375]),
    "torch.tensor([0.1, 2.5], dtype=torch.float16) + 0.1": ("float16", [0.199951171875, 2.599609375]),
    "torch.tensor([0.1, 2.5], dtype=torch.bfloat16) * 0.1": ("bfloat16", [0.010009765625, 0.25]),
    "torch.tensor([0.1, 2.5], dtype=torch.float16) / 0.3": ("float16", [0.333251953125, 8.3359375]),
    "torch.tensor([0.9, 2.5], dtype=torch.bfloat16) // 0.3": ("bfloat16", [2.0, 8.0]),
    "torch.tensor([0.1, 2.5], dtype=torch.bfloat16) ** 0.3": ("bfloat16", [0.5, 1.3203125]),
    "torch.tensor([0.1, 2.5], dtype=torch.float16) * torch.tensor(0.1)": ("float16", [0.0099945068359375, 0.25]),
    "torch.tensor(0.1) * torch.tensor([0.1, 2.5], dtype=torch.float16)": ("float16", [0.0099945068359375, 0.25]),
    "torch.tensor([2049, 3]) + torch.tensor(0.5, dtype=torch.float16)": ("float16", [2048.0, 3.5]),
    "torch.add(torch.zeros(2), 0.1, alpha=0.1)": ("float32", [0.010000000707805157, 0.010000000707805157]),
    "torch.linspace(3, 0.1, 5)": (
        "float32",
        [3.0, 2.2750000953674316, 1.5500000715255737, 0.8250000476837158, 0.10000000149011612],
    ),
    "torch.linspace(-0.5, 0.1, 6, dtype=torch.float16)": (
        "float16",
        [-0.5, -0.3798828125, -0.260009765625, -0.1400146484375, -0.02001953125, 0.0999755859375],
    ),
    "torch.linspace(1, 0.1, 6, dtype=torch.bfloat16)": (
        "bfloat16",
        [1.0, 0.8203125, 0.640625, 0.458984375, 0.279296875, 0.10009765625],
    ),
    "torch.linspace(2, 5, 1, dtype=torch.bool)": ("bool", [True]),
    "torch.logspace(0.1, 2.5, 5, dtype=torch.bfloat16)": ("bfloat16", [1.2578125, 5.03125, 19.75, 79.0, 316.0]),
    "torch.logspace(1, 0, 5, dtype=torch.uint8)": ("uint8", [10, 5, 3, 1, 1]),
    "torch.logspace(2.5, 3, 1, dtype=torch.int32)": ("int32", [316]),
    "7 // torch.tensor(5, dtype=torch.int8)": ("int8", 1),
    "3 >> torch.tensor(1, dtype=torch.int32)": ("int32", 1),
    "0.1 ** torch.tensor([1 + 2j])": ("complex64", [(-0.010701341554522514 + 0.09942574799060822j)]),
    "torch.nn.functional.hardtanh(torch.tensor([1, 5], dtype=torch.uint8), 2, 4)": ("uint8", [2, 4]),
    "torch.nn.functional.elu(torch.tensor([-1.0, 0.0]), math.inf)": ("float32", [-math.inf, 0.0]),
    "torch.clamp(torch.tensor([1.0, 5.0]), min=3 + 0j)": ("float32", [3.0, 5.0]),
    "torch.cumsum(torch.tensor(3), 0, dtype=torch.bool)": ("bool", True),
    "torch.movedim(torch.tensor(3), 0, 0)": ("int64", 3),
}

REFUSED: dict[str, tuple[type[Exception], str]] = {
    "torch.tensor(2**31, dtype=torch.int32)": (
        RuntimeError,
        "value cannot be converted to type int32_t without overflow",
    ),
    "torch.tensor([300], dtype=torch.uint8)": (
        RuntimeError,
        "value cannot be converted to type uint8_t without overflow",
    ),
    "torch.tensor(-0.5, dtype=torch.uint8)": (
        RuntimeError,
        "value cannot be converted to type uint8_t without overflow",
    ),
    "torch.tensor(1e30, dtype=torch.int64)": (
        RuntimeError,
        "value cannot be converted to type int64_t without overflow",
    ),
    "torch.as_tensor(math.nan, dtype=torch.int8)": (
        RuntimeError,
        "value cannot be converted to type int8_t without overflow",
    ),
    "torch.tensor(2**63)": (ValueError, "Overflow when unpacking long long"),
    "torch.tensor(3 + 0j, dtype=torch.float32)": (TypeError, "must be real number, not complex"),
    "torch.tensor([1j], dtype=torch.int64)": (TypeError, "'complex' object cannot be interpreted as an integer"),
    "torch.full([2], 1e300)": (RuntimeError, "value cannot be converted to type float without overflow"),
    "torch.clamp(torch.ones(2, dtype=torch.int8), max=300)": (
        RuntimeError,
        "value cannot be converted to type int8_t without overflow",
    ),
    "torch.addcmul(*[torch.ones(2, dtype=torch.int8)] * 3, value=300)": (
        RuntimeError,
        "value cannot be converted to type int8_t without overflow",
    ),
    "torch.add(torch.ones(2), torch.ones(2), alpha=1e300)": (
        RuntimeError,
        "value cannot be converted to type float without overflow",
    ),
    "torch.ones(2, dtype=torch.int8) ** 300": (
        RuntimeError,
        "value cannot be converted to type int8_t without overflow",
    ),
    "torch.where(torch.tensor([True, False]), torch.ones(2), 1e300)": (
        RuntimeError,
        "value cannot be converted to type float without overflow",
    ),
    "torch.arange(-0.5, dtype=torch.int64)": (RuntimeError, "upper bound and lower bound inconsistent with step sign"),
    "torch.linspace(0, 1e5, 5, dtype=torch.float16)": (
        RuntimeError,
        "value cannot be converted to type c10::Half without overflow",
    ),
    "torch.norm(torch.ones(2), dtype=torch.int32)": (
        RuntimeError,
        "linalg.vector_norm: dtype should be floating point or complex, but got Int",
    ),
    "torch.norm(torch.ones(2, dtype=torch.float64), dtype=torch.float32)": (
        RuntimeError,
        "the dtype of the input (Double) should be convertible without narrowing to the specified dtype (Float)",
    ),
    "torch.nn.functional.hardtanh(torch.ones(2, dtype=torch.uint8), -1, 3)": (
        RuntimeError,
        "cannot do hardtanh on an unsigned type with negative limits",
    ),
}


@pytest.mark.parametrize("expression", RECORDED)
def test_values(expression: str) -> None:
    dtype, values = RECORDED[expression]
    found = eval(expression, {"torch": torch, "math": math})
    assert (found.dtype, found.tolist()) == (getattr(torch, dtype), values)


@pytest.mark.parametrize("expression", REFUSED)
def test_refusals(expression: str) -> None:
    kind, message = REFUSED[expression]
    with pytest.raises(kind) as caught:
        eval(expression, {"torch": torch, "math": math})
    assert message in str(caught.value)


BESIDE_HALVES = ("x == 0.1", "x % 0.3", "x + 0.1", "x * 0.1", "x / 0.3", "x // 0.3", "0.3 - x", "x * y",
                 "torch.add(x, 0.1, alpha=3)", "x + y", "x > y", "torch.addcmul(x, x, x, value=0.3)")  # fmt: skip


@pytest.fixture(autouse=True)
def _mode_given_back() -> Iterator[None]:
    mode = torch.compile_mode()
    yield
    torch.set_compile_mode(mode)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("expression", BESIDE_HALVES)
def test_programs_and_kernels_round_numbers_beside_halves_alike(expression: str, dtype: Any) -> None:
    x, y = torch.tensor([0.1, 0.3, 2.5, 7.0], dtype=dtype), torch.tensor(0.1)
    program = torch.jit.CompilationUnit(f"def f(x: Tensor, y: Tensor):\n    return {expression}\n")
    torch.set_compile_mode("off")
    expected = eval(expression, {"torch": torch, "x": x, "y": y})
    interpreted = [program.f(x, y) for _ in range(3)]
    torch.set_compile_mode("eager")
    compiled = [torch.jit.CompilationUnit(f"def f(x: Tensor, y: Tensor):\n    return {expression}\n").f] * 3
    results = [*interpreted, *(f(x, y) for f in compiled)]
    assert all(found.dtype == expected.dtype and found.tolist() == expected.tolist() for found in results)


def test_programs_pass_numbers_through_the_default_dtype() -> None:
    program = torch.jit.CompilationUnit("def f(x: float):\n    return torch.tensor(x, dtype=torch.float64)\n")
    assert program.f(0.1).item() == 0.10000000149011612
    with pytest.raises(RuntimeError, match="without overflow"):
        program.f(1e300)
