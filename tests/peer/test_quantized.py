"""Quantized models, made afresh by a real PyTorch: the same integers here, and what is saved here runs there."""

import pytest

torch = pytest.importorskip("torch")

import engine  # noqa: E402
import engine.torch as ours  # noqa: E402
from tests.unit.serialize.model_files import archive, method  # noqa: E402
from tests.unit.serialize.quantized.make_files import MODELS, flat, make  # noqa: E402
from tests.unit.serialize.quantized.recorded import compared, recorded  # noqa: E402

pytestmark = pytest.mark.peer


@pytest.fixture(autouse=True)
def rounding():
    torch.backends.quantized.engine = "fbgemm"


@pytest.mark.parametrize("name", MODELS)
def test_models(name, tmp_path):
    make(name, str(tmp_path / f"{name}.pt"))
    model, args, wanted = recorded(tmp_path / f"{name}.pt")
    compared(model(*args), wanted)
    model.save(tmp_path / "again.pt")
    if name == "words":  # it writes numbers of four bits and cannot read them
        return
    there = torch.jit.load(tmp_path / "again.pt")
    results = flat(there(*(torch.from_numpy(arg.numpy()) for arg in args)))
    compared([ours.tensor((r.int_repr() if r.is_quantized else r).detach().numpy()) for r in results], wanted)


OPERATORS = """
    add(q,r,s,z) add_relu(q,r,s,z) mul(q,r,s,z) mul_relu(q,r,s,z) cat([q,r],1,s,z) hardswish(q,s,z) sigmoid(q,s,z)
    elu(q,s,z) celu(q,s,z) leaky_relu(q,.1,False,s,z) softmax(q,-1,1/256,0) add_scalar(q,1.7) add_scalar(q,-40.)
    mul_scalar(q,-.3) matmul(q,r,s,z) max_pool2d(q,[2,2],[2,2],[0,0],[1,1],False) instance_norm(q,w,b,1e-5,s,z)
    batch_norm2d(q,w,b,b,w,1e-5,s,z) group_norm(q,2,w,b,1e-5,s,z) clamp(q,-.5,1.) relu6(q) threshold(q,.3,.1)
"""


@pytest.mark.parametrize("call", OPERATORS.split())
@pytest.mark.parametrize("seed", range(3))
def test_integers_of_operators(call, seed):
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(2, 4, 8, 8, generator=generator) * 2 for _ in range(2))
    w, b = torch.rand(4, generator=generator) + 0.5, torch.randn(4, generator=generator)
    z = int(torch.randint(0, 255, (), generator=generator))

    def result(library):
        given = {"w": w, "b": b} if library is torch else {n: ours.tensor(t.numpy()) for n, t in (("w", w), ("b", b))}
        one, two = (x, y) if library is torch else (ours.tensor(x.numpy()), ours.tensor(y.numpy()))
        given |= {"q": library.quantize_per_tensor(one, 0.043, 77, library.quint8), "s": 0.061, "z": z}
        given |= {"r": library.quantize_per_tensor(two, 0.037, z, library.quint8), "o": library.ops.quantized}
        return eval(f"o.{call}", given)

    here, there = result(ours), result(torch)
    assert (here.int_repr().numpy() == there.int_repr().numpy()).mean() > 0.999
    assert (here.q_scale(), here.q_zero_point()) == (there.q_scale(), there.q_zero_point())


def test_objects_of_its_other_classes_run_there_again(tmp_path):
    make("foreign", str(tmp_path / "foreign.pt"))
    engine.load(tmp_path / "foreign.pt").save(tmp_path / "again.pt")
    old, new = torch.jit.load(tmp_path / "foreign.pt"), torch.jit.load(tmp_path / "again.pt")
    x = torch.randn(2, 8)
    assert torch.equal(old.fancy(x), new.fancy(x)) and old.blocks() == new.blocks() == 1


CELLS = {"lstm": (4, "[h, c]"), "gru": (3, "h"), "rnn_tanh": (1, "h"), "rnn_relu": (1, "h")}


@pytest.mark.parametrize("name", CELLS)
def test_recurrent_cells_of_2019(name, tmp_path):
    gates, states = CELLS[name]
    torch.manual_seed(0)
    parts = [torch.fbgemm_linear_quantize_weight(torch.randn(gates * 5, n)) for n in (7, 5)]
    values = {"x": torch.randn(3, 7), "h": torch.randn(3, 5), "c": torch.randn(3, 5)}
    values |= {f"{word}{n}": part for n, row in enumerate(parts) for word, part in zip("wo", row[:2], strict=True)}
    values |= {f"b{n}": torch.randn(gates * 5) for n in range(2)}
    values |= {f"p{n}": torch.fbgemm_pack_quantized_matrix(values[f"w{n}"]) for n in range(2)}
    numbers = ", ".join(repr(part[place]) for place in (2, 3) for part in parts)
    call = f"torch.quantized_{name}_cell(x, {states}, w0, w1, b0, b1, p0, p1, o0, o1, {numbers})"
    wanted = eval(call, {"torch": torch, **values})
    given = {key: value for key, value in values.items() if key[0] != "p"}
    call = call.replace("p0, p1", "torch.fbgemm_pack_quantized_matrix(w0), torch.fbgemm_pack_quantized_matrix(w1)")
    returns = "Tuple[Tensor, Tensor]" if name == "lstm" else "Tensor"
    code = method(f"return {call}", arguments=", ".join(f"{key}: Tensor" for key in given), returns=returns)
    model = engine.load(archive(tmp_path / "a.pt", "op_version_set = 1\n" + code, version="1"))
    found = model(*(ours.tensor(value.numpy()) for value in given.values()))
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, wanted)), strict=True):
        assert torch.allclose(torch.from_numpy(one.numpy()), other, atol=1e-6)
