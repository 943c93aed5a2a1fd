"""Archives of machines with other devices, and files whose names or places tell nothing of what they are."""

import io
import shutil

import pytest

import engine.torch as torch
from engine.lang.errors import ArchiveError, MissingDeviceError
from engine.serialize.inspect.fix import fix_devices
from tests.unit.serialize.hostile_archives import MODULE, archive, refused
from tsrepl.session.programs import run_program
from tsrepl.session.replies import ErrorReply, TextReply


class Net(torch.nn.Module):
    def __init__(self, device):
        super().__init__()
        self.fc, self.device = torch.nn.Linear(2, 2), torch.device(device)

    def forward(self, x):
        return self.fc(x)


class Moving(torch.nn.Module):
    def forward(self, x):
        return x.to(torch.device("cuda:0"))


@pytest.fixture
def cpu(tmp_path):
    path = tmp_path / "cpu.pt"
    torch.jit.script(Net("cpu")).save(path)
    return path


@pytest.mark.parametrize("device", ["cuda:0", "cuda:7", "xpu", "mps", "hpu:1", "xla:0", "privateuseone:0"])
def test_tensors_of_another_device_are_refused_with_both_ways_out(tmp_path, cpu, device):
    path = tmp_path / "other.pt"
    fix_devices(cpu, device, path)
    for source in (path, io.BytesIO(path.read_bytes())):
        with pytest.raises(MissingDeviceError, match=device) as caught:
            torch.jit.load(source)
        assert "damaged" not in str(caught.value)
        assert "map_location='cpu'" in str(caught.value) and "tsrepl fix --device cpu" in str(caught.value)
    assert torch.jit.load(path, map_location="cpu")(torch.ones(1, 2)).shape == (1, 2)
    first, *rest = run_program(str(path), None, ["ones(1, 2)"], None)
    assert isinstance(first, TextReply) and device in first.text and "loaded on the CPU" in first.text
    assert not any(isinstance(reply, ErrorReply) for reply in rest)


def test_code_that_names_a_gpu_tells_how_it_is_changed(tmp_path):
    torch.jit.script(Moving()).save(tmp_path / "a b.pt")
    (reply,) = run_program(str(tmp_path / "a b.pt"), None, ["ones(2)"], None)
    assert any("tsrepl fix --device cpu '" in hint for hint in reply.hints)
    assert not any("cupy" in hint or "pip" in hint for hint in reply.hints)


@pytest.mark.parametrize("name", ["m.ts", "m.pth", "m.zip", "m.py", "m.txt", "m.npz", "m"])
def test_contents_decide_what_a_file_is(tmp_path, cpu, name):
    shutil.copy(cpu, tmp_path / name)
    assert not any(isinstance(r, ErrorReply) for r in run_program(str(tmp_path / name), None, ["ones(1, 2)"], None))
    (tmp_path / name).write_text("def main() -> int:\n    return 3\n")
    assert not any(isinstance(reply, ErrorReply) for reply in run_program(str(tmp_path / name), None, [], None))


@pytest.mark.parametrize(("data", "named"), [
    (b"<!DOCTYPE html><html><title>404</title>", "web page"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12\n", "Git LFS pointer"),
    (b"", "empty file"), (bytes(100), "zeros"),
])  # fmt: skip
def test_a_buffer_is_named_by_what_is_in_it(data, named):
    for load in (torch.jit.load, torch.load):
        with pytest.raises(ArchiveError, match=named):
            load(io.BytesIO(data))


def test_a_module_without_forward_says_so():
    module = torch.jit.load(io.BytesIO(archive()))
    with pytest.raises(AttributeError, match=r"'__torch__\.M' cannot be called: it has no method 'forward'"):
        module(torch.ones(2))


@pytest.mark.parametrize(("pickle", "reason"), [
    (MODULE[:-1] + b"r\xff\xff\xff\xff.", "sets memo"),
    (MODULE[:-1] + b"p4294967296\n.", "memo"),
    (b"\x80\x02V\\ud800\n.", "half of a character"),
])  # fmt: skip
def test_what_no_pickle_of_pytorch_says_is_refused(pickle, reason):
    assert reason in str(refused(archive(**{"data.pkl": pickle})))
