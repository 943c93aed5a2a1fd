"""Products of matrices, which are numpy's BLAS and should cost no more than it does.

    python benchmarks/matmul.py

Out: milliseconds with the engine, with numpy on the same arrays and, where it is installed, with PyTorch; then how many
times as long the engine takes.  At most 1.1 times as long as numpy is what we want.  The last lines say how many
processors numpy's BLAS keeps busy.  Takes about ten seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from beside import TORCH, Call, summary, table

import engine.torch as engine_torch

Shapes = tuple[tuple[int, ...], ...]
ROWS: Final[dict[str, tuple[Shapes, Callable[..., Any], Callable[..., Any]]]] = {
    "x @ y, 256": (((256, 256), (256, 256)), lambda t, x, y: x @ y, lambda x, y: x @ y),
    "x @ y, 1024": (((1024, 1024), (1024, 1024)), lambda t, x, y: x @ y, lambda x, y: x @ y),
    "x @ y.T, 1024": (((1024, 1024), (1024, 1024)), lambda t, x, y: x @ y.t(), lambda x, y: x @ y.T),
    "linear, 512 x 1024 -> 1024": (
        ((512, 1024), (1024, 1024), (1024,)),
        lambda t, x, w, b: t.nn.functional.linear(x, w, b),
        lambda x, w, b: x @ w.T + b,
    ),
    "bmm, 16 x 256": (((16, 256, 256), (16, 256, 256)), lambda t, x, y: t.bmm(x, y), lambda x, y: x @ y),
    "addmm, 512": (
        ((512, 512), (512, 512), (512, 512)),
        lambda t, c, x, y: t.addmm(c, x, y),
        lambda c, x, y: c + x @ y,
    ),
    "matrix @ vector, 2048": (((2048, 2048), (2048,)), lambda t, x, y: x @ y, lambda x, y: x @ y),
    "einsum bij,bjk->bik": (
        ((16, 128, 128), (16, 128, 128)),
        lambda t, x, y: t.einsum("bij,bjk->bik", x, y),
        lambda x, y: x @ y,
    ),
}


def rows() -> Iterator[tuple[str, Mapping[str, Call | None]]]:
    for name, (shapes, call, by_numpy) in ROWS.items():
        source = np.random.default_rng(0)
        arrays = [source.standard_normal(shape).astype(np.float32) for shape in shapes]
        yield (
            name,
            {
                "engine": _of(engine_torch, call, arrays),
                "numpy": lambda f=by_numpy, a=arrays: f(*a),  # type: ignore[misc]
                "torch": None if TORCH is None else _of(TORCH, call, arrays),
            },
        )


def _of(torch: Any, call: Callable[..., Any], arrays: list[Any]) -> Call:
    tensors = [torch.from_numpy(array) for array in arrays]
    return lambda: call(torch, *tensors)


def busy_processors() -> float:
    """Processor time over time of a product that is large enough to share out."""
    x = np.ones((2048, 2048), np.float32)
    x @ x
    start, used = time.perf_counter(), time.process_time()
    for _ in range(3):
        x @ x
    return (time.process_time() - used) / (time.perf_counter() - start)


def main() -> None:
    results = table("ms per call", rows(), unit=1e-3, seconds=0.8)
    print(summary(results, "numpy", 1.1))
    print(f"numpy's BLAS keeps {busy_processors():.1f} processors busy")


if __name__ == "__main__":
    main()
