"""What files are: every kind once, cut-off and damaged ones, and what opening the wrong kind says."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

import engine
import engine.torch as torch
from engine.executor.interpreter.interpreter import run_function
from engine.lang.errors import ArchiveError, MissingFileError
from engine.serialize.archive import load_archive
from engine.serialize.identify.identify import identify
from engine.serialize.identify.kinds import KINDS
from tests.unit.serialize.model_files import ARCHIVES, FILES, archive, compiled, method, safetensors


def written(path, data):
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def zipped(path, *names):
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, "x")
    return path


def tarred(path, *names):
    with tarfile.open(path, "w") as file:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 3
            file.addfile(info, io.BytesIO(b"abc"))
    return path


ONNX = b"\x08\x08\x12\x07pytorch\x1a\x052.1.0\x3a\x03abc\x42\x04\x0a\x00\x10\x11"
BYTES = {
    "empty": b"", "zeros": bytes(100), "gguf": b"GGUF\3\0\0\0abc", "onnx": ONNX,
    "keras-h5": b"\x89HDF\r\n\x1a\nabc", "tflite": b"\x1c\0\0\0TFL3abc", "executorch": b"\x1c\0\0\0ET12abc",
    "compressed": gzip.compress(b"abc"),
    "lfs-pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 102400\n",
    "html": b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>",
    "error-text": b'{"error":"Repo is gated"}', "source": b"def f(x):\n    return x\n", "text": b"just words",
    "ggml": b"tjgg\3\0\0\0", "tensorrt": b"ftrt\xad\0\0\0", "ncnn": b"7767517\n75 83\n",
    "media": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "torch7": b"\4\0\0\0\1\0\0\0\3\0\0\0V 1\x0d", "executable": b"\x7fELF\2\1\1",
    "weights-index": b'{"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}',
    "pickle": pickle.dumps({"a": 1}), "unknown": b"\xd7\x69\x81\xb1\x58\xd2",
}  # fmt: skip


@pytest.mark.parametrize("kind", BYTES)
def test_the_first_bytes_tell(kind, tmp_path):
    assert identify(written(tmp_path / "model.pt", BYTES[kind])).kind == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sd_zip.pt", "state-dict"), ("sd_legacy.pt", "state-dict"), ("whole_zip.pt", "module-pickle"),
        ("whole_legacy.pt", "module-pickle"), ("ckpt.pt", "checkpoint"), ("tensor.pt", "tensors"),
        ("tensor_legacy.pt", "tensors"), ("exported.pt2", "pt2"), ("mobile.ptl", "mobile"), ("pkg.pt", "torch-package"),
        ("dev.pt", "torchscript"), ("dtypes_legacy.pt", "state-dict"),
    ],
)  # fmt: skip
def test_files_of_pytorch(name, kind):
    if (FILES / name).exists():
        assert identify(FILES / name).kind == kind


def test_archives_tell_their_version_and_sizes():
    found = identify(ARCHIVES / "everything.pt")
    assert found.kind == "torchscript" and found.is_program and not found.has_weights
    assert {"version", "code", "tensors"} <= set(dict(found.facts))


def test_zip_files_of_others(tmp_path):
    np.savez(tmp_path / "w.npz", a=np.ones(2))
    np.save(tmp_path / "w.npy", np.ones(2))
    assert identify(tmp_path / "w.npz").kind == "npz"
    assert identify(tmp_path / "w.npy").kind == "npy"
    assert identify(zipped(tmp_path / "k", "config.json", "model.weights.h5")).kind == "keras-zip"
    assert identify(zipped(tmp_path / "s", "MAR-INF/MANIFEST.json", "model.pt")).kind == "torchserve"
    assert identify(zipped(tmp_path / "z", "a.txt", "b/c.txt")).kind == "zip"
    assert identify(zipped(tmp_path / "r", "data.pkl", "constants.pkl", "code/__torch__.py")).kind == "packed-anew"


def test_a_zip_file_names_the_models_in_it(tmp_path):
    found = identify(zipped(tmp_path / "z.zip", "readme.txt", "model.pt"))
    assert found.kind == "zip" and found.advice[0] == f"take one out: unzip {tmp_path}/z.zip 'model.pt'"
    found = identify(zipped(tmp_path / "s", "MAR-INF/MANIFEST.json", "net.jit"))
    assert found.kind == "torchserve" and "'net.jit'" in found.advice[0]


def test_an_archive_that_a_mac_zipped_again(tmp_path):
    found = identify(zipped(tmp_path / "m.pt", "m/data.pkl", "m/constants.pkl", "__MACOSX/m/._data.pkl"))
    assert found.kind == "packed-anew" and "on a Mac" in found.title and "zip -d" in found.advice[0]
    with pytest.raises(ArchiveError, match="on a Mac"):
        engine.load(tmp_path / "m.pt")


def test_an_unpacked_archive_says_how_it_becomes_one_again(tmp_path):
    with zipfile.ZipFile(ARCHIVES / "function.pt") as file:
        file.extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    for path in (tmp_path, folder):
        with pytest.raises(ArchiveError, match="an archive that was unpacked") as caught:
            identify(path)
        assert caught.value.hints == (f"zip it again: (cd {tmp_path} && zip -0 -r model.pt {folder.name})",)


@pytest.mark.parametrize(
    ("compress", "command"),
    [(gzip.compress, "gunzip -c"), (bz2.compress, "bunzip2 -c"), (lzma.compress, "xz -dc")],
)
def test_what_is_in_a_compressed_file(compress, command, tmp_path):
    found = identify(written(tmp_path / "m", compress((ARCHIVES / "function.pt").read_bytes())))
    assert dict(found.facts)["inside"].startswith("a zip file") and command in found.advice[0]
    found = identify(written(tmp_path / "m", compress(tarred(tmp_path / "t", "a").read_bytes())))
    assert dict(found.facts)["inside"] == "a tar file" and found.advice == (f"unpack it first: tar -xf {tmp_path}/m",)
    found = identify(written(tmp_path / "m", compress(BYTES["gguf"])))
    assert dict(found.facts)["inside"] == "a GGUF model (llama.cpp)"
    found = identify(written(tmp_path / "m", compress(b"abc")[:-9] + b"damaged!!"))
    assert found.kind == "compressed"


def test_pickles_of_the_oldest_protocol_are_text(tmp_path):
    for value in ({"a": 1}, [1, 2], Runs()):
        assert identify(written(tmp_path / "p", pickle.dumps(value, 0))).kind == "pickle"
    assert identify(written(tmp_path / "p", b"(dp0 is no pickle")).kind == "text"


def test_text_of_programs(tmp_path):
    found = identify(written(tmp_path / "c.json", '{"hidden_size": 768}'))
    assert found.kind == "text" and "JSON" in found.title
    found = identify(written(tmp_path / "c.json", '{"hidden_size": 768'))
    assert found.kind == "text" and "JSON" not in found.title


def test_tar_files(tmp_path):
    assert identify(tarred(tmp_path / "old.pt", "sys_info", "pickle", "storages", "tensors")).kind == "torch-tar"
    assert identify(tarred(tmp_path / "a.tar", "x", "y")).kind == "tar"


def test_a_tar_file_with_an_archive_inside_is_a_tar_file(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        file.add(ARCHIVES / "function.pt", "function.pt")
    assert identify(tmp_path / "a.tar").kind == "tar"


@pytest.mark.parametrize("name", ["archives/everything.pt", "files/sd_legacy.pt", "files/sd_zip.pt"])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
def test_what_is_cut_off_says_so(name, part, tmp_path):
    data = (FILES.parent / name).read_bytes()
    found = identify(written(tmp_path / "cut.pt", data[: int(len(data) * part)]))
    if found.kind != "state-dict":  # the older format does not say how long it is
        assert found.kind == "truncated" and "cut off" in found.title
    else:
        assert "legacy" in name


@pytest.mark.parametrize("missing", [1, 10, 18])
def test_what_lacks_a_part_of_its_end_says_how_much(missing, tmp_path):
    data = (ARCHIVES / "function.pt").read_bytes()
    found = identify(written(tmp_path / "m.pt", data[:-missing]))
    assert found.kind == "truncated" and f"last {missing} byte" in dict(found.facts)["damage"]


def test_cut_off_safetensors_say_how_much_is_missing(tmp_path):
    found = identify(safetensors(tmp_path / "w.safetensors", cut=5))
    assert found.kind == "truncated" and "speaks of" in dict(found.facts)["damage"]
    assert identify(safetensors(tmp_path / "w.safetensors")).kind == "safetensors"


def test_a_damaged_archive_keeps_its_reason(tmp_path):
    data = bytearray((ARCHIVES / "everything.pt").read_bytes())
    at = data.index(b"PK\x03\x04", 100)
    data[at : at + 4] = b"PKzz"
    found = identify(written(tmp_path / "d.pt", bytes(data)))
    assert found.kind == "damaged" and "disagrees" in dict(found.facts)["damage"]


class Runs:
    def __reduce__(self):
        return print, ("this must not run",)


def test_a_pickle_that_runs_something_is_named_and_not_run(tmp_path, capsys):
    found = identify(written(tmp_path / "evil.pkl", pickle.dumps(Runs())))
    assert "builtins.print" in dict(found.facts)["names of Python in it"]
    written(tmp_path / "os.pkl", b"\x80\x02cposix\nsystem\nX\x02\0\0\0ls\x85R.")
    assert "posix.system" in dict(identify(tmp_path / "os.pkl").facts)["beware"]
    assert capsys.readouterr().out == ""


def test_the_state_of_an_optimizer_is_no_module(tmp_path):
    state = {"state": {0: {"step": torch.tensor(1.0)}}, "param_groups": [{"lr": 0.1, "params": [0]}]}
    torch.save(state, tmp_path / "o.pt")
    found = identify(tmp_path / "o.pt")
    assert found.kind == "optimizer" and found.has_weights and "optimizer.load_state_dict" in found.advice[1]
    assert engine.load(tmp_path / "o.pt")["param_groups"] == state["param_groups"]


def test_who_made_a_checkpoint(tmp_path):
    state = {"pytorch-lightning_version": "2.1.0", "epoch": 3, "state_dict": {"w": torch.ones(2)}}
    torch.save(state, tmp_path / "c.ckpt")
    assert dict(identify(tmp_path / "c.ckpt").facts)["made by"] == "PyTorch Lightning 2.1.0"


def test_facts_of_a_checkpoint():
    facts = dict(identify(FILES / "ckpt.pt").facts)
    assert facts["keys"] == "state_dict, epoch, args, optimizer"
    assert facts["names of Python in it"] == "argparse.Namespace"


def test_a_pickle_that_shares_its_parts_without_end_is_not_walked(tmp_path):
    doubled = (b"](h%ch%ceq%c" % (number, number, number + 1) for number in range(60))
    bomb = b"\x80\x02]q\x00" + b"".join(doubled) + b"."
    with zipfile.ZipFile(tmp_path / "b.pt", "w") as file:
        file.writestr("b/data.pkl", bomb)
    assert identify(tmp_path / "b.pt").kind == "torch-value"


@pytest.mark.parametrize("kind", KINDS)
def test_advice_can_be_written_for_every_kind(kind):
    for text in KINDS[kind].advice:
        assert "{" not in text.format(file="f", name="'f'")


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(MissingFileError, match="does not exist"):
        identify(tmp_path / "no.pt")
    written(tmp_path / "saved_model.pb", b"x")
    with pytest.raises(ArchiveError, match="folder, not a file: it looks like a TensorFlow SavedModel"):
        identify(tmp_path)


@pytest.mark.parametrize("name", ["sd_zip.pt", "sd_legacy.pt", "exported.pt2", "pkg.pt", "whole_zip.pt"])
def test_opening_the_wrong_kind_explains_it(name):
    with pytest.raises(ArchiveError, match="is not a TorchScript archive: it is") as caught:
        engine.jit.load(FILES / name)
    assert caught.value.hints and "constants.pkl" not in str(caught.value)


@pytest.mark.parametrize("kind", ["html", "empty", "lfs-pointer", "onnx", "unknown"])
def test_engine_load_explains_too(kind, tmp_path):
    with pytest.raises(ArchiveError, match="is not a TorchScript archive: it is"):
        engine.load(written(tmp_path / "model.pt", BYTES[kind]))


def test_what_is_wrong_inside_an_archive_is_still_said(tmp_path):
    path = archive(tmp_path / "m.pt", method("return torch.relu(y)"))
    with pytest.raises(ArchiveError, match=r"the code of '__torch__\.M\.forward' is refused"):
        compiled(load_archive(path, run=run_function))


def test_names_that_shells_cannot_show_are_written_so_that_they_can_be_typed(tmp_path):
    path = os.fsdecode(bytes(tmp_path / "bad") + b"\xff.npy")
    Path(path).write_bytes(b"\x93NUMPY")
    (advice,) = identify(path).advice
    assert advice.endswith("bad\\xff.npy'") and "show $'" in advice


def test_a_missing_file_is_told_with_the_nearest_name(tmp_path):
    (tmp_path / "model.pt").write_bytes(b"")
    with pytest.raises(MissingFileError) as caught:
        identify(tmp_path / "modle.pt")
    assert caught.value.hints == ("did you mean 'model.pt'?",)
    with pytest.raises(MissingFileError) as caught:
        identify(tmp_path / "no" / "model.pt")
    assert caught.value.hints == (f"there is no folder '{tmp_path / 'no'}' either",)
