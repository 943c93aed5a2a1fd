"""Attributes of tensors and devices.

In: tensors and devices.  Out: ints, bools, strs, devices.
"""

from __future__ import annotations

from engine.aten.dispatch.table import op
from engine.aten.values.tensor import Tensor
from engine.lang.scalars import STRIDED, device

for _name, _type, _body in (
    # name, type, body
    ("device", "Device", lambda a: a.device),
    ("dtype", "int", lambda a: a.dtype.number),
    ("itemsize", "int", lambda a: a.array.itemsize),
    ("nbytes", "int", lambda a: a.array.nbytes),
    ("layout", "Layout", lambda a: STRIDED),
    ("is_cuda", "bool", lambda a: a.device.type == "cuda"),
    ("is_cpu", "bool", lambda a: a.device.type == "cpu"),
    ("is_quantized", "bool", lambda a: a.array.dtype.names is not None),
    ("is_sparse", "bool", lambda a: False),
    ("is_mkldnn", "bool", lambda a: False),
    ("is_meta", "bool", lambda a: a.device.type == "meta"),
    ("is_nested", "bool", lambda a: False),
    ("is_sparse_csr", "bool", lambda a: False),
    ("is_mps", "bool", lambda a: False),
    ("is_xla", "bool", lambda a: False),
    ("is_xpu", "bool", lambda a: False),
    ("is_vulkan", "bool", lambda a: False),
    ("requires_grad", "bool", lambda a: a.requires_grad),
    ("name", "str?", lambda a: None),
):
    op(f"prim::{_name}(Tensor a) -> {_type}", python=_body)
op("prim::data(Tensor(a) a) -> Tensor(a)", python=lambda a: a.data)
op("prim::grad(Tensor a) -> Tensor(*)", python=lambda a: a.grad)


def requires_grad_(tensor: Tensor, requires_grad: bool) -> Tensor:
    """Set `requires_grad`.  Raises OperatorError for dtypes without gradients and for non-leaf tensors."""
    tensor.requires_grad = requires_grad
    return tensor


def get_device(tensor: Tensor) -> int:
    """The index of the tensor's device, -1 on the CPU."""
    index = tensor.device.index
    return -1 if index is None else index


op("aten::get_device(Tensor self) -> int", python=get_device, variants="method")
op("aten::element_size(Tensor self) -> int", python=lambda a: a.array.itemsize, variants="method")
op("aten::is_leaf(Tensor self) -> bool", python=lambda a: a.is_leaf)
op("aten::requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)", python=requires_grad_,
   variants="method")  # fmt: skip

op("prim::type(Device self) -> str", python=lambda d: d.type)
op("prim::index(Device self) -> int?", python=lambda d: d.index)
op("aten::device(str a) -> Device", python=device)
op("aten::device.with_index(str type, int index) -> Device", python=device)
