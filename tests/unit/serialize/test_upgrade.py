"""Operators of old archives."""

import io

import numpy as np
import pytest

from engine.aten.tensor import Tensor
from engine.executor.interpreter import run_function
from engine.serialize.archive import load_archive, save_archive
from engine.serialize.container_write import ContainerWriter

CODE = """class M(Module):
  __parameters__ = []
  __buffers__ = []
  def forward(self: __torch__.M,
    x: Tensor,
    y: Tensor) -> Tensor:
    return {}
"""


def module(version, expression):
    writer = ContainerWriter("m")
    writer.add("data.pkl", b"\x80\x02c__torch__\nM\nq\0)\x81}(ubq\1.")
    writer.add("code/__torch__.py", CODE.format(expression).encode())
    writer.add("constants.pkl", b"\x80\x02).")
    writer.add("version", f"{version}\n".encode())
    return load_archive(io.BytesIO(b"".join(writer.pieces())))


def run(module, x, y):
    arrays = [Tensor(np.array(value)) for value in (x, y)]
    return run_function(module.type.methods["forward"], [module, *arrays]).array


@pytest.mark.parametrize(
    ("version", "expression", "expected"),
    [
        (3, "torch.div(x, y)", [3, -3]),
        (4, "torch.div(x, y)", [3.5, -3.5]),
        (3, "torch.div(x, 2)", [3, -3]),
        (3, "torch.div(x, 2.)", [3.5, -3.5]),
        (4, "torch.div(x, 2)", [3.5, -3.5]),
        (3, "torch.div_(x, y)", [3, -3]),
    ],
)
def test_division(version, expression, expected):
    result = run(module(version, expression), [7, -7], [2, 2])
    assert result.tolist() == expected
    assert (result.dtype.kind == "i") == all(isinstance(value, int) for value in expected)


def test_division_of_numbers_never_changed():
    assert run(module(3, "torch.mul(x, torch.div(7, 2))"), [2.0], [0.0]).tolist() == [7.0]


@pytest.mark.parametrize(("version", "kind"), [(4, "f"), (5, "i")])
def test_full(version, kind):
    assert run(module(version, "torch.full([2], 4)"), [0], [0]).dtype.kind == kind


def test_saving_writes_what_it_did_then():
    file = io.BytesIO()
    save_archive(module(3, "torch.div(x, y)"), file)
    again = load_archive(io.BytesIO(file.getvalue()))
    assert run(again, [7], [2]).tolist() == [3]
    assert b"rounding_mode" in file.getvalue()
