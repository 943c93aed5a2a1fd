"""Every operator that a release of PyTorch registered is there, is read as another, or is refused with a reason."""

import io
import re
from pathlib import Path

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.dispatch import table
from engine.lang.missing_operators import NOT_YET, reason_for, where_missing_ones_are
from engine.serialize.upgrade.earlier import EARLIER
from engine.serialize.upgrade.upgraders import UPGRADES, upgrader_graphs
from tests.unit.serialize.model_files import archive, method

ROOT = Path(__file__).parents[2]
ROWS = [line.split() for line in (ROOT / "tests" / "table" / "registered.txt").read_text().splitlines()]
SPANS = {f"{row[2]}::{name}": (row[0], row[1]) for row in ROWS for name in row[3:]}
PAGE = (ROOT / "docs" / "operators.md").read_text()


def test_the_list_reaches_from_the_first_release_to_the_last():
    assert len(SPANS) > 2_500
    assert {first for first, _ in SPANS.values()} >= {"1.0", "1.5", "2.0", "2.13"}
    assert SPANS["aten::gesv"][1] == "1.0"


def test_each_is_there_lowered_or_refused_with_a_reason():
    for name in SPANS:
        lowered = name.removeprefix("aten::") in UPGRADES and name.startswith("aten::")
        if not table.overloads(name) and not lowered:
            assert reason_for(name), name
            assert f"`{name}`" in PAGE, name


def test_none_of_them_is_said_to_come_from_an_extension():
    for name in SPANS:
        assert "extension" not in where_missing_ones_are([name]), name
    assert "extension" in where_missing_ones_are(["aten::sin", "mylib::fancy"])


def test_what_is_lowered_was_registered_and_is_not_there():
    for name in EARLIER:
        assert f"aten::{name}" in SPANS, name
        assert not table.overloads(f"aten::{name}"), name
        assert f"| `aten::{name}` |" in PAGE


def test_few_have_no_better_reason_than_that_nobody_wrote_them():
    lowered = {f"aten::{name}" for name in EARLIER}
    assert sum(reason_for(name) == NOT_YET for name in SPANS if not table.overloads(name) and name not in lowered) < 60
    assert reason_for("mylib::fancy") == ""


def test_upgraders_hold_no_loops():
    # They are inlined while the caller's loops have a form of their own.
    for name, graph in upgrader_graphs().items():
        assert not list(graph.find_all_nodes("prim::Loop")), name


X = torch.tensor([[1.5, 2.0, -3.0], [4.0, 5.0, 6.0]])
SQUARE = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
WEIGHT = torch.tensor([[10, 20, 30], [1, 2, 3]], dtype=torch.int8)
CASES = [
    *((f"torch._cast_{kind}(x, False)", X, X.to(dtype)) for kind, dtype in (
        ("Byte", torch.uint8), ("Char", torch.int8), ("Double", torch.float64), ("Float", torch.float32),
        ("Half", torch.float16), ("Int", torch.int32), ("Long", torch.int64), ("Short", torch.int16))
      if dtype is not torch.uint8),
    ("torch._cast_Byte(torch.abs(x), False)", X, X.abs().to(torch.uint8)),
    ("torch._argmax(x, 1, False)", X, X.argmax(1)),
    ("torch.max_values(x, [1], False)", X, X.amax(1)),
    ("torch._s_where(torch.gt(x, 0), x, torch.neg(x))", X, X.abs()),
    ("torch._dim_arange(x, 1)", X, torch.arange(3)),
    ("torch._unsafe_view(x, [3, 2])", X, X.reshape(3, 2)),
    ("(torch.gesv(x, x))[0]", SQUARE, torch.eye(2)),
    ("(torch.symeig(x, False, True))[0]", SQUARE, torch.linalg.eigvalsh(SQUARE)),
    ("torch.potrs(x, torch.cholesky(x, False), False)", SQUARE, torch.eye(2)),
    ("torch.rfft(x, 1, False, True)", X, torch.view_as_real(torch.fft.rfft(X))),
    ("torch.ifft(torch.fft(torch.stack([x, x], -1), 1, False), 1, False)", X, torch.stack([X, X], -1)),
    ("torch.matrix_rank(x, True)", SQUARE, torch.tensor(2)),
    ("torch.__interpolate(torch.reshape(x, [1, 2, 3]), None, 2., \"nearest\", None)", X,
     X.reshape(1, 2, 3).repeat_interleave(2, -1)),
    ("torch._no_grad_fill_(x, 3.)", X.clone(), torch.full((2, 3), 3.0)),
    ("torch.fbgemm_linear_fp16_weight(x, torch.fbgemm_pack_gemm_matrix_fp16(x), torch.zeros([2], dtype=6))", X,
     X @ X.t()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "x", "expected"), CASES, ids=[case[0][:40] for case in CASES])
