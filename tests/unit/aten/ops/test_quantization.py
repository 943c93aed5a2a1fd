"""Quantized tensors and the operators on them: `quantized_values.txt` has what PyTorch says of each expression."""

from pathlib import Path

import numpy as np
import pytest

import engine
import engine.torch as torch
from engine.aten.values.hooks import HOOKS
from engine.lang.errors import OperatorDtypeError, OperatorError

RECORDED = (Path(__file__).parent / "quantized_values.txt").read_text().split(">>> ")[1:]
SCRIPTED = """
def double(x, scale: float, zero: int):
    q = torch.quantize_per_tensor(x, scale, zero, 13)
    r = torch.ops.quantized.add(q, q, scale * 2, zero)
    return r.relu(), r.dtype, q.is_quantized, q.q_scale()

def dense(x, w, b):
    packed = torch.ops.quantized.linear_prepack(w, b)
    weight, bias = torch.ops.quantized.linear_unpack(packed)
    return torch.ops.quantized.linear_dynamic(x, packed, True), weight
"""


def names():
    x = torch.tensor([[0.1, -2.3, 3.0, 0.55], [1.0, 2.0, -0.5, 9.0]])
    q = torch.quantize_per_tensor(x, 0.1, 30, torch.quint8)
    c = torch.quantize_per_channel(x, torch.tensor([0.1, 0.2]), torch.tensor([3, -4]), 0, torch.qint8)
    i = torch.quantize_per_tensor(x, 1e-5, 0, torch.qint32)
    return {"torch": torch, "x": x, "q": q, "c": c, "i": i, "q4": q.reshape(1, 2, 2, 2)}


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda text: text.split("\n")[0][:60])
def test_values_are_those_of_pytorch(recorded):
    expression, _, wanted = recorded.partition("\n")
    assert repr(eval(expression, names())).replace("engine.torch", "torch") == wanted.rstrip("\n")


@pytest.mark.parametrize("expression", ["q + q", "q.sum()", "q.exp()", "q.argmax()", "torch.matmul(q, q.t())"])
def test_operators_without_a_form_for_them_refuse(expression):
    with pytest.raises(OperatorDtypeError, match="from the 'QuantizedCPU' backend"):
        eval(expression, names())


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("q.float()", "not allowed, please use dequantize"),
        ("x.clone().copy_(q)", "not allowed, please use dequantize"),
        ("c.t()", "possible only on uniformly quantized"),
        ("c.reshape(4, 2)", "length of scales must equal to channel, expected 4 got, 2"),
        ("c.q_scale()", "kPerTensorAffine to be true"),
        ("q.q_per_channel_axis()", "kPerChannelAffine"),
        ("q.tolist()", "load_scalar"),
        ("torch.quantize_per_tensor(x, 0.1, 300, torch.quint8)", "300 is above upper bound"),
        ("torch.quantize_per_tensor(x, 0.1, 0, torch.int8)", "ScalarType Char is not supported"),
        ("torch.quantize_per_tensor(x.double(), 0.1, 0, torch.qint8)", "only works on Float Tensor, got Double"),
        ("torch.quantize_per_channel(x, torch.ones(3), torch.ones(3).long(), 0, torch.qint8)", "expected 2 got 3"),
        (
            "torch.quantize_per_channel(x, torch.ones(2), torch.ones(2).long(), 2, torch.qint8)",
            "Channel axis out of range",
        ),
        ("torch.ops.quantized.add(q, c, 0.1, 0)", "kPerTensorAffine"),
        ("torch.ops.quantized.linear_prepack(x, None)", "wants a quantized weight"),
    ],
)
def test_what_cannot_be_is_refused(expression, message):
    with pytest.raises(OperatorError, match=message):
        eval(expression, names())


def test_numbers_between_two_integers_go_to_the_even_one_after_the_zero_point_is_added():
    halves = torch.tensor([0.25, 0.75, 1.25, -0.25])
    found = torch.quantize_per_tensor(halves, 0.5, 3, torch.quint8).int_repr().tolist()
    assert found == [4, 4, 6, 2]


