"""Operators that PyTorch once had, or has for its own use, as what they do with the operators here.

In: nothing.  Out: TorchScript functions by operator, each with the argument names of the release that had it.
"""

from __future__ import annotations

from typing import Final

_CASTS: Final = {
    "Byte": "uint8", "Char": "int8", "Double": "float64", "Float": "float32", "Half": "float16", "Int": "int32",
    "Long": "int64", "Short": "int16",
}  # fmt: skip
_CAST: Final = """
def {name}(self: Tensor, non_blocking: bool=False) -> Tensor:
    return self.to(dtype=torch.{dtype}, non_blocking=non_blocking)
"""
_RENAMED: Final = """
_argmax(self: Tensor, dim: int, keepdim: bool=False) -> Tensor = torch.argmax(self, dim, keepdim)
_argmin(self: Tensor, dim: int, keepdim: bool=False) -> Tensor = torch.argmin(self, dim, keepdim)
max_values(self: Tensor, dim: List[int], keepdim: bool=False) -> Tensor = torch.amax(self, dim, keepdim)
min_values(self: Tensor, dim: List[int], keepdim: bool=False) -> Tensor = torch.amin(self, dim, keepdim)
native_clone(self: Tensor) -> Tensor = torch.clone(self)
native_pow(self: Tensor, exponent: number) -> Tensor = torch.pow(self, exponent)
native_resize_as_(self: Tensor, the_template: Tensor) -> Tensor = self.resize_(the_template.size())
native_zero_(self: Tensor) -> Tensor = self.zero_()
s_copy_(self: Tensor, src: Tensor, non_blocking: bool=False) -> Tensor = self.copy_(src, non_blocking)
_s_where(condition: Tensor, self: Tensor, other: Tensor) -> Tensor = torch.where(condition, self, other)
_unsafe_view(self: Tensor, size: List[int]) -> Tensor = torch.reshape(self, size)
_dim_arange(like: Tensor, dim: int) -> Tensor = torch.arange(like.size(dim), device=like.device)
_unique(self: Tensor, sorted: bool=True, return_inverse: bool=False) -> Tuple[Tensor, Tensor] = torch._unique2(self, sorted, return_inverse)[:2]
_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: number=1, alpha: number=1) -> Tensor = torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
_addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: number=1, alpha: number=1) -> Tensor = torch.addr(self, vec1, vec2, beta=beta, alpha=alpha)
_bmm(self: Tensor, mat2: Tensor, *, deterministic: bool=False) -> Tensor = torch.bmm(self, mat2)
_cat(tensors: List[Tensor], dim: int=0) -> Tensor = torch.cat(tensors, dim)
_cumprod(self: Tensor, dim: int) -> Tensor = torch.cumprod(self, dim)
_cumsum(self: Tensor, dim: int) -> Tensor = torch.cumsum(self, dim)
_std(self: Tensor, unbiased: bool=True) -> Tensor = torch.std(self, unbiased)
_var(self: Tensor, unbiased: bool=True) -> Tensor = torch.var(self, unbiased)
_max(self: Tensor, dim: int, keepdim: bool=False) -> Tuple[Tensor, Tensor] = torch.max(self, dim, keepdim)
_min(self: Tensor, dim: int, keepdim: bool=False) -> Tuple[Tensor, Tensor] = torch.min(self, dim, keepdim)
_mode(self: Tensor, dim: int=-1, keepdim: bool=False) -> Tuple[Tensor, Tensor] = torch.mode(self, dim, keepdim)
sizes(self: Tensor) -> List[int] = self.size()
strides(self: Tensor) -> List[int] = self.stride()
btrifact(self: Tensor, *, pivot: bool=True) -> Tuple[Tensor, Tensor] = torch.linalg_lu_factor(self, pivot=pivot)
btrisolve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor = torch.lu_solve(self, LU_data, LU_pivots)
gesv(self: Tensor, A: Tensor) -> Tuple[Tensor, Tensor] = (torch.linalg_solve(A, self), torch.linalg_lu_factor(A)[0])
solve(self: Tensor, A: Tensor) -> Tuple[Tensor, Tensor] = (torch.linalg_solve(A, self), torch.linalg_lu_factor(A)[0])
potri(self: Tensor, upper: bool=True) -> Tensor = torch.cholesky_inverse(self, upper)
potrs(self: Tensor, input2: Tensor, upper: bool=True) -> Tensor = torch.cholesky_solve(self, input2, upper)
trtrs(self: Tensor, A: Tensor, upper: bool=True, transpose: bool=False, unitriangular: bool=False) -> Tuple[Tensor, Tensor] = torch.triangular_solve(self, A, upper, transpose, unitriangular)
quantize_linear(self: Tensor, scale: float, zero_point: int, dtype: int) -> Tensor = torch.quantize_per_tensor(self, scale, zero_point, dtype)
quantize_linear_per_channel(self: Tensor, scales: Tensor, zero_points: Tensor, axis: List[int], dtype: int) -> Tensor = torch.quantize_per_channel(self, scales, zero_points, axis[0], dtype)
_per_tensor_affine_qtensor(self: Tensor, scale: float, zero_point: int) -> Tensor = torch._make_per_tensor_quantized_tensor(self, scale, zero_point)
conv_dilated2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor]=None, stride: List[int]=[1, 1], padding: List[int]=[0, 0], dilation: List[int]=[1, 1]) -> Tensor = torch.conv2d(self, weight, bias, stride, padding, dilation)
slow_conv_dilated2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor]=None, stride: List[int]=[1, 1], padding: List[int]=[0, 0], dilation: List[int]=[1, 1]) -> Tensor = torch.conv2d(self, weight, bias, stride, padding, dilation)
conv_dilated3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor]=None, stride: List[int]=[1, 1, 1], padding: List[int]=[0, 0, 0], dilation: List[int]=[1, 1, 1]) -> Tensor = torch.conv3d(self, weight, bias, stride, padding, dilation)
slow_conv_dilated3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor]=None, stride: List[int]=[1, 1, 1], padding: List[int]=[0, 0, 0], dilation: List[int]=[1, 1, 1]) -> Tensor = torch.conv3d(self, weight, bias, stride, padding, dilation)
slow_conv3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor]=None, stride: List[int]=[1, 1, 1], padding: List[int]=[0, 0, 0]) -> Tensor = torch.conv3d(self, weight, bias, stride, padding)
_adaptive_avg_pool2d(self: Tensor, output_size: List[int]) -> Tensor = torch.adaptive_avg_pool2d(self, output_size)
_adaptive_avg_pool3d(self: Tensor, output_size: List[int]) -> Tensor = torch.adaptive_avg_pool3d(self, output_size)
_stack(tensors: List[Tensor], dim: int=0) -> Tensor = torch.stack(tensors, dim)
_logcumsumexp(self: Tensor, dim: int) -> Tensor = torch.logcumsumexp(self, dim)
_aminmax(self: Tensor) -> Tuple[Tensor, Tensor] = (torch.amin(self), torch.amax(self))
_conj(self: Tensor) -> Tensor = torch.conj(self)
_conj_physical(self: Tensor) -> Tensor = torch.conj_physical(self)
_neg_view(self: Tensor) -> Tensor = torch.neg(self)
_reshape_alias(self: Tensor, size: List[int], stride: List[int]) -> Tensor = torch.reshape(self, size)
_is_all_true(self: Tensor) -> Tensor = torch.all(self)
_is_any_true(self: Tensor) -> Tensor = torch.any(self)
_safe_softmax(self: Tensor, dim: int, dtype: Optional[int]=None) -> Tensor = torch.nan_to_num(torch.softmax(self, dim, dtype), 0.)
_no_grad_fill_(tensor: Tensor, val: float) -> Tensor = tensor.detach().fill_(val)
_no_grad_zero_(tensor: Tensor) -> Tensor = tensor.detach().zero_()
_no_grad_uniform_(tensor: Tensor, a: float, b: float) -> Tensor = tensor.detach().uniform_(a, b)
_no_grad_normal_(tensor: Tensor, mean: float, std: float) -> Tensor = tensor.detach().normal_(mean, std)
fbgemm_is_cpu_supported() -> bool = True
fbgemm_pack_gemm_matrix_fp16(input: Tensor) -> Tensor = input.to(dtype=torch.float16)
fbgemm_linear_fp16_weight(input: Tensor, packed_weight: Tensor, bias: Tensor) -> Tensor = torch.linear(input, packed_weight.to(dtype=torch.float32), bias)
fbgemm_linear_fp16_weight_fp32_activation(input: Tensor, packed_weight: Tensor, bias: Optional[Tensor]) -> Tensor = torch.linear(input, packed_weight.to(dtype=torch.float32), bias)
"""  # noqa: E501  (a table)
"""One line each: a signature, and the expression that it stands for."""
_FFT: Final = """
def {name}(self: Tensor, signal_ndim: int, normalized: bool=False) -> Tensor:
    dims = [-1] if signal_ndim == 1 else [-2, -1] if signal_ndim == 2 else [-3, -2, -1]
    norm = "ortho" if normalized else "backward"
    return torch.view_as_real(torch.fft_{name}n(torch.view_as_complex(self.contiguous()), None, dims, norm))
"""
_RFFT: Final = """
def rfft(self: Tensor, signal_ndim: int, normalized: bool=False, onesided: bool=True) -> Tensor:
    dims = [-1] if signal_ndim == 1 else [-2, -1] if signal_ndim == 2 else [-3, -2, -1]
    norm = "ortho" if normalized else "backward"
    if onesided:
        return torch.view_as_real(torch.fft_rfftn(self, None, dims, norm))
    return torch.view_as_real(torch.fft_fftn(self, None, dims, norm))
"""
_SYMEIG: Final = """
def symeig(self: Tensor, eigenvectors: bool=False, upper: bool=True) -> Tuple[Tensor, Tensor]:
    half = "U" if upper else "L"
    if eigenvectors:
        return torch.linalg_eigh(self, half)
    return torch.linalg_eigvalsh(self, half), torch.empty([0], dtype=self.dtype)
"""
_RANK: Final = """
def matrix_rank(self: Tensor, symmetric: bool=False) -> Tensor:
    return torch.linalg_matrix_rank(self, hermitian=symmetric)
def matrix_rank_tol(self: Tensor, tol: float, symmetric: bool=False) -> Tensor:
    return torch.linalg_matrix_rank(self, tol, symmetric)
"""
_INT8: Final = """
def {name}(
    input: Tensor, weight: Tensor, packed: Tensor, col_offsets: Tensor, weight_scale: number, weight_zero_point: number,
    bias: Tensor
) -> Tensor:
    quantized = torch._make_per_tensor_quantized_tensor(weight, float(weight_scale), int(weight_zero_point))
    return torch.ops.quantized.linear_dynamic(input, torch.ops.quantized.linear_prepack(quantized, bias))
"""
_INT8_CELL: Final = """
def quantized_{name}_cell(
    input: Tensor, hx: {states}, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, packed_ih: Tensor,
    packed_hh: Tensor, col_offsets_ih: Tensor, col_offsets_hh: Tensor, scale_ih: number, scale_hh: number,
    zero_point_ih: number, zero_point_hh: number
) -> {result}:
    ih = torch._make_per_tensor_quantized_tensor(w_ih, float(scale_ih), int(zero_point_ih))
    hh = torch._make_per_tensor_quantized_tensor(w_hh, float(scale_hh), int(zero_point_hh))
    of_input = torch.ops.quantized.linear_dynamic(input, torch.ops.quantized.linear_prepack(ih, b_ih))
    of_state = torch.ops.quantized.linear_dynamic({state}, torch.ops.quantized.linear_prepack(hh, b_hh))
    {steps}
"""
_TYPES: Final = {"states": "Tensor", "result": "Tensor", "state": "hx"}
_CELLS: Final = {
    "lstm": {
        "states": "List[Tensor]", "result": "Tuple[Tensor, Tensor]", "state": "hx[0]", "steps": """
    enter, forget, cell, leave = torch.chunk(of_input + of_state, 4, 1)
    kept = torch.sigmoid(forget) * hx[1] + torch.sigmoid(enter) * torch.tanh(cell)
    return torch.sigmoid(leave) * torch.tanh(kept), kept"""},
    "gru": {**_TYPES, "steps": """
    reset, update, new = torch.chunk(of_input, 3, 1)
    reset_state, update_state, new_state = torch.chunk(of_state, 3, 1)
    found = torch.tanh(new + torch.sigmoid(reset + reset_state) * new_state)
    return (hx - found) * torch.sigmoid(update + update_state) + found"""},
    "rnn_tanh": {**_TYPES, "steps": "return torch.tanh(of_input + of_state)"},
    "rnn_relu": {**_TYPES, "steps": "return torch.relu(of_input + of_state)"},
}  # fmt: skip
"""Recurrent cells with their weights in int8 -> the types of their states and results, and what they do with both
products."""
_PACK: Final = """
def fbgemm_pack_quantized_matrix(input: Tensor) -> Tensor:
    return torch.empty([0], dtype=torch.uint8)
def fbgemm_pack_quantized_matrix_KN(input: Tensor, K: int, N: int) -> Tensor:
    return torch.empty([0], dtype=torch.uint8)
"""
"""Packed forms are never looked into: the products are of the weights themselves."""


