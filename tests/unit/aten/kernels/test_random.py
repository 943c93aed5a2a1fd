"""Random streams: the expected numbers are those of PyTorch's CPU generator for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from engine.aten.dispatch import table
from engine.aten.kernels.random import Generator, generator
from engine.aten.values.tensor import Tensor, tensor
from engine.lang.errors import OperatorError

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def test_the_stream_of_a_seed() -> None:
    source = Generator().manual_seed(5)
    assert source.uniform((3,), F32).tolist() == [0.8302518725395203, 0.12611091136932373, 0.9074696898460388]
    assert source.uniform((2,), F64).tolist() == [0.5594163926692743, 0.9331621735624811]
    assert source.normal((2,), F32).tolist() == [2.0342049598693848, -1.4133919477462769]
    assert source.normal((17,), F32).tolist()[-2:] == [0.548134982585907, -1.6391186714172363]
    assert source.integers((4,), 3, 9).tolist() == [5, 7, 8, 5]
    assert source.permutation(5).tolist() == [1, 0, 2, 3, 4]


def test_manual_seed_starts_the_stream_anew() -> None:
    seed, rand = table.find("aten::manual_seed"), table.find("aten::rand")
    assert seed is not None
    assert rand is not None
    seed.run(5)
    first = rand.run([3], None, None, None, None)
    seed.run(5)
    assert first.tolist() == rand.run([3], None, None, None, None).tolist()
    assert generator().initial_seed() == 5


def test_moments() -> None:
    source = Generator().manual_seed(1)
    assert abs(source.uniform((20000,), F32).mean() - 0.5) < 0.01
    assert abs(source.normal((20000,), F64).std() - 1.0) < 0.02


def test_dropout_keeps_the_mean() -> None:
    dropout = table.find("aten::dropout")
    assert dropout is not None
    ones = Tensor(np.ones(20000, np.float32))
    kept = dropout.run(ones, 0.25, True)
    assert set(np.unique(kept.array)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs(kept.array.mean() - 1.0) < 0.02
    assert dropout.run(ones, 0.25, False) is ones
    with pytest.raises(OperatorError, match="between 0 and 1"):
        dropout.run(ones, 1.5, True)


def test_multinomial_without_replacement_picks_each_once() -> None:
    picked = tensor([1.0, 2.0, 0.0, 3.0]).multinomial(3)
    assert sorted(picked.tolist()) == [0, 1, 3]