def test_quantizers_go_with_views_and_copies():
    q = names()["q"]
    shown = [q[1:], q.t(), q.reshape(8), q.unsqueeze(0), q.clone(), q.flip([0]), q[:, [0, 2]], torch.cat([q, q])]
    assert all(each.q_scale() == 0.1 and each.q_zero_point() == 30 for each in shown)
    assert q[1:].untyped_storage() is q.untyped_storage()


def test_a_row_with_its_own_scale_has_that_alone():
    row = names()["c"][0]
    assert (row.qscheme(), row.q_zero_point()) == (torch.per_tensor_affine, 3)
    assert row.q_scale() == float(np.float32(0.1))
    with pytest.raises(OperatorError, match="only on uniformly quantized"):
        names()["c"][:, 1:]


def test_programs_print_them(capsys):
    unit = engine.CompilationUnit("def f(x):\n  print(torch.quantize_per_tensor(x, 0.5, 3, 13))\n")
    unit.f(torch.tensor([0.5, -1.0]))
    wanted = " 0.5000\n-1.0000\n[ QuantizedCPUQUInt8Type{2}, qscheme: per_tensor_affine, scale: 0.5, zero_point: 3 ]\n"
    assert capsys.readouterr().out == wanted


def test_a_write_to_a_view_is_seen():
    q = names()["q"]
    q[0].fill_(2.0)
    q[1, :2] = torch.tensor([0.5, 1.0])
    assert q.dequantize().tolist()[0] == [2.0] * 4 or np.allclose(q.dequantize().tolist()[0], 2.0)
    assert q.int_repr()[1, :2].tolist() == [35, 40]


def test_without_quantized_tensors_nobody_looks_for_them():
    assert not HOOKS.quantized
    names()
    assert HOOKS.quantized and HOOKS.devices


def test_programs_have_them():
    unit = engine.CompilationUnit(SCRIPTED)
    x = torch.tensor([[0.5, -1.0, 2.0]])
    for _ in range(3):  # plans change with the calls
        r, d, is_quantized, scale = unit.double(x, 0.1, 10)
        assert (r.int_repr().tolist(), d, is_quantized, scale) == ([[15, 10, 30]], 13, True, 0.1)
    w = torch.quantize_per_tensor(torch.ones(2, 3), 0.01, 0, torch.qint8)
    y, weight = unit.dense(x, w, torch.zeros(2))
    np.testing.assert_allclose(y.numpy(), [[1.5, 1.5]], rtol=0.02)
    assert weight.int_repr().tolist() == [[100] * 3] * 2


def test_gradients_end_at_quantized_tensors():
    x = torch.ones(3, requires_grad=True)
    q = torch.quantize_per_tensor(x * 2, 0.5, 0, torch.quint8)
    assert not q.requires_grad and not q.dequantize().requires_grad


def test_state_dicts_with_them_are_saved_and_loaded(tmp_path):
    values = {name: names()[name] for name in "qci"}
    torch.save(values, tmp_path / "v.pt")
    found = torch.load(tmp_path / "v.pt")
    assert all(found[name].equal(values[name]) for name in "qi")
    assert found["c"].q_per_channel_scales().tolist() == values["c"].q_per_channel_scales().tolist()


def test_rounding_lets_gradients_through_where_nothing_is_cut_off() -> None:
    scale, zero = torch.tensor([0.1, 1.0]), torch.tensor([0, 2], dtype=torch.int32)
    x = torch.tensor([[0.04, 1.4, 9.0], [-3.0, 1.4, 13.0]], requires_grad=True)
    y = torch.fake_quantize_per_channel_affine(x, scale, zero, 0, 0, 15)
    (y * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    torch.testing.assert_close(y.detach(), torch.tensor([[0.0, 1.4, 1.5], [-2.0, 1.0, 13.0]]))
    assert x.grad.tolist() == [[1.0, 2.0, 0.0], [0.0, 2.0, 3.0]]