_SIZES: Final = (
    ("", "Optional[int]", "Optional[float]"), ("_scale_list", "Optional[int]", "Optional[List[float]]"),
    ("_size_list", "Optional[List[int]]", "Optional[float]"),
    ("_size_list_scale_list", "Optional[List[int]]", "Optional[List[float]]"),
)  # fmt: skip
_INTERPOLATE: Final = """
def __interpolate{suffix}(
    input: Tensor, size: {size}=None, scale_factor: {scale}=None, mode: str="nearest",
    align_corners: Optional[bool]=None, recompute_scale_factor: Optional[bool]=None, antialias: bool=False
) -> Tensor:
    return torch.nn.functional.interpolate(
        input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
    )
"""
_UPSAMPLE: Final = """
def __upsample{suffix}(
    input: Tensor, size: {size}=None, scale_factor: {scale}=None, mode: str="nearest",
    align_corners: Optional[bool]=None
) -> Tensor:
    return torch.nn.functional.interpolate(input, size, scale_factor, mode, align_corners)
"""


def _overloads(text: str) -> str:
    """The function for each form of its sizes."""
    return "".join(text.format(suffix=suffix, size=size, scale=scale).rstrip() for suffix, size, scale in _SIZES)


def _written_out(line: str) -> tuple[str, str]:
    """The operator's name, and the function that the line stands for."""
    signature, _, expression = line.partition(" = ")
    return signature.partition("(")[0], f"\ndef {signature}:\n    return {expression}\n"


EARLIER: Final[dict[str, str]] = {
    **{f"_cast_{kind}": _CAST.format(name=f"_cast_{kind}", dtype=dtype) for kind, dtype in _CASTS.items()},
    "__interpolate": _overloads(_INTERPOLATE), "__upsample": _overloads(_UPSAMPLE),
    **dict(map(_written_out, _RENAMED.strip().split("\n"))),
    "fft": _FFT.format(name="fft"), "ifft": _FFT.format(name="ifft"), "rfft": _RFFT, "symeig": _SYMEIG,
    "matrix_rank": _RANK, "fbgemm_pack_quantized_matrix": _PACK,
    **{name: _INT8.format(name=name) for name in ("fbgemm_linear_int8_weight",
                                                  "fbgemm_linear_int8_weight_fp32_activation")},
    **{f"quantized_{name}_cell": _INT8_CELL.format(name=name, **parts) for name, parts in _CELLS.items()},
}  # fmt: skip
