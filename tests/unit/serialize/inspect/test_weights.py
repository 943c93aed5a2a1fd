"""Weights without programs: every format gives the same tensors, and damaged files are refused."""

import io
import struct
import zipfile

import numpy as np
import pytest

import engine
import engine.torch as torch
from engine.lang.errors import ArchiveError, UnsupportedTensorError
from engine.serialize.inspect.compare import compare
from engine.serialize.inspect.extract import extract_weights
from engine.serialize.inspect.safetensors import read_header, write_safetensors
from engine.serialize.inspect.weights import MOST_OTHERS, load_weights, open_tensors, open_weights
from tests.unit.serialize.model_files import ARCHIVES, FILES, safetensors
from tsrepl.session.programs import show_program

NAMES = ["h16", "a.weight", "a.bias", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"]


def arrays(path, **options):
    return {name: tensor.numpy() for name, tensor in load_weights(path, **options).items()}


@pytest.mark.parametrize(
    "name", ["sd_legacy.pt", "whole_zip.pt", "whole_legacy.pt", "ckpt.pt", "sd_protocol4.pt", "sd_protocol5_legacy.pt"]
)
def test_every_way_to_save_a_module_gives_the_same_tensors(name):
    expected, found = arrays(FILES / "sd_zip.pt"), arrays(FILES / name)
    assert list(expected) == [*NAMES, "bn.num_batches_tracked"]
    assert {n: (a.dtype, a.tolist()) for n, a in found.items()} == {
        n: (a.dtype, a.tolist()) for n, a in expected.items()
    }


def test_they_fit_a_module_with_the_same_names():
    module = engine.jit.load(FILES / "dev.pt", map_location="cpu")
    assert module.load_state_dict({"w": engine.tensor([3.0, 4.0])}) is not None
    assert module.w.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("name", ["dtypes.pt", "dtypes_legacy.pt"])
def test_dtypes_views_and_those_that_no_tensor_has(name):
    with open_weights(FILES / name) as weights:
        found = {
            each.name: (each.dtype, each.array().astype(complex).ravel().tolist()) for each in weights.entries.values()
        }
    assert found["f8"] == ("float8_e4m3fn", [1, 1, 1])
    assert found["u16"] == ("uint16", [1, 65535])
    assert found["bf"] == ("bfloat16", [1, 1])
    assert found["b"] == ("bool", [1, 0])
    assert found["t"] == ("float32", [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11])
    with pytest.raises(ArchiveError, match="'f8' has dtype float8_e4m3fn"):
        load_weights(FILES / name)


def test_a_lone_number_beside_a_state_dict_is_no_part_of_it(tmp_path):
    torch.save({"state_dict": {"w": torch.ones(2)}, "best": torch.tensor(0.5), "epoch": 3}, tmp_path / "c.pt")
    assert list(load_weights(tmp_path / "c.pt")) == ["w"]
    torch.save({"w": torch.ones(2), "b": torch.tensor(0.5), "parts": {"v": torch.ones(1)}}, tmp_path / "s.pt")
    assert list(load_weights(tmp_path / "s.pt")) == ["w", "b", "parts.v"]


def test_values_besides_tensors_are_told(tmp_path):
    state = {"epoch": 3, "hyper": {"lr": 0.1, "betas": [0.9, 0.99]}, "steps": list(range(100)), "w": torch.ones(2)}
    torch.save({**state, "runs": [{"name": "a"}, torch.ones(1)], "none": {}}, tmp_path / "c.pt")
    with open_weights(tmp_path / "c.pt") as weights:
        assert dict(weights.others) == {
            "epoch": "3", "hyper.lr": "0.1", "hyper.betas": "[0.9, 0.99]", "steps": "list of 100", "runs.0.name": "'a'",
            "none": "{}",
        }  # fmt: skip
    with open_weights(FILES / "ckpt.pt") as weights:
        assert dict(weights.others)["args"] == "an instance of argparse.Namespace"
    with open_weights(FILES / "whole_zip.pt") as weights:
        assert weights.others == ()
    torch.save(dict.fromkeys(map(str, range(1000)), 1) | {"w": torch.ones(2)}, tmp_path / "m.pt")
    with open_weights(tmp_path / "m.pt") as weights:
        assert len(weights.others) == MOST_OTHERS


def test_arrays_of_python_objects_are_refused_in_words(tmp_path):
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ArchiveError, match="it holds Python objects, not numbers"):
        load_weights(tmp_path / "o.npy")


