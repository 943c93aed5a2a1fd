"""Convolution, pooling, resampling, padding, normalization, losses and recurrent layers against PyTorch 2.13's results.

A line of `recorded_kernels.txt` is the operator, its arguments, and either a digest of what PyTorch computed (dtype,
shape, first two elements, sum of the elements times cos(i)) or `!!` where it refused.  `A(seed, shape, ...)` is a
tensor of random numbers, `L` one of whole numbers; keyword arguments are in a dict at the end.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch import table
from engine.aten.values.tensor import Tensor, tensor
from engine.lang.errors import EngineError

_LINE = re.compile(r"(\S+) (\(.*\)) (?:-> (.*)|!!)")
_RECORDED = (Path(__file__).parent / "recorded_kernels.txt").read_text(encoding="utf-8").split("\n")[:-1]


def _random(seed: int, shape: tuple[int, ...], dtype: str = "float32", lo: float = -2, hi: float = 2) -> Tensor:
    numbers = np.random.default_rng(seed + sum(shape) * 7)
    if dtype == "bool":
        return tensor(numbers.integers(0, 2, shape).astype(bool))
    if dtype.startswith(("int", "uint")):
        low, high = (-9, 10) if (lo, hi) == (-2, 2) else (int(lo), int(hi))
        return tensor(numbers.integers(low, high, shape).astype(dtype))
    return tensor((numbers.random(shape) * (hi - lo) + lo).astype(dtype))


def _check(result: Any, digest: Any) -> None:
    if isinstance(digest[0], tuple):
        assert len(result) == len(digest)
        for part, expected in zip(result, digest, strict=True):
            _check(part, expected)
        return
    dtype, shape, first, weighted = digest
    array = result.array
    assert (array.dtype.name, array.shape) == (dtype, shape)
    flat = array.astype(np.float64).ravel()
    tolerance = 2e-2 if dtype == "float16" else 2e-4
    assert flat[:2].tolist() == pytest.approx(first, rel=tolerance, abs=tolerance, nan_ok=True)
    scale = tolerance * (1 + float(np.abs(flat).sum()) / 4)
    assert float((flat * np.cos(np.arange(flat.size))).sum()) == pytest.approx(weighted, abs=scale, nan_ok=True)


@pytest.mark.parametrize("line", _RECORDED)
def test_recorded_kernel(line: str) -> None:
    match = _LINE.fullmatch(line)
    assert match is not None
    name, written_args, digest = match.groups()
    args = list(eval(written_args, {"A": _random, "L": tensor}))
    if args and isinstance(args[-1], dict):
        args[-1:] = args[-1].values()
    entry = table.find(f"aten::{name}")
    assert entry is not None
    if digest is None:
        with pytest.raises(EngineError):
            entry.run(*args)
        return
    _check(entry.run(*args), eval(digest, {"nan": np.nan, "inf": np.inf}))
