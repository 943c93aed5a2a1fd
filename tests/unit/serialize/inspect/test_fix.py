"""Devices replaced in code and pickles, and old archives written anew."""

import io
import pickle
import zipfile
from pathlib import Path

import pytest

import engine
from engine.executor.interpreter.interpreter import run_function
from engine.lang.errors import ArchiveError
from engine.serialize.inspect.compare import compare
from engine.serialize.inspect.fix import fix_devices, repack
from engine.serialize.pickling.devices import replace_devices
from tests.unit.serialize.legacy.model_json_files import NET, model
from tests.unit.serialize.legacy.model_json_files import archive as old_archive
from tests.unit.serialize.model_files import ARCHIVES, FILES, archive, method


def test_every_change_is_told_with_its_line(tmp_path):
    changes = fix_devices(FILES / "dev.pt", "cpu", tmp_path / "cpu.pt")
    assert [(c.record, c.line) for c in changes] == [
        ("data.pkl", 0), ("code/__torch__.py", 11), ("code/__torch__.py", 12), ("code/__torch__.py", 19),
    ]  # fmt: skip
    assert changes[1].after == '_0 = torch.to(x, torch.device("cpu"   ))'


def test_the_result_runs_here_and_texts_stay(tmp_path):
    fix_devices(FILES / "dev.pt", "cpu", tmp_path / "cpu.pt")
    module = engine.jit.load(tmp_path / "cpu.pt")
    assert (str(module.d), module.s) == ("cpu", "cuda:0")
    assert module(engine.tensor([1.0, 2.0])).tolist() == [2.0, 3.0]


def test_all_other_bytes_of_the_records_stay(tmp_path):
    fix_devices(FILES / "dev.pt", "cpu", tmp_path / "cpu.pt")
    with zipfile.ZipFile(FILES / "dev.pt") as old, zipfile.ZipFile(tmp_path / "cpu.pt") as new:
        assert old.namelist() == new.namelist()
        same = [name for name in old.namelist() if old.read(name) == new.read(name)]
        assert set(old.namelist()) - set(same) == {"dev/data.pkl", "dev/code/__torch__.py"}
        assert len(old.read("dev/code/__torch__.py")) == len(new.read("dev/code/__torch__.py"))


def test_there_and_back(tmp_path):
    fix_devices(ARCHIVES / "everything.pt", "cuda:1", tmp_path / "cuda.pt")
    with pytest.raises(ArchiveError, match="map_location='cpu'"):
        engine.jit.load(tmp_path / "cuda.pt")
    fix_devices(tmp_path / "cuda.pt", "cpu", tmp_path / "cpu.pt")
    assert compare(ARCHIVES / "everything.pt", tmp_path / "cpu.pt").is_same


def test_a_longer_device_gives_up_the_debug_record(tmp_path):
    code = method('return torch.to(x, torch.device("cpu"))')
    path = archive(tmp_path / "m.pt", code, extra={"code/__torch__.py.debug_pkl": "x"}.items())
    fix_devices(path, "cuda:1", tmp_path / "cuda.pt")
    with zipfile.ZipFile(tmp_path / "cuda.pt") as new:
        assert "m/code/__torch__.py.debug_pkl" not in new.namelist()
        assert b'torch.device("cuda:1")' in new.read("m/code/__torch__.py")


def test_nothing_to_change_writes_the_same_file(tmp_path):
    assert fix_devices(ARCHIVES / "function.pt", "cpu", tmp_path / "cpu.pt") == []
    assert (tmp_path / "cpu.pt").read_bytes() == (ARCHIVES / "function.pt").read_bytes()


def test_the_meta_device_stays(tmp_path):
    path = archive(tmp_path / "m.pt", method('return torch.to(x, torch.device("meta"))'))
    assert fix_devices(path, "cpu", tmp_path / "cpu.pt") == []


def test_the_layout_of_old_archives(tmp_path):
    described = model()
    described["tensors"][0]["device"] = described["tensors"][1]["device"] = "cuda:0"
    code = NET.replace("torch.mul(_2, self.scale)", 'torch.to(_2, torch.device("cuda:0"))')
    (tmp_path / "old.pt").write_bytes(old_archive(described, Net=code).getvalue())
    changes = fix_devices(tmp_path / "old.pt", "cpu", tmp_path / "cpu.pt")
    assert [(c.record, c.line, c.before, c.count) for c in changes] == [
        ("model.json", 0, "cuda:0", 2), ("code/Net.py", 7, 'return torch.to(_2, torch.device("cuda:0"))', 1),
    ]  # fmt: skip
    assert engine.jit.load(tmp_path / "cpu.pt")(engine.ones(2, 3)).shape == (2, 4)
    broken = old_archive("[1]").getvalue()
    (tmp_path / "broken.pt").write_bytes(broken)
    with pytest.raises(ArchiveError, match="no JSON of tensors"):
        fix_devices(tmp_path / "broken.pt", "cpu", tmp_path / "out.pt")