def test_checkpoints_tell_their_groups():
    with open_weights(FILES / "ckpt.pt") as weights:
        assert weights.groups == ("state_dict",)
    assert list(load_weights(FILES / "ckpt.pt", key="state_dict")) == [*NAMES, "bn.num_batches_tracked"]
    with pytest.raises(ArchiveError, match="no tensors under 'state_dit'"):
        load_weights(FILES / "ckpt.pt", key="state_dit")


def test_arrays_of_numpy(tmp_path):
    np.savez(tmp_path / "w.npz", a=np.ones(3), b=np.arange(4, dtype=np.int32))
    np.save(tmp_path / "w.npy", np.ones(3, dtype=np.float16))
    assert {name: a.dtype.name for name, a in arrays(tmp_path / "w.npz").items()} == {"a": "float64", "b": "int32"}
    assert arrays(tmp_path / "w.npy")["array"].dtype == np.float16


def test_an_array_that_declares_more_than_the_file_holds_is_refused(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    npy = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + bytes(16)
    (tmp_path / "w.npy").write_bytes(npy)
    with zipfile.ZipFile(tmp_path / "w.npz", "w") as file:
        file.writestr("a.npy", npy)
    for name in ("w.npy", "w.npz"):
        with pytest.raises(ArchiveError, match="more than the file holds"):
            load_weights(tmp_path / name)


def test_arrays_of_objects_are_not_unpickled(tmp_path):
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ArchiveError, match="objects"):
        load_weights(tmp_path / "o.npy")


def test_safetensors_of_every_dtype_come_back(tmp_path):
    path = str(tmp_path / "w.safetensors")
    with open_weights(FILES / "dtypes.pt") as weights:
        written = {name: (each.dtype, each.array()) for name, each in weights.entries.items()}
    write_safetensors(path, written, {"format": "pt"})
    with open_weights(path) as weights:
        assert weights.metadata == {"format": "pt"}
        for name, (dtype, array) in written.items():
            found = weights.entries[name]
            assert (found.dtype, found.shape) == (dtype, array.shape)
            assert found.array().tobytes() == array.tobytes()
    places = read_header(path).tensors.values()
    assert all(each.start % np.dtype("complex64").itemsize == 0 for each in places if each.dtype == "complex64")


def test_safetensors_without_numbers(tmp_path):
    path = str(tmp_path / "w.safetensors")
    write_safetensors(path, {"e": ("float32", np.zeros((0, 3), np.float32)), "s": ("int64", np.array(5))}, {})
    assert {n: a.shape for n, a in arrays(path).items()} == {"e": (0, 3), "s": ()}


BAD_HEADERS = {
    "overlaps": b'{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},'
    b'"b":{"dtype":"U8","shape":[8],"data_offsets":[4,12]}}',
    "unknown dtype": b'{"a":{"dtype":"F3","shape":[2],"data_offsets":[0,8]}}',
    "do not fit": b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}',
    "damaged": b'{"a":{"dtype":"F32","shape":[3]}}',
}


@pytest.mark.parametrize("reason", BAD_HEADERS)
def test_headers_that_make_no_sense_are_refused(reason, tmp_path):
    text = BAD_HEADERS[reason]
    path = tmp_path / "w.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(12))
    with pytest.raises(ArchiveError, match=reason):
        read_header(str(path))


def test_programs_and_others_say_what_they_are(tmp_path):
    with pytest.raises(ArchiveError, match="a program with its weights"):
        load_weights(ARCHIVES / "everything.pt")
    with pytest.raises(ArchiveError, match=r"holds no tensors to read: it is a program of torch\.export"):
        load_weights(FILES / "exported.pt2")
    with pytest.raises(ArchiveError, match="cut off"):
        load_weights(safetensors(tmp_path / "w.safetensors", cut=3))


