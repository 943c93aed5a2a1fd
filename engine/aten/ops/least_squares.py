"""Least squares: the X for which A X comes nearest to B.

In: arrays (*batch, rows, columns) of float32, float64 or complex types.  Out: arrays.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.aten.dispatch.table import op, out_form
from engine.aten.kernels import singular_values
from engine.aten.ops.linalg import adjoint
from engine.aten.values import xp
from engine.aten.values.promotion import wide
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError


def lstsq(self: Array, b: Array, rcond: float | None, driver: str | None) -> tuple[Array, Array, Array, Array]:
    if self.ndim < 2:
        raise OperatorError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise OperatorError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if wide(self.dtype) is not self.dtype:
        raise OperatorError("This function doesn't handle types other than float and double")
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise OperatorError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    vector = b.ndim == self.ndim - 1 and b.shape == self.shape[:-1]
    columns = b[..., None] if vector else b
    u, s, vh = singular_values.svd(self, False)
    limit = (float(xp.limits(self.dtype).eps) * max(self.shape[-2:]) if rcond is None else rcond) * s[..., :1]
    inverse = np.where(s > limit, 1 / np.where(s == 0, 1, s), 0)
    solution = adjoint(vh) @ (inverse[..., None] * (adjoint(u) @ columns))
    rank = np.sum(s > limit, axis=-1).astype(np.int64)
    rows, n = self.shape[-2:]
    residuals = np.empty(0, s.dtype)
    if rows > n and driver != "gelsy" and np.all(rank == n):
        residuals = np.sum(np.abs(self @ solution - columns) ** 2, axis=-2).astype(s.dtype)
    solution = (solution[..., 0] if vector else solution).astype(self.dtype)
    rank = np.empty(0, np.int64) if driver == "gels" else rank
    return solution, residuals, rank, s if driver in ("gelsd", "gelss") else np.empty(0, s.dtype)


_LSTSQ: Final = "_lstsq_backward(grads[0], grads[1], self, b, solution)"
out_form(op("aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, "
            "Tensor residuals, Tensor rank, Tensor singular_values)", kernel=lstsq,
            gradient={"self": f"{_LSTSQ}[0]", "b": f"{_LSTSQ}[1]"}, data_dependent=True, autocast="full"),
         "out", "solution residuals rank singular_values")  # fmt: skip
