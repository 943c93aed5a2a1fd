"""The law of gradients: every formula of the table equals finite differences, on the operator's samples in float64."""

from __future__ import annotations

from typing import Any

import pytest

from engine.aten.autograd import gradcheck
from engine.aten.autograd.formula import NO_GRADIENT
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.lang.errors import EngineError
from tests.table.gradient_samples import SYMMETRIC, gradient_arguments_for, in_float64

UNTRIED = {
    "aten::imag", "aten::view_as_real", "aten::linalg_eigh", "aten::_alignments", "aten::as_strided_scatter",
    "aten::linalg_cholesky_ex", "aten::cholesky_solve", "aten::cholesky_inverse", "aten::linalg_eig",
    "aten::_rnnt_loss", "aten::_fake_quantize_channels",
}  # fmt: skip
"""The first two take complex numbers, for which there are no finite differences here; the third reads half of a matrix;
the fourth takes its argument for a log-softmax, through which only its gradient is right; of the fifth PyTorch's own
gradient is not the derivative, and ours is PyTorch's; a Cholesky factor, too, is made of half of a matrix, and what is
made of one has a gradient for its other half; complex eigenvectors are known up to a factor; the loss is of single
precision, and its gradient is one of its results; what rounds has the gradient of what it stands for."""
ENTRIES = [
    e for e in table.entries()
    if any(text != NO_GRADIENT for text in e.gradient.values())
    and e.qualified_name not in UNTRIED and not e.nondeterministic and not any(a.is_write for a in e.schema.arguments)
]  # fmt: skip


def by_name(op: Op) -> str:
    return op.qualified_name


@pytest.mark.parametrize("op", ENTRIES, ids=by_name)
def test_gradients_equal_finite_differences(op: Op) -> None:
    named = [a.name for a in op.schema.arguments]
    known = {name for name, text in op.gradient.items() if text != NO_GRADIENT}
    args = [in_float64(v, name in known) for v, name in zip(gradient_arguments_for(op), named, strict=True)]
    flat: list[Tensor] = []
    places: list[tuple[int, int | None]] = []
    for i, value in enumerate(args):
        for j, part in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(part, Tensor) and part.requires_grad:
                flat.append(part)
                places.append((i, j))
    assert flat, f"no sample of {op.qualified_name} has a number to differentiate by"

    def function(*tensors: Tensor) -> Any:
        given = [list(v) if isinstance(v, list) else v for v in args]
        for (i, j), tensor in zip(places, tensors, strict=True):
            if j is None:
                given[i] = tensor
            else:
                given[i][j] = tensor
        return op.run(*given)

    try:
        function(*flat)
    except EngineError as error:
        pytest.fail(f"the sample of {op.qualified_name} does not run: {error}")
    assert gradcheck(function, flat)


def test_eigenvalues_and_vectors_of_symmetric_matrices() -> None:
    matrix = in_float64(SYMMETRIC, differentiated=True)
    eigh = table.find("aten::linalg_eigh")
    assert eigh is not None
    assert gradcheck(lambda m: eigh.run((m + m.mT) / 2, "L"), [matrix])


def test_cholesky_factors_of_symmetric_matrices() -> None:
    matrix = in_float64(SYMMETRIC, differentiated=True)
    cholesky = table.find("aten::linalg_cholesky_ex")
    assert cholesky is not None
    assert gradcheck(lambda m: cholesky.run((m + m.mT) / 2, False, False)[0], [matrix])
