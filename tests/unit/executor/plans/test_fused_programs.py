"""Programs whose groups run as machine code give what the interpreter gives, for mixed arguments and in threads."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.values.tensor import Tensor
from engine.fuser.backend import machine, tiering

pytestmark = pytest.mark.skipif(not machine.has_feature("sse2") and not machine.has_feature("neon"), reason="no LLVM")

PROGRAMS = {
    "chain": "def f(x, y):\n    a = torch.tanh(x * y + 1)\n    return torch.where(a > 0, a, x) - y\n",
    "softmax": "def f(x, y):\n    return torch.softmax(x * 2, -1) * y, (x + y).mean()\n",
    "views": "def f(x, y):\n    a, b = torch.chunk(x.t() + y.t(), 2)\n    return a.sum(0) * 2, b.relu()\n",
    "products": "def f(x, y):\n    return (x.mm(y.t()) + 0.5).sigmoid() * x.size(0)\n",
    "loop": "def f(x, y):\n    for i in range(4):\n        x = torch.sin(x) * y + i\n    return x\n",
}


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(before)


def arguments(rows: int, columns: int, dtype: Any, *, gaps: bool = False) -> tuple[Tensor, Tensor]:
    random = np.random.default_rng(rows * 100 + columns)
    wide = random.standard_normal((2, rows, columns * (1 + gaps))).astype(dtype)
    x, y = wide[:, :, :: 1 + gaps]
    return Tensor(x), Tensor(y)


ARGUMENTS = [
    arguments(*sizes, dtype, gaps=gaps)
    for dtype in (np.float32, np.float64)
    for sizes in ((1, 2), (4, 6), (33, 70))
    for gaps in (False, True)
]


def alike(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return all(map(alike, found, wanted))
    close = np.allclose(found.array, wanted.array, rtol=1e-5, atol=1e-6)
    return found.array.dtype == wanted.array.dtype and found.array.shape == wanted.array.shape and bool(close)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_interpreters_and_the_same_in_every_thread(name: str) -> None:
    f = torch.jit.CompilationUnit(PROGRAMS[name]).f
    with torch.jit.optimized_execution(False):
        wanted = [f(*args) for args in ARGUMENTS]
    assert all(alike(f(*args), result) for args, result in zip(ARGUMENTS, wanted, strict=True))
    assert any(group.kernels for plan in torch.explain(f).plans for group in plan.groups)
    wrong: list[int] = []

    def work(first: int) -> None:
        for i in range(first, first + 60):
            if not alike(f(*ARGUMENTS[i % len(ARGUMENTS)]), wanted[i % len(ARGUMENTS)]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
