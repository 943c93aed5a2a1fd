"""The law of gradients: every formula of the table equals finite differences, on the operator's samples in float64."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from engine.aten.autograd import gradcheck
from engine.aten.autograd.formula import NO_FORMULA, NOT_IMPLEMENTED
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.lang.errors import EngineError, OperatorError
from tests.table.gradient_samples import SYMMETRIC, gradient_arguments_for, in_float64

UNTRIED = {
    "aten::imag", "aten::view_as_real", "aten::linalg_eigh", "aten::_alignments", "aten::as_strided_scatter",
    "aten::linalg_cholesky_ex", "aten::cholesky_solve", "aten::cholesky_inverse", "aten::linalg_eig",
    "aten::_rnnt_loss", "aten::_fake_quantize_channels", "aten::to_mkldnn",
}  # fmt: skip
"""The first two take complex numbers, for which there are no finite differences here; the third reads half of a matrix;
the fourth takes its argument for a log-softmax, through which only its gradient is right; of the fifth PyTorch's own
gradient is not the derivative, and ours is PyTorch's; a Cholesky factor, too, is made of half of a matrix, and what is
made of one has a gradient for its other half; complex eigenvectors are known up to a factor; the loss is of single
precision, and its gradient is one of its results; what rounds has the gradient of what it stands for; oneDNN has no
double precision, which finite differences need."""
ENTRIES = [
    e for e in table.entries()
    if any(text not in NO_FORMULA for text in e.gradient.values())
    and e.qualified_name not in UNTRIED and not e.nondeterministic and not any(a.is_write for a in e.schema.arguments)
]  # fmt: skip


def by_name(op: Op) -> str:
    return op.qualified_name


@pytest.mark.parametrize("op", ENTRIES, ids=by_name)
def test_gradients_equal_finite_differences(op: Op) -> None:
    named = [a.name for a in op.schema.arguments]
    known = {name for name, text in op.gradient.items() if text not in NO_FORMULA}
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


PASSED_BY = {f"aten::logical_{name}_" for name in ("not", "and", "or", "xor")} | {"aten::set_.source_Tensor"}
"""Operators that write what gradients do not follow, as in PyTorch."""
WRITING = [
    e for e in table.entries()
    if e.schema.arguments and e.schema.arguments[0].is_write and not e.schema.arguments[0].kwarg_only
    and e.name.startswith("aten::") and not (e.nondeterministic or e.side_effects) and e.name.endswith("_")
    and e.qualified_name not in PASSED_BY
]  # fmt: skip


def test_gradients_through_writes_equal_finite_differences() -> None:
    """Those of the tensor that is written to; operators that cannot give them say so."""
    tried = 0
    for op in WRITING:
        try:
            given = gradient_arguments_for(op.functional or op)
        except (KeyError, TypeError):
            continue
        args = [in_float64(value, i == 0) for i, value in enumerate(given)]
        if not isinstance(args[0], Tensor) or not args[0].requires_grad:
            continue

        def written(leaf: Tensor, op: Op = op, rest: list[Any] = args[1:]) -> Tensor:
            op.run(made := leaf * 1, *rest)
            return made

        try:
            written(args[0])
        except Exception:  # not in doubles, or not in place
            continue
        if op.functional is None or op.functional.gradient or op.functional.gradient_in_place:
            with pytest.raises(OperatorError, match="not implemented") if _is_unknown(op) else nullcontext():
                assert gradcheck(written, [args[0]]), op.qualified_name
            tried += 1
    assert tried > 180


def _is_unknown(op: Op) -> bool:
    """True for operators that are known to have no gradient, and for those whose row says that it is not known."""
    source = op.functional or op
    return op.name in ("aten::_add_relu_",) or source.gradient.get("self") == NOT_IMPLEMENTED


WITHOUT = {"aten::_roi_align", "aten::_roi_align_backward", "aten::_fake_quantize_channels", "aten::_rnnt_loss"}
"""Operators with arguments of which PyTorch, too, gives no gradient, or whose samples take no doubles."""


def test_arguments_without_formula_make_no_difference() -> None:
    """An argument on which the result depends has a formula, or one that says that it is not implemented."""
    tried = 0
    for op in table.entries():
        if not op.gradient or op.nondeterministic or op.schema.is_mutable or op.qualified_name in WITHOUT:
            continue
        try:
            args = [in_float64(value, False) for value in gradient_arguments_for(op)]
        except (KeyError, TypeError):
            continue
        for i, (argument, value) in enumerate(zip(op.schema.arguments, args, strict=True)):
            if argument.name in op.gradient or not isinstance(value, Tensor) or value.array.dtype != np.float64:
                continue
            moved = [Tensor(value.array + 1e-3) if j == i else each for j, each in enumerate(args)]
            for a, b in zip(_arrays(op.run(*args)), _arrays(op.run(*moved)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=f"{op.qualified_name} {argument.name}")
            tried += 1
    assert tried > 4


def _arrays(result: Any) -> list[Any]:
    return [each.array for each in (result if isinstance(result, (tuple, list)) else [result])]


@pytest.mark.parametrize("name", ["igamma", "igammac", "special_zeta"])
def test_gradients_that_are_not_known_raise_where_they_are_needed(name: str) -> None:
    op = table.find(f"aten::{name}")
    assert op is not None
    a, b = (Tensor(np.array([2.0, 3.0]), requires_grad) for requires_grad in (False, True))
    op.run(a, b).sum().backward()
    result = op.run(a.detach().requires_grad_(), b).sum()
    with pytest.raises(OperatorError, match=r"the derivative for .*self' is not implemented"):
        result.backward()
