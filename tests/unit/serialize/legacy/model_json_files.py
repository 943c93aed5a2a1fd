"""Archives described by model.json, written by hand as its description has it."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from typing import Any

import numpy as np

NET = """op_version_set = 1
def forward(self,
    x: Tensor) -> Tensor:
  _0 = self.fc
  _1 = (_0).forward(x, )
  _2 = torch.add(_1, CONSTANTS.c3, alpha=1)
  return torch.mul(_2, self.scale)
def numbers(self, d: Dict[str, int]) -> Tuple[int, str, int]:
  return (d["a"] + (self.table)["k"], self.name, (self.ints)[1])
def halved(self, x: Tensor) -> Tensor:
  return torch.div(x, 2)
def numbered(self) -> Tensor:
  _0 = getattr(self.seq, "0")
  return (_0).forward(self.point.x, )
"""
LINEAR = """op_version_set = 1
def forward(self, input: Tensor) -> Tensor:
  return torch.add(torch.matmul(input, torch.t(self.weight)), self.bias, alpha=1)
"""
RELU = "op_version_set = 1\ndef forward(self, input: Tensor) -> Tensor:\n  return torch.relu(input)\n"
POINT = "op_version_set = 1\nclass Point:\n  x : Tensor\n  y : int\n"
WEIGHT = np.arange(12, dtype="<f4").reshape(4, 3) / 10
BIAS = np.array([-1, 2, 3, 4], "<f4")


def tensor(key: str, kind: str, dims: list[int], strides: list[int], offset: int = 0, grad: bool = False) -> Any:
    """A description of a tensor; protobuf writes 64-bit numbers as text."""
    return {
        "dims": list(map(str, dims)), "strides": list(map(str, strides)), "offset": str(offset), "dataType": kind,
        "requiresGrad": grad, "data": {"key": key}, "device": "cpu",
    }  # fmt: skip


def model() -> Any:
    linear = {
        "name": "fc", "torchscriptArena": {"key": "code/fc.py"},
        "parameters": [{"name": "weight", "tensorId": "0", "isBuffer": False}, {"name": "bias", "tensorId": "1"}],
        "attributes": [{"name": "training", "type": "bool", "id": "6"}],
    }  # fmt: skip
    relu = {"name": "0", "torchscriptArena": {"key": "code/relu.py"}}
    attributes = [
        {"name": "scale", "type": "float", "id": "0"}, {"name": "ints", "type": "List[int]", "id": 1},
        {"name": "table", "type": "Dict[str, int]", "id": 2}, {"name": "name", "type": "str", "id": 3},
        {"name": "t", "type": "Tensor", "id": 4}, {"name": "none", "type": "Optional[int]", "id": -1},
        {"name": "point", "type": "__torch__.Point", "id": 5}, {"name": "count", "type": "Tensor", "id": 4},
    ]  # fmt: skip
    return {
        "protoVersion": "5",
        "tensors": [
            tensor("tensors/0", "FLOAT", [4, 3], [3, 1], grad=True), tensor("tensors/1", "FLOAT", [4], [1], grad=True),
            tensor("tensors/2", "INT64", [], []), tensor("tensors/1", "FLOAT", [4], [0], 1),
        ],
        "mainModule": {
            "name": "Net", "torchscriptArena": {"key": "code/Net.py"},
            "submodules": [linear, {"name": "seq", "submodules": [relu]}],
            "parameters": [{"name": "count", "tensorId": "2", "isBuffer": True}], "attributes": attributes,
        },
    }  # fmt: skip


def pickled() -> bytes:
    """(2.5, [1, 2, 3], {"k": 7}, "abc", tensor 3, Point(tensor 1, 3), True)"""
    tensors = [b"ctorch.jit._pickle\nbuild_tensor_from_id\n(K" + bytes([n]) + b"tR" for n in (3, 1)]
    return b"".join((
        b"\x80\x02(G", struct.pack(">d", 2.5), b"ctorch.jit._pickle\nbuild_intlist\n(](K\x01K\x02K\x03etR",
        b"}(X\x01\0\0\0kK\x07u", b"X\x03\0\0\0abc", tensors[0],
        b"c__torch__\nPoint\n)\x81}(X\x01\0\0\0x", tensors[1], b"X\x01\0\0\0yK\x03ub", b"\x88t.",
    ))  # fmt: skip


def archive(described: Any, attributes: bytes | None = None, **records: str) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("Net/version", "1\n")
        z.writestr("Net/model.json", described if isinstance(described, str) else json.dumps(described))
        z.writestr("Net/attributes.pkl", pickled() if attributes is None else attributes)
        for index, array in enumerate((WEIGHT, BIAS, np.array([5], "<i8"))):
            z.writestr(f"Net/tensors/{index}", array.tobytes())
        for name, text in {"Net": NET, "fc": LINEAR, "relu": RELU, **records}.items():
            z.writestr(f"Net/code/{name}.py", text)
        z.writestr("Net/libs/__torch__.py", POINT)
    file.seek(0)
    return file
