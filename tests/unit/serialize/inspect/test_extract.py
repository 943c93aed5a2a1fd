"""Files made from files: weights in both formats, folders, and names that lead out of them."""

import numpy as np
import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.inspect.extract import extract_folder, extract_weights
from engine.serialize.inspect.safetensors import write_safetensors
from engine.serialize.inspect.survey import survey
from engine.serialize.inspect.weights import load_weights, open_weights
from tests.unit.serialize.model_files import ARCHIVES, FILES, archive, method


@pytest.mark.parametrize("ending", ["safetensors", "npz"])
def test_weights_of_a_program_and_of_a_state_dict(ending, tmp_path):
    target = str(tmp_path / f"w.{ending}")
    extract_weights(FILES / "mobile.ptl", target)
    assert {n: tuple(t.shape) for n, t in load_weights(target).items()} == {"a.weight": (3, 4), "a.bias": (3,)}
    extract_weights(FILES / "sd_legacy.pt", target)
    expected, found = load_weights(FILES / "sd_zip.pt"), load_weights(target)
    assert {n: t.tolist() for n, t in found.items()} == {n: t.tolist() for n, t in expected.items()}


def test_dtypes_that_a_format_has_no_name_for(tmp_path):
    extract_weights(FILES / "dtypes.pt", str(tmp_path / "w.npz"))
    with np.load(tmp_path / "w.npz") as found:
        assert {name: found[name].dtype.name for name in ("f8", "bf", "u16", "c")} == {
            "f8": "float32", "bf": "float32", "u16": "uint16", "c": "complex64",
        }  # fmt: skip
    extract_weights(FILES / "dtypes.pt", str(tmp_path / "w.safetensors"))
    with open_weights(tmp_path / "w.safetensors") as weights:
        assert weights.entries["f8"].dtype == "float8_e4m3fn"


def test_a_number_stays_a_number(tmp_path):
    path = ARCHIVES / "everything.pt"
    written = extract_weights(path, str(tmp_path / "w.safetensors"))
    shapes = {name: tuple(tensor.shape) for name, _, tensor in survey(path).tensors()}
    assert {name: array.shape for name, (_, array) in written.items()} == shapes


def test_a_folder(tmp_path):
    target = tmp_path / "out"
    files = dict(extract_folder(ARCHIVES / "constants.pt", str(target)))
    assert {"constants.npz"} < set(files) and any(name.startswith("code/") for name in files)
    assert not any(name.endswith(".debug_pkl") for name in files)
    for name, size in files.items():
        assert (target / name).stat().st_size == size


def test_extra_files_come_along(tmp_path):
    path = archive(tmp_path / "m.pt", method("return x"), extra={"extra/a/labels.txt": "cat"}.items())
    extract_folder(path, str(tmp_path / "out"))
    assert (tmp_path / "out" / "extra" / "a" / "labels.txt").read_text() == "cat"


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ArchiveError, match="is not empty"):
        extract_folder(FILES / "dev.pt", str(tmp_path))
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArchiveError, match="is a file, not a folder"):
        extract_folder(FILES / "dev.pt", str(tmp_path / "link"))
    assert {each.name for each in tmp_path.iterdir()} == {"mine.txt", "link"}


@pytest.mark.parametrize("name", ["extra/con.txt", "extra/a\nb", "extra/ends.", "extra/a:b", "extra/" + "x" * 250])
def test_names_that_mean_something_else_somewhere_are_refused(name, tmp_path):
    path = archive(tmp_path / "m.pt", method("return x"), extra={name: "x"}.items())
    with pytest.raises(ArchiveError):
        extract_folder(path, str(tmp_path / "out"))


@pytest.mark.parametrize("name", ["extra/../../evil.txt", "/etc/evil", "extra/./x", "..\\evil"])
def test_names_that_lead_out_of_the_folder_are_refused(name, tmp_path):
    path = archive(tmp_path / "m.pt", method("return x"), extra={name: "x"}.items())
    with pytest.raises(ArchiveError):
        extract_folder(path, str(tmp_path / "out"))
    assert not list(tmp_path.rglob("*evil*"))


def test_names_of_tensors_are_no_paths(tmp_path):
    write_safetensors(str(tmp_path / "w.safetensors"), {"../../evil": ("float32", np.ones(1, np.float32))}, {})
    extract_weights(tmp_path / "w.safetensors", str(tmp_path / "w.npz"))
    with np.load(tmp_path / "w.npz") as found:
        assert found.files == [".._.._evil"]


def test_a_file_without_tensors(tmp_path):
    with pytest.raises(ArchiveError, match="holds no tensors"):
        extract_weights(archive(tmp_path / "m.pt", method("return x")), str(tmp_path / "w.npz"))