@pytest.mark.parametrize("device", ["cup", "cuda:x", ""])
def test_what_is_no_device(device, tmp_path):
    with pytest.raises(ArchiveError, match="is no device"):
        fix_devices(FILES / "dev.pt", device, tmp_path / "out.pt")


def test_mobile_bytecode_of_the_old_code_is_dropped(tmp_path):
    fix_devices(FILES / "mobile.ptl", "cuda", tmp_path / "cuda.pt")
    with zipfile.ZipFile(tmp_path / "cuda.pt") as new:
        assert "mobile/bytecode.pkl" not in new.namelist()


def test_repacking_gives_the_same_program(tmp_path):
    done = repack(FILES / "mobile.ptl", tmp_path / "new.pt", run_function)
    assert (done.before, done.after) == ("3", "3")
    assert not compare(FILES / "mobile.ptl", tmp_path / "new.pt").weights
    with zipfile.ZipFile(tmp_path / "new.pt") as new:
        assert "new/bytecode.pkl" not in new.namelist()


def test_repacking_spells_out_what_old_operators_did(tmp_path):
    old = archive(tmp_path / "old.pt", method("return torch.div(x, x)"), version="2")
    done = repack(old, tmp_path / "new.pt", run_function)
    assert (done.before, done.after) == ("2", "4")
    assert 'rounding_mode="trunc"' in engine.jit.load(tmp_path / "new.pt").code
    assert engine.jit.load(tmp_path / "new.pt")(engine.tensor([7])).tolist() == [1]


@pytest.mark.parametrize("name", ["mlp.pt", "lstm_cell.pt"])
def test_repacking_makes_no_file_longer(tmp_path, name):
    old = Path(__file__).parents[4] / "examples" / name
    repack(old, tmp_path / name, run_function)
    assert (tmp_path / name).stat().st_size <= old.stat().st_size


def test_repacking_keeps_extra_files(tmp_path):
    old = archive(tmp_path / "old.pt", method("return x"), extra={"extra/labels.txt": "cat"}.items())
    repack(old, tmp_path / "new.pt", run_function)
    extra = {"labels.txt": ""}
    engine.jit.load(tmp_path / "new.pt", _extra_files=extra)
    assert extra["labels.txt"] == b"cat"


# -- pickles


class Reader(pickle.Unpickler):
    """Gives back what it reads, tensors and devices by their description."""

    def persistent_load(self, pid):
        return ("storage", *pid[2:])

    def find_class(self, module, name):
        return (lambda *args: (name, *args)) if name == "device" else name


def changed(body):
    """What a pickle's opcodes say once cuda:0 has become cpu, and how many changes that took."""
    data = b"\x80\x02" + body + b"."
    new, changes = replace_devices(data, "data.pkl", lambda old: "cpu" if old == "cuda:0" else old)
    return Reader(io.BytesIO(new)).load(), len(changes)


TEXT = b"X\6\0\0\0cuda:0"
STORAGE = b"(X\7\0\0\0storageN" + b"X\1\0\0\0000"


def test_only_what_names_a_device_changes():
    assert changed(TEXT) == ("cuda:0", 0)
    assert changed(b"ctorch\ndevice\n" + TEXT + b"\x85R") == (("device", "cpu"), 1)
    assert changed(STORAGE + TEXT + b"K\1tQ") == (("storage", "0", "cpu", 1), 1)


def test_a_text_that_is_shared_with_a_device_stays():
    first_text = b"(" + TEXT + b"q\1ctorch\ndevice\nh\1\x85Rh\1t"
    assert changed(first_text) == (("cuda:0", ("device", "cpu"), "cuda:0"), 1)
    first_device = b"(ctorch\ndevice\n" + TEXT + b"q\1\x85Rh\1ctorch\ndevice\nh\1\x85Rt"
    assert changed(first_device) == ((("device", "cpu"), "cuda:0", ("device", "cpu")), 2)


@pytest.mark.parametrize("body", [b"h\5", b"t", b"Q", b"\x85R", b"\xff", b"X\xff\0\0\0ab"])
def test_what_cannot_be_followed_is_refused(body):
    with pytest.raises(ArchiveError, match="cannot be followed"):
        replace_devices(b"\x80\x02" + body + b".", "data.pkl", str)
