"""Pointwise operators and their gradients where operands are infinities, NaN, zeros and denormal numbers: a real
PyTorch's, in every floating dtype."""

from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from engine.aten.autograd import grad  # noqa: E402
from engine.aten.values import xp  # noqa: E402
from engine.aten.values.tensor import Tensor  # noqa: E402
from engine.fuser.backend import tiering  # noqa: E402
from engine.lang.errors import EngineError  # noqa: E402
from engine.lang.types import OptionalType, TensorType  # noqa: E402
from tests.table.kernel_samples import OPERATORS, arguments  # noqa: E402

pytestmark = pytest.mark.peer

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 6e-8, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, 300.0)
KNOWN = {
    "aten::gelu": "PyTorch's vectors make NaN of infinity, and its single numbers do not",
    "aten::floor_divide": "has no gradient; PyTorch says so later", "aten::floor_divide.Scalar": "the same",
    "aten::silu_backward": "PyTorch has no gradient of it", "aten::hardsigmoid_backward": "the same",
    "aten::hardswish_backward": "PyTorch's vectors and single numbers differ about NaN",
    "aten::hardtanh": "the same", "aten::hardtanh_backward": "the same", "aten::relu6": "the same",
    "aten::hardshrink": "the same", "aten::softshrink": "the same", "aten::softshrink_backward": "the same",
}  # fmt: skip
"""Operators that are left out, and why."""
COMPARED = [
    op for op in OPERATORS if op.qualified_name not in KNOWN and not any(a.is_write for a in op.schema.arguments)
]


@pytest.fixture(autouse=True)
def _without_kernels():
    before = tiering.mode()
    tiering.set_mode("off")
    yield
    tiering.set_mode(before)


def of_pytorch(name):
    base, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, base, None), overload or "default", None)


def calls(op, dtype):
    """Arguments of calls, with tensors that have all combinations of special numbers."""
    types = [a.type.element if isinstance(a.type, OptionalType) else a.type for a in op.schema.arguments]
    count = sum(isinstance(type, TensorType) for type in types)
    with np.errstate(all="ignore"):
        grids = [np.array(each).astype(dtype) for each in zip(*product(SPECIAL, repeat=count), strict=True)]
        for number in (2.5, -1.0, 0.0):
            yield arguments(op, [Tensor(each.copy()) for each in grids], number)


def there(value, dtype):
    if not isinstance(value, Tensor):
        return value
    is_float = value.array.dtype in xp.FLOATING
    given = torch.tensor(value.array.astype(np.float64 if is_float else value.array.dtype))
    return given.to(getattr(torch, xp.FROM_NUMPY[dtype].name)).requires_grad_() if is_float else given


def gradients_here(results, tensors):
    outputs = [each for each in results if each.requires_grad]
    found = grad(outputs, tensors, [Tensor(np.ones_like(each.array)) for each in outputs], allow_unused=True)
    return [None if each is None else each.array.astype(np.float64) for each in found]


def gradients_there(results, tensors):
    outputs = [each for each in results if each.requires_grad]
    found = torch.autograd.grad(outputs, tensors, [torch.ones_like(each) for each in outputs], allow_unused=True)
    return [None if each is None else each.double().numpy() for each in found]


def compare(here, ours, dtype):
    eps = float(xp.limits(dtype).eps)
    for mine, theirs in zip(here, ours, strict=True):
        a, b = (0.0 if each is None else each for each in (mine, theirs))
        np.testing.assert_allclose(*np.broadcast_arrays(a, b), rtol=64 * eps, atol=eps / 64)


@pytest.mark.parametrize("dtype", sorted(xp.FLOATING, key=str), ids=str)
@pytest.mark.parametrize("op", COMPARED, ids=lambda op: op.qualified_name)
def test_special_values(op, dtype):
    function = of_pytorch(op.qualified_name)
    if function is None:
        pytest.skip("PyTorch has no such operator")
    for call in calls(op, dtype):
        for value in call:
            if isinstance(value, Tensor) and value.array.dtype in xp.FLOATING:
                value.requires_grad_()
        given = [there(value, dtype) for value in call]
        keywords = {a.name: v for a, v in zip(function._schema.arguments, given, strict=True) if a.kwarg_only}
        positional = given[: len(given) - len(keywords)]
        try:
            results = op.run(*call)
        except EngineError:
            with pytest.raises((RuntimeError, IndexError)):
                function(*positional, **keywords)
            continue
        wanted = function(*positional, **keywords)
        mine, theirs = ([*r] if isinstance(r, (list, tuple)) else [r] for r in (results, wanted))
        compare([r.array.astype(np.float64) for r in mine], [r.detach().double().numpy() for r in theirs], dtype)
        assert [r.requires_grad for r in mine] == [r.requires_grad for r in theirs]
        if any(r.requires_grad for r in mine):
            leaves = [[v for v in values if getattr(v, "requires_grad", False)] for values in (call, given)]
            compare(gradients_here(mine, leaves[0]), gradients_there(theirs, leaves[1]), dtype)
