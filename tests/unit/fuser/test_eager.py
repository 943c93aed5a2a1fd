"""Kernels of single operators give what the operators give, and leave other arguments to the fallback."""

from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import find
from engine.aten.values.tensor import Tensor
from engine.fuser import stub
from engine.fuser.eager import binding_of
from engine.fuser.from_graph import NotFused

X = Tensor(np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4))
Y = Tensor(np.linspace(1, 3, 4, dtype=np.float32))


def _op(name: str) -> Op:
    found = find(name)
    assert found is not None
    return found


class Missed(Exception):
    pass


def _missed(*args: Any) -> Any:
    raise Missed


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("aten::add.Tensor", (X, Y, 1)),
        ("aten::mul.Scalar", (X, 2.5)),
        ("aten::relu", (X,)),
        ("aten::sum", (X, None)),
        ("aten::softmax.int", (X, -1, None)),
    ],
)
def test_gives_what_the_operator_gives(name: str, args: tuple[Any, ...]) -> None:
    op = _op(name)
    run = stub.bind(name, [binding_of(op, args)], _missed, watch_hooks=True)
    np.testing.assert_allclose(run(*args).array, op.compiled.run(*args).array, rtol=1e-6)


@pytest.mark.parametrize("other", [0, True, None, -1.0, 2**70])
def test_leaves_other_fixed_values_to_the_fallback(other: Any) -> None:
    run = stub.bind("softmax", [binding_of(_op("aten::softmax.int"), (X, -1, None))], _missed)
    with pytest.raises(Missed):
        run(X, other, None)


def test_refuses_lists() -> None:
    with pytest.raises(NotFused):
        binding_of(_op("aten::sum.dim_IntList"), (X, [1], False, None))
