"""Archives of quantized models, and of objects of other C++ classes: loaded, run, saved again; damaged ones refused.

`quantized/make_files.py` made them with PyTorch, which says what they give.
"""

import io
import pickletools
import zipfile

import numpy as np
import pytest

import engine
import engine.torch as torch
from engine.aten.values.hooks import HOOKS
from engine.executor.interpreter.interpreter import run_function
from engine.lang.errors import ArchiveError
from engine.serialize.archive import load_archive
from engine.serialize.inspect.check import check_archive
from engine.serialize.inspect.compare import compare
from tests.unit.serialize.model_files import FILES
from tests.unit.serialize.quantized.recorded import compared, recorded

FOLDER = FILES.parent / "quantized"
NAMES = sorted(path.stem for path in FOLDER.glob("*.pt"))


def test_there_are_files():
    assert {"dynamic", "images", "recurrent", "words", "foreign"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_they_give_what_pytorch_gives(name, tmp_path):
    model, args, wanted = recorded(FOLDER / f"{name}.pt")
    compared(model(*args), wanted)
    model.save(tmp_path / "m.pt")
    again = engine.load(tmp_path / "m.pt")
    compared(again(*args), wanted)
    first = (tmp_path / "m.pt").read_bytes()
    again.save(tmp_path / "m.pt")
    assert (tmp_path / "m.pt").read_bytes() == first


@pytest.mark.parametrize("name", NAMES)
def test_they_can_be_looked_at_without_being_run(name):
    assert check_archive(FOLDER / f"{name}.pt")
    assert compare(FOLDER / f"{name}.pt", FOLDER / f"{name}.pt").is_same


def test_layers_with_packed_weights_alone_leave_operators_as_they_are(monkeypatch):
    monkeypatch.setattr(HOOKS, "devices", False)  # as in a process whose other tests had no devices
    model, args, _ = recorded(FOLDER / "dynamic.pt")
    model(*args)
    assert not HOOKS.devices


def test_views_of_quantized_tensors_share_their_memory():
    model, _, _ = recorded(FOLDER / "values.pt")
    assert model.view.untyped_storage() is model.a.untyped_storage()
    assert model.view.dequantize().tolist() == model.a.dequantize()[1:, ::2].tolist()


def test_weights_can_be_unpacked():
    model, _, _ = recorded(FOLDER / "images.pt")
    weight, bias = model.c1._weight_bias()
    assert (weight.dtype, weight.qscheme()) == (torch.qint8, torch.per_channel_affine)
    assert tuple(bias.shape) == (weight.shape[0],)


# -- classes that nobody here knows


def test_an_object_of_an_unknown_class_is_kept(tmp_path):
    model, args, wanted = recorded(FOLDER / "foreign.pt")
    compared(model(*args), wanted)
    assert "sparse.LinearPackedParamsBase" in repr(model.p)
    assert model._ivalue.get("several")[0] is model._ivalue.get("p")
    with pytest.raises(RuntimeError, match="there is no operator sparse::qlinear"):
        model.fancy(*args)
    with pytest.raises(RuntimeError, match="no operator sparse::qlinear_unpack"):
        model.blocks()
    model.save(tmp_path / "m.pt")
    with zipfile.ZipFile(tmp_path / "m.pt") as new, zipfile.ZipFile(FOLDER / "foreign.pt") as old:
        text, before = new.read("m/code/__torch__.py").decode(), old.read("foreign/code/__torch__.py").decode()
    assert (
        text[text.index("  def blocks") :].split("\n  def ")[0]
        == before[before.index("  def blocks") :].split("\n  def ")[0]
    )


def test_a_method_of_an_unknown_class_names_it(tmp_path):
    code = (FOLDER / "foreign.pt").read_bytes()
    source = tmp_path / "m.pt"
    with zipfile.ZipFile(io.BytesIO(code)) as old, zipfile.ZipFile(source, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("__torch__.py"):
                data += b"  def sizes(self: __torch__.Foreign) -> int:\n    return (self.p).rows()\n"
                data += b"  def kept(self: __torch__.Foreign) -> Tensor:\n    return (self.p).weight(1, self.w)\n"
            if not name.endswith(".debug_pkl"):
                new.writestr(name, data)
    model = engine.load(source)
    with pytest.raises(RuntimeError, match="the method 'rows' of the class"):
        model.sizes()
    with pytest.raises(RuntimeError, match=r"the method 'weight' of the class '__torch__\.torch\.classes\.sparse"):
        model.kept()
    model.save(tmp_path / "n.pt")
    with zipfile.ZipFile(tmp_path / "n.pt") as file:
        assert "    return (self.p).weight(1, self.w)\n" in file.read("n/code/__torch__.py").decode()


# -- damaged ones


def changed(path, out, changes, rewrite=None):
    """A copy of the archive whose data.pkl has other bytes; each old piece is there."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("/data.pkl"):
                for before, after in changes:
                    assert before in data
                    data = data.replace(before, after, 1)
                data = rewrite(data) if rewrite else data
            new.writestr(name, data)
    return out


def after(data, name, opcode):
    """The place of the first such opcode behind a global name."""
    seen = False
    for op, arg, at in pickletools.genops(data):
        seen = seen or (op.name == "GLOBAL" and name in arg)
        if seen and op.name == opcode:
            return at
    raise AssertionError(f"there is no {opcode} behind {name}")


def put(name, opcode, new):
    """Replace the first such opcode, with its argument of one byte (or eight), behind a global name."""

    def rewrite(data):
        at = after(data, name, opcode)
        width = {"BININT1": 2, "BINFLOAT": 9, "NEWFALSE": 1}[opcode]
        return data[:at] + new + data[at + width :]

    return rewrite


NOT_A_NUMBER = b"N"
DAMAGE = {
    "the scale is none": ("values", "torch per_tensor_affine", "BINFLOAT", NOT_A_NUMBER, "described as another"),
    "the zero point is too large": (
        "values", "torch per_tensor_affine", "BININT1", b"M\xe8\x03", "above upper bound",
    ),
}  # fmt: skip


def load(path):
    return load_archive(path, run=run_function)


@pytest.mark.parametrize("kind", DAMAGE)
def test_odd_quantizers_are_refused(kind, tmp_path):
    name, behind, opcode, new, message = DAMAGE[kind]
    path = changed(FOLDER / f"{name}.pt", tmp_path / "m.pt", [], put(behind, opcode, new))
    with pytest.raises(ArchiveError, match=message) as caught:
        load(path)
    assert caught.value.record == "data.pkl" and caught.value.offset is not None


SCHEMES = [
    (b"per_tensor_affine", b"per_channel_affine", "described as another"),
    (b"ctorch\nper_tensor_affine\n", b"ctorch\nfloat32\n", "does not say how it is quantized"),
    (b"QInt8Storage", b"CharStorage", "a storage of int8|described in two ways"),
    (b"_rebuild_qtensor", b"_rebuild_tensor_v2", "description is damaged"),
]


@pytest.mark.parametrize(("before", "after_", "message"), SCHEMES)
def test_schemes_and_storages_that_do_not_fit_are_refused(before, after_, message, tmp_path):
    path = changed(FOLDER / "values.pt", tmp_path / "m.pt", [(before, after_)])
    with pytest.raises(ArchiveError, match=message) as caught:
        load(path)
    assert caught.value.record == "data.pkl" and caught.value.offset is not None


def test_an_axis_out_of_range_is_refused(tmp_path):
    def rewrite(data):
        places = [at for op, arg, at in pickletools.genops(data) if op.name == "BININT1" and arg == 0]
        start = after(data, "torch per_channel_affine", "GLOBAL")
        closing = [at for op, _, at in pickletools.genops(data) if op.name == "TUPLE" and at > start]
        at = next(
            each for each in places if each + 2 in closing and each > start and data[each + 3 : each + 4] == b"\x89"
        )
        return data[:at] + b"K\x07" + data[at + 2 :]

    path = changed(FOLDER / "values.pt", tmp_path / "m.pt", [], rewrite)
    with pytest.raises(ArchiveError, match="Channel axis out of range") as caught:
        load(path)
    assert caught.value.record == "data.pkl"


STATES = [
    ("dynamic", b"_rebuild_qtensor", b"_rebuild_nested_tensor", "nested"),
    ("words", b"EmbeddingPackedParamsBase", b"LinearPackedParamsBase", "state of a .*Linear|wanted"),
    ("recurrent", b"quantized_dynamic", b"quantized_dynamix", "cells of the kind"),
    ("recurrent", b"CellParamsBase", b"CellParamsBasf", "wanted|has no class"),
]


@pytest.mark.parametrize(("name", "before", "after_", "message"), STATES)
def test_states_of_other_kinds_are_refused(name, before, after_, message, tmp_path):
    path = changed(FOLDER / f"{name}.pt", tmp_path / "m.pt", [(before, after_)])
    with pytest.raises(ArchiveError, match=message) as caught:
        load(path)
    assert caught.value.record == "data.pkl"


@pytest.mark.parametrize("name", NAMES)
def test_bytes_that_are_turned_round_never_end_otherwise(name, tmp_path):
    """Whatever a byte of the state is, it is a load or an ArchiveError."""
    with zipfile.ZipFile(FOLDER / f"{name}.pt") as file:
        data = file.read(f"{name}/data.pkl")
    generator = np.random.default_rng(len(data))
    for _ in range(25):
        at, new = int(generator.integers(2, len(data))), bytes([int(generator.integers(0, 256))])
        path = changed(
            FOLDER / f"{name}.pt", tmp_path / "m.pt", [], lambda d, at=at, new=new: d[:at] + new + d[at + 1 :]
        )
        try:
            load(path)
        except ArchiveError:
            continue