def pickled(shape, stride, size=16):
    """A state dict with one float tensor of this shape in a storage of four numbers."""

    def numbers(values):
        return b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", v) for v in values) + b"t"

    storage = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" + b"0X\3\0\0\0cpuK\4tQ"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0" + numbers(shape) + numbers(stride)
    tensor += b"\x89ccollections\nOrderedDict\n)RtR"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02}X\1\0\0\0w" + tensor + b"s.")
        archive.writestr("a/data/0", bytes(size))
    return file.getvalue()


def test_tensors_stay_inside_their_storages(tmp_path):
    path = tmp_path / "w.pt"
    path.write_bytes(pickled((2, 2), (2, 1)))
    assert arrays(path)["w"].shape == (2, 2)
    path.write_bytes(pickled((2, 3), (3, 1)))
    with pytest.raises(ArchiveError, match="reaches element"):
        load_weights(path)
    path.write_bytes(pickled((2, 2), (2, 1), size=8))
    with pytest.raises(ArchiveError, match="a storage of 16 bytes is wanted"):
        load_weights(path)


def test_a_tensor_that_repeats_one_number_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "w.pt"
    path.write_bytes(pickled((1 << 20, 1 << 20), (0, 0)))
    with pytest.raises(ArchiveError, match="more than the file holds"):
        load_weights(path)


# -- tensors that are more than numbers in rows


@pytest.mark.parametrize("name", ["quantized.pt", "quantized_legacy.pt"])
def test_quantized_sparse_and_nested_tensors_are_told_with_what_they_are_made_of(name):
    with open_weights(FILES / name) as weights:
        found = weights.entries
        assert weights.identity.kind == "state-dict"
        assert list(found) == [
            "q", "by_channel", "by_channel.scales", "by_channel.zero_points", "coo.indices", "coo.values",
            "csr.crow_indices", "csr.col_indices", "csr.values", "bsc.ccol_indices", "bsc.row_indices", "bsc.values",
            "nested.buffer", "nested.sizes", "nested.strides", "nested.offsets", "meta", "conj", "plain",
        ]  # fmt: skip
        assert (found["q"].dtype, found["q"].shape) == ("qint8", (2, 3))
        assert found["q"].note == "quantized: 0.5 × (number − 3)"
        assert found["coo.indices"].note == "of a sparse_coo tensor of 2 × 3"
        assert found["q"].array().tolist() == [[3, 5, 7], [9, 11, 13]]
        assert found["by_channel.scales"].array().tolist() == [0.5, 0.25]
        assert found["coo.values"].array().tolist() == [3, 4]
        assert found["bsc.values"].shape == (4, 2, 2)
        assert found["conj"].array().tolist() == [1 - 2j]
        assert (found["meta"].shape, found["meta"].bytes) == ((3, 4), 0)
        with pytest.raises(ArchiveError, match="on the device meta"):
            found["meta"].array()


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_they_are_taken_out_as_what_is_in_memory(ending, tmp_path):
    extract_weights(FILES / "quantized.pt", str(tmp_path / f"w.{ending}"))
    taken = load_weights(tmp_path / f"w.{ending}")
    assert "meta" not in taken and str(taken["q"].dtype) == "torch.int8"
    assert taken["conj"].tolist() == [1 - 2j]
    assert compare(FILES / "quantized.pt", FILES / "quantized_legacy.pt").is_same


def test_an_archive_that_holds_them_is_refused_as_a_program_and_shown(tmp_path):
    path = FILES / "odd_module.pt"
    with pytest.raises(UnsupportedTensorError, match="it holds sparse tensors") as caught:
        engine.jit.load(path)
    assert (caught.value.record, caught.value.hints[0][:11]) == ("data.pkl", "tsrepl show")
    with open_tensors(path) as weights:
        assert list(weights.entries) == ["q", "coo.indices", "coo.values", "plain"]
    extract_weights(path, str(tmp_path / "w.npz"))
    assert load_weights(tmp_path / "w.npz")["plain"].tolist() == [1, 1]
    shown = list(show_program(str(path), "", None))
    assert [type(reply).__name__ for reply in shown] == ["FileReply", "ReportReply", "TextReply"]
