"""torch.load of files that are not what torch.save writes today: the older format, and what holds more than tensors."""

import io
import struct
import zipfile

import pytest

import engine
import engine.torch as torch
from engine.lang.errors import ArchiveError, UnsupportedTensorError
from tests.unit.serialize.model_files import FILES


@pytest.mark.parametrize("name", ["sd_legacy.pt", "sd_protocol5_legacy.pt"])
def test_the_older_format_gives_the_same_state_dict(name):
    expected, found = torch.load(FILES / "sd_zip.pt"), torch.load(FILES / name)
    assert list(found) == list(expected)
    assert all(torch.equal(found[key], expected[key]) for key in expected)
    assert engine.load(FILES / name).keys() == expected.keys()


def test_shared_storages_of_the_older_format_stay_shared(tmp_path):

    number = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
    view = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0kX\3\0\0\0cpuK\4NtQ"
    oldest = b"ctorch._utils\n_rebuild_tensor\n(" + view + b"K%c(K\2t(K\1ttR"
    value = b"\x80\2](" + oldest % 0 + oldest % 2 + oldest % 0 + b"e."
    data = b"\x80\2" + number + b"\x80\2M\xe9\3." + b"\x80\2}." + value + b"\x80\2](X\1\0\0\0ke."
    (tmp_path / "old.pt").write_bytes(data + struct.pack("<q4f", 4, 1, 2, 3, 4))
    first, second, third = torch.load(tmp_path / "old.pt")
    assert (first.tolist(), second.tolist()) == ([1, 2], [3, 4])
    first.add_(1)
    assert third.tolist() == [2, 3] and not third.requires_grad
    (tmp_path / "cut.pt").write_bytes(data + struct.pack("<q3f", 4, 1, 2, 3))
    with pytest.raises(ArchiveError, match="ends inside its tensors"):
        torch.load(tmp_path / "cut.pt")


@pytest.mark.parametrize("name", ["whole_zip.pt", "whole_legacy.pt"])
@pytest.mark.parametrize("load", [torch.load, torch.jit.load, engine.load])
def test_a_pickled_module_is_told_as_one(name, load):
    with pytest.raises(ArchiveError, match="is not a TorchScript archive: it is a pickled module") as caught:
        load(FILES / name)
    assert any("tsrepl extract" in hint for hint in caught.value.hints)


def test_a_checkpoint_with_more_than_tensors_says_how_to_come_to_these():
    with pytest.raises(ArchiveError, match=r"'argparse\.Namespace' is not allowed") as caught:
        torch.load(FILES / "ckpt.pt")
    (hint,) = caught.value.hints
    assert "engine.load_weights(" in hint and caught.value.record == "data.pkl"
    with pytest.raises(UnsupportedTensorError, match="which programs here cannot have"):
        torch.load(FILES / "quantized.pt")


def test_a_value_of_others_can_be_shown(tmp_path):
    with zipfile.ZipFile(tmp_path / "v.pt", "w") as file:
        file.writestr("v/data.pkl", b"\x80\2}X\1\0\0\0acnumpy\ndtype\n)Rs.")
        file.writestr("v/version", "3\n")
    with pytest.raises(ArchiveError, match=r"'numpy\.dtype' is not allowed") as caught:
        torch.load(tmp_path / "v.pt")
    assert caught.value.hints == (f"see it: tsrepl show {tmp_path / 'v.pt'}",)


def test_file_objects_keep_their_own_reason():
    with pytest.raises(ArchiveError):
        torch.load(io.BytesIO((FILES / "whole_zip.pt").read_bytes()))
