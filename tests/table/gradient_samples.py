"""Arguments to try gradients with where those that a schema gives do not do: distinct numbers, shapes that fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor, tensor
from engine.lang import scalars
from tests.table.samples import INDEX, PLACES, arguments_for, copied, floats, mask

X = floats(2, 3)
Y = floats(2, 3, seed=1)
M = floats(2, 3, 3) + tensor(2 * np.eye(3, dtype=np.float32))
IMAGE = {1: floats(1, 2, 5), 2: floats(1, 2, 5, 4), 3: floats(1, 1, 4, 3, 5)}
"""(batch, channels, *space) by dimensions of the space."""
TWOS = {n: [2] * n for n in (1, 2, 3)}
SYMMETRIC = tensor(np.array([[2.0, 0.5, 0.25], [0.5, 3.0, 0.75], [0.25, 0.75, 5.0]], np.float32))
KERNEL = floats(4, 1, 2, 2, seed=3)
_CONV: tuple[Any, ...] = (floats(1, 2, 4, 4), KERNEL, floats(4, seed=4), [1, 2], [1, 0], [1, 1], False, [0, 0], 2)


def _recurrent(gates: int, cell: Tensor | None = None) -> tuple[Any, ...]:
    """Arguments of a recurrent layer: input and states, weights, biases, whether it runs backwards."""
    weights = [floats(2 * gates, *size, seed=i) - 0.5 for i, size in enumerate([(3,), (2,), (), ()])]
    return floats(3, 2, 3), floats(2, 2, seed=5), cell, *weights, False


CORNERS = np.array([[[0, 5, 2], [-1, 3, 3]], [[1, 1, -1], [4, 0, 5]]])
"""Places in an image of 6 elements (corners, batch, count), -1 for nowhere."""
_BAG = tensor([0, 1, 3, 2, 0])
_OFFSETS = tensor([0, 2])

LISTED: dict[str, tuple[Any, ...]] = {
    "where.self": (mask(2, 3), X, Y), "where.ScalarOther": (mask(2, 3), X, 2), "where.ScalarSelf": (mask(2, 3), 2, X),
    "matmul": (floats(2, 1, 2, 3), floats(4, 3, 2, seed=1)), "linalg_matmul": (floats(2, 2, 3), floats(3, 2, seed=1)),
    "_pinv": (X, None, None, False), "_all_pole": (floats(2, 3, 6), floats(3, 2, seed=1)),
    "linalg_solve_triangular": (SYMMETRIC, floats(3, 2), True, True, False),
    "mm": (X, floats(3, 2, seed=1)), "bmm": (floats(2, 2, 3), floats(2, 3, 2, seed=1)),
    "mv": (X, floats(3, seed=1)), "dot": (floats(3), floats(3, seed=1)), "outer": (floats(2), floats(3, seed=1)),
    "ger": (floats(2), floats(3, seed=1)), "linear": (floats(2, 2, 3), floats(4, 3, seed=1), floats(4, seed=2)),
    "einsum": ("bij,...jk,ii->b...k", [floats(2, 3, 2), floats(4, 2, 2, seed=1), floats(3, 3, seed=2)], None),
    "repeat": (X, [2, 1, 3]), "tile": (X, [2]), "repeat_interleave.self_Tensor": (X, tensor([2, 0, 1]), 1, None),
    "pixel_shuffle": (floats(1, 4, 2, 2), 2), "pixel_unshuffle": (floats(1, 1, 4, 4), 2),
    "prelu": (X - 0.5, floats(3, seed=1)), "_prelu_kernel": (X - 0.5, floats(3, seed=1)),
    "glu": (floats(2, 4), 1),
    "index.Tensor": (X, [None, tensor([0, 2, 0])]), "index.Tensor_hacked_twin": (X, [tensor([1, 1]), tensor([0, 2])]),
    "index_select": (X, 1, tensor(INDEX)), "gather": (X, 1, tensor(PLACES), False),
    "scatter.src": (X, 1, tensor([[0, 1, 2], [2, 0, 1]]), Y), "take": (X, tensor([0, 4])),
    "put": (X, tensor([0, 4]), floats(2, seed=1), False),
    "masked_select": (X, mask(2, 3)), "masked_scatter": (X, mask(2, 3), floats(6, seed=1)),
    "select_scatter": (X, floats(2, seed=1), 1, 2), "slice_scatter": (X, floats(2, 2, seed=1), 1, 0, 3, 2),
    "diagonal_scatter": (X, floats(2, seed=1), 1, 0, 1),
    "as_strided_scatter": (X, floats(2, 2, seed=1), [2, 2], [3, 1], 1),
    "norm.ScalarOpt_dim_dtype": (X, 3, [1], False, 7), "norm.ScalarOpt_dtype": (X, 1.5, 7),
    "to.device": (X, scalars.CPU, 7, False, False, None), "to.dtype": (X, 7, False, False, None),
    "embedding": (floats(4, 2), tensor([[0, 1], [3, 0]]), -1, False, False),
    "special_zeta": (X + 1, Y), "special_zeta.self_scalar": (2, Y), "special_zeta.other_scalar": (X + 1, 2),
    "embedding_bag": (floats(4, 2), _BAG, _OFFSETS, False, 0, False, floats(5, seed=1), False),
    "embedding_bag.padding_idx": (floats(4, 2), _BAG, _OFFSETS, False, 1, False, None, False, 1),
    "native_layer_norm": (X, [3], floats(3, seed=1), floats(3, seed=2), 0.1),
    "native_batch_norm": (floats(4, 3), floats(3, seed=1), floats(3, seed=2), None, None, True, 0.1, 0.1),
    "convolution": _CONV, "_convolution": (*_CONV, False, False, False, False),
    "_convolution.deprecated": (*_CONV, False, False, False),
    "convolution_backward": (floats(1, 4, 5, 2), *_CONV[:2], None, *_CONV[3:], [True, True, True]),
    **{f"_{kind}_layer": _recurrent(gates) for kind, gates in (("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1))},
    "_lstm_layer": _recurrent(4, floats(2, 2, seed=6)),
    "im2col": (floats(1, 2, 4, 4), [2, 2], [1, 2], [1, 0], [1, 2]),
    "col2im": (floats(1, 4, 4), [4, 4], [2, 2], [1, 1], [0, 0], [2, 2]),
    "constant_pad_nd": (X, [1, -1, 2, 0], 0.5),
    "fractional_max_pool2d": (floats(1, 1, 4, 4), [2, 2], [2, 2], floats(1, 1, 2)),
    "fractional_max_pool3d": (floats(1, 1, 4, 4, 4), [2, 2, 2], [2, 2, 2], floats(1, 1, 3)),
    "linalg_inv_ex": (M, False), "_solve": (M, floats(2, 3, 2)), "_det": (M,), "_slogdet": (M,),
    "linalg_eigh": (SYMMETRIC, "L"), "view_as_complex": (floats(3, 2),), "view_copy": (X, [3, 2]),
    "div.Tensor_mode": (X, Y, None), "div.Scalar_mode": (X, 2, None), "divide.Tensor_mode": (X, Y, None),
    "divide.Scalar_mode": (X, 2, None),
    "slice_backward": (floats(2, 2), [2, 3], 1, 0, 3, 2), "select_backward": (floats(2), [2, 3], 1, 2),
    "_diagonal_backward": (floats(2), [2, 3], 1, 0, 1), "_unfold_backward": (floats(2, 2, 2), [2, 3], 1, 2, 1),
    "linalg_eig": (M[:, :2, :2] + tensor([[0.0, 2.0], [1.0, 0.0]]),), "linalg_matrix_exp": (M,), "matrix_exp": (M,),
    "linalg_lu_solve": (M, tensor(np.array([[2, 2, 3], [1, 3, 3]], np.int32)), floats(2, 3, 2), True, False),
    "lu_unpack": (M, tensor(np.array([[2, 2, 3], [1, 3, 3]], np.int32)), True, True),
    "linalg_qr": (floats(2, 4, 3, seed=7), "reduced"), "linalg_lu": (floats(2, 4, 3, seed=7), True),
    "linalg_lu_factor": (floats(2, 3, 4, seed=7), True), "_svd": (floats(2, 4, 3, seed=7), False),
    "linalg_lstsq": (floats(2, 4, 3, seed=7), floats(2, 4, 2, seed=8), None, "gels"),
    "cholesky_solve": (floats(3, 2), SYMMETRIC, False), "cholesky_inverse": (SYMMETRIC, False),
    "index_reduce": (X, 1, tensor(INDEX), floats(2, 2, seed=1), "mean", True), "nanmedian": (X,),
    "_roi_align": (IMAGE[2], tensor([[0.0, 0.5, 0.5, 3.0, 2.5]]), 1.0, 2, 2, 2, True),
    "_roi_align_backward": (floats(1, 2, 2, 2), tensor([[0.0, 0.5, 0.5, 3.0, 2.5]]), 1.0, 2, 2, [1, 2, 5, 4], 2, True),
    "_linear_to_input": (floats(2, 3), floats(3, 4)),
    "_linear_to_weight": (floats(2, 3), floats(2, 4), floats(3, 4)),
    "_nll_loss": (floats(3, 4), tensor([1, 0, 3]), None, 1, 0),
    "_nll_loss_backward": (floats(3), floats(3, 4), tensor([1, 0, 3]), None, 0, 0),
    "_put_back": (floats(1, 2, 2), floats(1, 2, 3), tensor([[[0, 3], [4, 1]]]), 2),
    "_group_norm": (floats(2, 4, 3), 2, floats(4, seed=1), floats(4, seed=2), 1e-5),
    "_corner_sums": (floats(2, 2, 6), tensor(CORNERS), floats(2, 2, 3, seed=1)),
    "_corners_back": (floats(2, 2, 3), tensor(CORNERS), floats(2, 2, 3, seed=1), 6),
    "_corner_products": (floats(2, 2, 3), floats(2, 2, 6, seed=1), tensor(CORNERS)),
    "_root_distances": (floats(3, 2), floats(4, 2, seed=1)),
    "_alignments": (floats(3, 1, 3), tensor([[1, 2]]), tensor([3]), tensor([2]), 0),
    "scatter_reduce.two": (X, 1, tensor(PLACES), Y, "prod", True),
    "clamp.Tensor": (X, floats(2, 3, seed=3) - 0.1, floats(2, 3, seed=4) + 0.1),
}  # fmt: skip

for _n in (1, 2, 3):
    _image, _two, _space = IMAGE[_n], TWOS[_n], list(IMAGE[_n].shape[2:])
    _ones, _zeros = [1] * _n, [0] * _n
    _pooled = _image[(..., *[slice(0, s // 2) for s in _space])]
    _more = (None,) if _n > 1 else ()
    LISTED[f"avg_pool{_n}d"] = (_image, _two, _two, _zeros, False, True, *_more)
    LISTED[f"avg_pool{_n}d_backward"] = (_pooled, _image, _two, _two, _zeros, False, True, *_more)
    LISTED[f"max_pool{_n}d_with_indices"] = (_image, _two, _ones, _ones, _ones, False)
    LISTED[f"adaptive_max_pool{_n}d"] = (_image, [3] * _n)
    for _name in ("reflection", "replication"):
        _grown = floats(*_image.shape[:2], *(s + 3 for s in _space), seed=5)
        LISTED[f"{_name}_pad{_n}d"] = (_image, [1, 2] * _n)
        LISTED[f"{_name}_pad{_n}d_backward"] = (_grown, _image, [1, 2] * _n)

_RESAMPLED = {
    "upsample_nearest1d": 1, "upsample_nearest2d": 2, "upsample_nearest3d": 3, "_upsample_nearest_exact1d": 1,
    "_upsample_nearest_exact2d": 2, "_upsample_nearest_exact3d": 3, "upsample_linear1d": 1, "upsample_bilinear2d": 2,
    "upsample_trilinear3d": 3, "upsample_bicubic2d": 2, "_upsample_bilinear2d_aa": 2, "_upsample_bicubic2d_aa": 2,
    "_upsample_lanczos2d_aa": 2,
}  # fmt: skip
for _name, _n in _RESAMPLED.items():
    _align = () if "nearest" in _name else (False,)
    _sizes, _scales = [7, 3, 4][:_n], [None] * _n
    _target = floats(*IMAGE[_n].shape[:2], *_sizes, seed=6)
    LISTED[_name] = (IMAGE[_n], _sizes, *_align, *_scales)
    LISTED[f"{_name}_backward"] = (_target, _sizes, list(IMAGE[_n].shape), *_align, *_scales)


def gradient_arguments_for(op: Op) -> tuple[Any, ...]:
    """Every argument of one call, in order; tensors are fresh copies."""
    listed = LISTED.get(op.qualified_name.removeprefix("aten::"))
    return arguments_for(op) if listed is None else tuple(copied(value) for value in listed)


def in_float64(value: Any, differentiated: bool) -> Any:
    """The sample as doubles, of which gradients are asked for."""
    return in_dtype(value, differentiated, xp.FLOAT64)


def in_dtype(value: Any, differentiated: bool, dtype: xp.NumpyDtype) -> Any:
    """The sample with floats of this dtype, of which gradients are asked for."""
    if isinstance(value, list):
        return [in_dtype(v, differentiated, dtype) for v in value]
    if not isinstance(value, Tensor) or value.array.dtype not in xp.FLOATING:
        return value
    with np.errstate(over="ignore"):
        return Tensor(value.array.astype(dtype), requires_grad=differentiated)
