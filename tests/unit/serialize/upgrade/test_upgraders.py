"""Operators of old archives."""

import io
import zipfile

import numpy as np
import pytest

import engine.torch
from engine.aten.values.tensor import Tensor
from engine.executor.interpreter.interpreter import run_function
from engine.ir.printer import graph_text
from engine.lang.errors import EngineError
from engine.serialize.archive import load_archive, save_archive
from engine.serialize.container.write import ContainerWriter
from engine.serialize.inspect.fix import repack
from engine.serialize.inspect.survey import survey
from engine.serialize.upgrade.upgraders import rewrites_in, upgrader_graphs, upgraders
from tests.unit.serialize.model_files import archive, method

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
    assert b"rounding_mode" in zipfile.ZipFile(file).read("archive/code/__torch__.py")


@pytest.mark.parametrize(
    ("below", "expression", "size"),
    [
        (8, "torch.linspace(0, 1, out=x)", 100),
        (8, "torch.linspace(0, 1, 3, out=x)", 3),
        (9, "torch.logspace(0, 1, None, 2., out=x)", 100),
        (9, "torch.logspace(0, 1, 4)", 4),
    ],
)
def test_steps_had_a_default(below, expression, size):
    result = run(module(below - 1, expression), [0.0], [0.0])
    assert result.shape == (size,)


def test_gelu_into_a_tensor():
    assert run(module(9, "torch.gelu(y, out=x)"), [0.0], [0.0]).tolist() == [0.0]


def test_rewrites_are_visible():
    expression = "torch.mul(torch.div(x, y), torch.div(torch.full([1], 2), 2.))"
    graph = module(3, expression).type.methods["forward"].graph
    assert [str(rewrite) for rewrite in rewrites_in(graph)] == [
        "aten::div is done by div_Tensor_0_3 (code/__torch__.py:7)",
        "aten::full is done by full_0_4 (code/__torch__.py:7)",
        "aten::div is done by div_Scalar_0_3 (code/__torch__.py:7)",
    ]
    assert rewrites_in(module(10, expression).type.methods["forward"].graph) == []
    assert "# div_Tensor_0_3:" in graph_text(graph, source_comments=True)


def test_rewrites_of_a_whole_program(tmp_path):
    code = method("z = torch.div(x, x)", "return torch.div(z, 2)")
    old, new = (archive(tmp_path / f"{version}.pt", code, version=version) for version in ("3", "4"))
    assert [(each.upgrader, each.place) for each in survey(old).rewrites()] == [
        ("div_Tensor_0_3", "code/__torch__.py:7"), ("div_Scalar_0_3", "code/__torch__.py:8"),
    ]  # fmt: skip
    assert survey(new).rewrites() == []
    assert [each.operator for each in repack(old, tmp_path / "out.pt").rewrites] == ["aten::div"] * 2


def test_every_upgrader_tells_what_it_is_for():
    assert set(upgraders()) == set(upgrader_graphs())
    assert upgraders()["div__Scalar_0_3"] == "div_"


@pytest.mark.parametrize(
    "expression", ["torch.div(x, 2)", "torch.div_(x, 2.)", "torch.div(x, y)", "torch.full([2], 4)"]
)
def test_what_is_saved_is_stable(expression):
    first, second = io.BytesIO(), io.BytesIO()
    save_archive(module(3, expression), first)
    save_archive(load_archive(io.BytesIO(first.getvalue())), second)
    assert first.getvalue() == second.getvalue()


def test_code_of_old_archives_begins_with_a_version():
    writer = ContainerWriter("m")
    writer.add("data.pkl", b"\x80\x02c__torch__\nM\nq\0)\x81}(ubq\1.")
    writer.add("code/__torch__.py", ("op_version_set = 1\n" + CODE.format("torch.add(x, y)")).encode())
    writer.add("constants.pkl", b"\x80\x02).")
    writer.add("version", b"1\n")
    assert run(load_archive(io.BytesIO(b"".join(writer.pieces()))), [1.0], [2.0]).tolist() == [3.0]


def test_an_upgrader_that_is_added_reads_what_came_before_it():
    """An operator that is known no more, and one whose meaning was another."""
    upgraders = engine.torch.jit.upgraders
    entries = {
        "_scaled_difference": ("_scaled_difference(Tensor self, Tensor other, Scalar alpha=2) -> Tensor", "o - s * a"),
        "trunc": ("trunc(Tensor self, Tensor other, Scalar alpha=3) -> Tensor", "o + s * a"),
    }
    graphs = {}
    for name, (schema, formula) in entries.items():
        upgraders.add_entry(f"aten::{name}", upgraders.Entry(3, f"{name}_0_2", f"aten::{schema}"))
        text = f"def f(s: Tensor, o: Tensor, a: Union[int, float]):\n    return {formula}\n"
        graphs[f"{name}_0_2"] = str(engine.torch.jit.CompilationUnit(text).f.graph)
    upgraders.populate(graphs)
    try:
        for expression, expected in {
            "torch._scaled_difference(x, y)": [-11, 17], "torch._scaled_difference(x, y, alpha=0.5)": [-0.5, 6.5],
            "torch.trunc(x, y)": [24, -18],
        }.items():  # fmt: skip
            old = module(2, expression)
            assert run(old, [7.0, -7.0], [3.0, 3.0]).tolist() == expected
            target = io.BytesIO()
            save_archive(old, target)
            target.seek(0)
            upgraders.remove(graphs)
            assert run(load_archive(target), [7.0, -7.0], [3.0, 3.0]).tolist() == expected
            upgraders.populate(graphs)
        with pytest.raises(EngineError, match="_scaled_difference"):
            run(module(3, "torch._scaled_difference(x, y)"), [7.0, -7.0], [3.0, 3.0])
    finally:
        upgraders.remove(graphs)
        for name in entries:
            upgraders.remove_entry(f"aten::{name}")
