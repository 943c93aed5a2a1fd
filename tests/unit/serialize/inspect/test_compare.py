"""How files differ: code, names alone, attributes, weights."""

import shutil

import numpy as np
import pytest

import engine
from engine.lang.errors import ArchiveError
from engine.serialize.inspect.compare import ValueChange, compare
from engine.serialize.inspect.extract import write_arrays
from tests.unit.serialize.model_files import ARCHIVES, FILES, archive, method


@pytest.mark.parametrize("name", ["everything", "function", "constants"])
def test_a_file_is_the_same_as_itself(name, tmp_path):
    path = ARCHIVES / f"{name}.pt"
    assert compare(path, path).is_same
    shutil.copy(path, tmp_path / "copy.pt")
    assert compare(path, tmp_path / "copy.pt").is_same


@pytest.mark.parametrize("name", ["sd_zip.pt", "whole_legacy.pt", "dtypes.pt"])
def test_so_is_a_file_of_weights(name):
    found = compare(FILES / name, FILES / name)
    assert found.is_same and found.compared > 0


def of(tmp_path, filename, *lines, **options):
    return archive(tmp_path / filename, method(*lines, **options))


def test_code_that_differs(tmp_path):
    found = compare(of(tmp_path, "a.pt", "return torch.relu(x)"), of(tmp_path, "b.pt", "return torch.tanh(x)"))
    (change,) = found.code
    assert change.paths == ("forward",) and not change.same_graph
    assert "torch.relu(x)" in change.before and "torch.tanh(x)" in change.after
    assert not found.values and not found.weights


def test_names_alone(tmp_path):
    a = of(
        tmp_path, "a.pt", "y = torch.relu(x)", "z = torch.neg(x)", "return torch.add(torch.add(y, y), torch.add(z, z))"
    )
    b = of(
        tmp_path, "b.pt", "p = torch.relu(x)", "q = torch.neg(x)", "return torch.add(torch.add(p, p), torch.add(q, q))"
    )
    (change,) = compare(a, b).code
    assert change.same_graph


def test_methods_that_only_one_has(tmp_path):
    a = of(tmp_path, "a.pt", "return x", name="old")
    b = of(tmp_path, "b.pt", "return x", name="new")
    assert [(c.paths, c.before is None, c.after is None) for c in compare(a, b).code] == [
        (("old",), False, True), (("new",), True, False),
    ]  # fmt: skip


def test_attributes_and_weights(tmp_path):
    module = engine.jit.load(FILES / "dev.pt", map_location="cpu")
    module.s = "cuda:7"
    with engine.no_grad():
        module.w[1] = 3.0
    module.save(str(tmp_path / "new.pt"))
    found = compare(FILES / "dev.pt", tmp_path / "new.pt")
    assert found.values == (ValueChange("s", "'cuda:0'", "'cuda:7'"),)
    (weight,) = found.weights
    assert (weight.path, weight.most, weight.different, weight.count) == ("w", 2.0, 1, 2)
    assert not found.code


def arrays(path, **named):
    write_arrays(str(path), {name: (array.dtype.name, array) for name, array in named.items()})
    return path


def test_shapes_dtypes_and_numbers_that_are_none(tmp_path):
    ones, nan = np.ones(3, np.float32), np.array([np.nan, 1], np.float32)
    a = arrays(tmp_path / "a.safetensors", same=ones, shape=ones, dtype=ones, gone=ones, nan=nan, inf=nan)
    b = arrays(tmp_path / "b.safetensors", same=ones, shape=ones[:2], dtype=ones.astype("f8"), new=ones, nan=nan,
               inf=np.array([np.nan, np.inf], np.float32))  # fmt: skip
    found = {each.path: each for each in compare(a, b).weights}
    assert set(found) == {"shape", "dtype", "gone", "new", "inf"}
    assert (found["shape"].before, found["shape"].after) == ("float32 3", "float32 2")
    assert (found["dtype"].after, found["dtype"].different) == ("float64 3", 0)
    assert found["gone"].after is None and found["new"].before is None
    assert (found["inf"].most, found["inf"].different) == (float("inf"), 1)


def test_a_program_and_its_weights_can_be_compared(tmp_path):
    write_arrays(str(tmp_path / "w.npz"), {"w": ("float32", np.ones(2, np.float32))})
    found = compare(FILES / "dev.pt", tmp_path / "w.npz")
    assert not found.weights and found.compared == 1 and found.facts[0].path == "kind of file"


def test_what_is_neither_program_nor_weights(tmp_path):
    with pytest.raises(ArchiveError, match=r"torch\.export"):
        compare(FILES / "exported.pt2", FILES / "dev.pt")