def test_programs_that_call_them_run_and_are_saved(tmp_path, text, x, expected):
    header = "op_version_set = 1\nimport __torch__.other\n"
    path = archive(tmp_path / "a.pt", header + method(f"return {text}"), version="1")
    module = torch.jit.load(path)
    kept = io.BytesIO()
    torch.jit.save(module, kept)
    kept.seek(0)
    for each in (module, torch.jit.load(kept)):
        result = each(x.clone())
        assert result.dtype == expected.dtype
        assert torch.allclose(result.to(torch.float32), expected.to(torch.float32), atol=1e-2)


def test_linear_layers_of_int8_of_2019(tmp_path):
    text = (
        "torch.fbgemm_linear_int8_weight(x, CONSTANTS.c0, CONSTANTS.c0, CONSTANTS.c0, 0.1, 0, "
        'torch.zeros([2], dtype=6, layout=0, device=torch.device("cpu")))'
    )
    weight = "torch.tensor([[10, 20, 30], [1, 2, 3]], dtype=1)"
    path = archive(tmp_path / "a.pt", method(f"return {text.replace('CONSTANTS.c0', weight)}"), version="1")
    found = torch.jit.load(path)(X)
    assert torch.allclose(found, X @ (WEIGHT.to(torch.float32) * 0.1).t(), atol=0.2)


def _product(x, numbers, scale, zero, bias):
    """The linear layer on integers: `x` in eight bits over its range, which holds zero."""
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    step = (high - low) / 255
    shift = round(-low / step)
    held = (np.clip(np.rint(x / step) + shift, 0, 255) - shift) * step
    return held @ ((numbers.astype(np.float64) - zero) * scale).T + bias


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _lstm(of_input, of_state, h, c):
    enter, forget, cell, leave = np.split(of_input + of_state, 4, 1)
    kept = _sigmoid(forget) * c + _sigmoid(enter) * np.tanh(cell)
    return _sigmoid(leave) * np.tanh(kept), kept


def _gru(of_input, of_state, h, c):
    (reset, update, new), (r, u, n) = np.split(of_input, 3, 1), np.split(of_state, 3, 1)
    found = np.tanh(new + _sigmoid(reset + r) * n)
    return ((h - found) * _sigmoid(update + u) + found,)


CELLS = {
    "lstm": (4, "[h, c]", _lstm), "gru": (3, "h", _gru),
    "rnn_tanh": (1, "h", lambda x, y, h, c: (np.tanh(x + y),)),
    "rnn_relu": (1, "h", lambda x, y, h, c: (np.maximum(x + y, 0),)),
}  # fmt: skip


@pytest.mark.parametrize("name", CELLS)
def test_recurrent_cells_of_int8_of_2019(name, tmp_path):
    gates, states, cell = CELLS[name]
    random = np.random.default_rng(3)
    x, h, c = (random.normal(size=(3, n)).astype(np.float32) for n in (7, 5, 5))
    wi, wh = (random.integers(-128, 128, (5 * gates, n)).astype(np.int8) for n in (7, 5))
    bi, bh = random.normal(size=(2, 5 * gates)).astype(np.float32)
    words = "x, h, c, wi, wh, bi, bh".split(", ")
    body = (
        f"return torch.quantized_{name}_cell(x, {states}, wi, wh, bi, bh, torch.fbgemm_pack_quantized_matrix(wi), "
        f"torch.fbgemm_pack_quantized_matrix(wh), wi, wh, 0.02, 0.03, 4, -7)"
    )
    returns = "Tuple[Tensor, Tensor]" if name == "lstm" else "Tensor"
    code = method(body, arguments=", ".join(f"{word}: Tensor" for word in words), returns=returns)
    module = torch.jit.load(archive(tmp_path / "a.pt", "op_version_set = 1\n" + code, version="1"))
    kept = io.BytesIO()
    torch.jit.save(module, kept)
    kept.seek(0)
    wanted = cell(_product(x, wi, 0.02, 4, bi), _product(h, wh, 0.03, -7, bh), h, c)
    for each in (module, torch.jit.load(kept)):
        found = each(*map(torch.tensor, (x, h, c, wi, wh, bi, bh)))
        for one, other in zip(found if name == "lstm" else (found,), wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), other, atol=1e-4)


HEADERS = [
    "op_version_set = 0\n", "op_version_set=1\nimport __torch__.a\nimport __torch__.b.c\n\n",
    "\n\nop_version_set = 1\n", "import __torch__.a\n", "op_version_set = 1\r\nimport __torch__.a\r\n",
]  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_headers_of_code_of_2018_and_2019_are_skipped(tmp_path, header):
    path = archive(tmp_path / "a.pt", header + method("return torch.add(x, 1)"), version="1")
    assert torch.equal(torch.jit.load(path)(X), X + 1)


def test_the_line_of_an_error_counts_the_header(tmp_path):
    path = archive(tmp_path / "a.pt", "op_version_set = 1\nimport __torch__.a\n" + method("return torch.add(x, 1"))
    with pytest.raises(RuntimeError, match=re.escape("line 9")):
        torch.jit.load(path)(X)
