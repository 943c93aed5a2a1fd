"""Bodies over arrays give what the operators give, bit for bit, usual arguments or not; errors begin alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.compile import array_kernel
from engine.aten.dispatch.unboxed import entry, pad
from engine.aten.values.tensor import Tensor
from engine.lang.errors import EngineError


def f(*shape: int, dtype: str = "f4") -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


def positive(*shape: int, dtype: str = "f4") -> Any:
    return np.abs(f(*shape, dtype=dtype)) + 0.5


_CONV = ([1], [1], [1], 1)
_NORM = (False, 0.1, 1e-5, True)
CALLS: list[tuple[str, Sequence[Any]]] = [
    ("conv1d", (f(2, 3, 8), f(4, 3, 3), f(4), *_CONV)),
    ("conv1d", (f(3, 8), f(4, 3, 3), None, *_CONV)),
    ("conv1d", (f(8), f(4, 3, 3), None, *_CONV)),
    ("conv1d", (f(2, 5, 8), f(4, 3, 3), None, *_CONV)),
    ("conv2d", (f(1, 2, 5, 5), f(4, 1, 3, 3), f(4), [2, 1], [1, 0], [1, 1], 2)),
    ("dropout", (f(3), 0.5, False)),
    ("dropout", (f(3), 1.5, False)),
    ("layer_norm", (f(2, 4), [4], f(4), None, 1e-5, True)),
    ("layer_norm", (f(2, 4), [3], None, None, 1e-5, True)),
    ("batch_norm", (f(2, 3, 4), f(3), f(3), f(3), positive(3), *_NORM)),
    ("batch_norm", (f(2, 3, 4, dtype="f8"), *[positive(3, dtype="f8")] * 4, *_NORM)),
    ("batch_norm", (f(2, 3), None, None, f(3), positive(3), *_NORM)),
    ("batch_norm", (f(2, 3), f(3), f(3), f(3), positive(3, dtype="f8"), *_NORM)),
    ("batch_norm", (f(2, 3, 2), f(3), f(3), None, None, True, 0.1, 1e-5, True)),
    ("batch_norm", (f(2, 3), f(4), f(3), f(3), positive(3), *_NORM)),
    ("batch_norm", (f(3), f(3), f(3), f(3), positive(3), *_NORM)),
    ("adaptive_avg_pool2d", (f(2, 3, 5, 4), [1, 1])),
    ("adaptive_avg_pool2d", (f(2, 3, 5, 4), [2, 3])),
    ("adaptive_avg_pool1d", (f(3, 5, dtype="f8"), [1])),
    ("adaptive_avg_pool1d", (f(5), [1])),
    ("max_pool2d", (f(1, 2, 4, 4), [2, 2], [], [0, 0], [1, 1], False)),
    ("pad", (f(2, 6), [1, 2], "reflect", None)),
    ("pad", (f(2, 6), [0, -1], "replicate", None)),
    ("pad", (f(2, 6), [1, 6], "reflect", None)),
    ("pad", (f(2, 6), [1, 1, 2, 0], "constant", 1.5)),
    ("pad", (f(1, 2, 6), [1, 1], "circular", None)),
    ("pad", (f(2, 6), [1, 1], "sideways", None)),
    ("pad", (np.arange(6).reshape(1, 6), [2, 2], "reflect", None)),
    ("lstm_cell", (f(2, 3), [f(2, 4), f(2, 4)], f(16, 3), f(16, 4), f(16), f(16))),
    ("lstm_cell", (f(2, 3), [f(2, 4), f(2, 4)], f(16, 3), f(16, 4), None, None)),
    ("lstm_cell", (f(2, 3), [f(1, 4), f(2, 4)], f(16, 3), f(16, 4), None, None)),
    ("lstm_cell", (f(2, 5), [f(2, 4), f(2, 4)], f(16, 3), f(16, 4), None, None)),
]


def outcome(run: Any, arguments: Sequence[Any], unwrap: bool) -> Any:
    try:
        found = run(*arguments)
    except EngineError as error:
        return str(error).partition("\n")[0]
    parts = found if isinstance(found, tuple) else (found,)
    arrays = [part.array if unwrap else part for part in parts]
    return [(array.dtype, array.shape, array.tobytes()) for array in arrays]


def as_tensors(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return Tensor(value)
    return [as_tensors(each) for each in value] if isinstance(value, list) else value


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=lambda each: each if isinstance(each, str) else "")
def test_a_body_gives_what_the_operator_gives(name: str, arguments: Sequence[Any]) -> None:
    op = entry(name)
    expected = outcome(op.run, [as_tensors(each) for each in arguments], unwrap=True)
    assert op.unboxed is not None
    body = op.unboxed(op)
    for _ in range(2):
        assert outcome(body, arguments, unwrap=False) == expected


def test_what_a_body_remembers_of_one_size_is_not_taken_for_another() -> None:
    body, kernel = pad(entry("pad")), array_kernel(entry("reflection_pad1d"))
    for size in (6, 7, 6, 9):
        for padding in ([1, 2], [2, 1], [1, 2]):
            x = f(2, size)
            assert body(x, padding, "reflect", None).tobytes() == kernel(x, padding).tobytes()
