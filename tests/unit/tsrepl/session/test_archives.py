"""Files looked at, compared and made anew: replies, the same facts as data, and statuses."""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import engine.torch as torch
from engine.torch import nn
from tests.unit.serialize.model_files import ARCHIVES, FILES, HEAD, archive, method
from tsrepl.cli import main
from tsrepl.render.report_page import report_program
from tsrepl.render.terminal import to_text
from tsrepl.session import Session
from tsrepl.session.archives import check, identify_files, operators, show_weights
from tsrepl.session.changes import extract, fix, repacked
from tsrepl.session.differences import diff
from tsrepl.session.failures import guarded
from tsrepl.session.programs import show_program
from tsrepl.session.replies import DataReply, ErrorReply, FileReply, Reply, ReportReply, TextReply

ROOT = Path(__file__).parents[4]


def text(replies: list[Reply]) -> str:
    return "".join(map(to_text, replies))


def data(*replies: Reply) -> DataReply:
    (reply,) = replies
    assert isinstance(reply, DataReply)
    json.dumps(reply.data)
    return reply


@pytest.fixture
def unknown(tmp_path: Path) -> str:
    return str(archive(tmp_path / "unknown.pt", method("return torch.relu(ops.mylib.fancy(x))")))


def test_identify() -> None:
    paths = [str(FILES / "sd_zip.pt"), str(ARCHIVES / "function.pt")]
    replies = list(identify_files(paths))
    assert [reply.what for reply in replies if isinstance(reply, FileReply)] == [
        "a state dict: named tensors that torch.save wrote", "a TorchScript archive",
    ]  # fmt: skip
    found = data(*identify_files(paths, as_data=True)).data
    assert [each["kind"] for each in found] == ["state-dict", "torchscript"]


def test_ops_put_the_missing_first(unknown: str) -> None:
    replies = list(operators(unknown))
    shown = text(replies)
    assert shown.index("mylib::fancy") < shown.index("aten::relu")
    last = replies[-1]
    assert isinstance(last, ReportReply) and last.status == 3
    found = data(*operators(unknown, as_data=True))
    assert found.data["missing"] == {"mylib::fancy": 1} and found.data["operators"] == {"aten::relu": 1}
    assert found.status == 3
    assert data(*operators(str(ARCHIVES / "function.pt"), as_data=True)).status == 0


def test_check(unknown: str) -> None:
    assert "operators that are not known here" in text(list(check(unknown)))
    found = data(*check(unknown, as_data=True))
    assert found.data["suspicious"] and found.status == 3
    assert found.data["findings"][0]["where"] == ["mylib::fancy (1×)"]
    fine = list(check(str(ARCHIVES / "function.pt")))
    assert "nothing suspicious" in text(fine)


def test_old_operators_are_told_of(tmp_path: Path) -> None:
    old = str(archive(tmp_path / "old.pt", method("return torch.div(x, x)")))
    row = "aten::div  div_Tensor_0_3  code/__torch__.py:7"
    assert row in text(list(show_program(old, None, None)))
    assert "aten::div is done by div_Tensor_0_3, code/__torch__.py:7" in text(list(check(old)))
    place = {"operator": "aten::div", "upgrader": "div_Tensor_0_3", "place": "code/__torch__.py:7"}
    assert data(*check(old, as_data=True)).data["rewrites"] == [place]
    assert row in text(list(repacked(old, str(tmp_path / "new.pt"))))
    assert "div_Tensor_0_3" not in text(list(show_program(str(tmp_path / "new.pt"), None, None)))


def test_bytecode_without_code_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "m.ptl"
    bytecode = (ARCHIVES / "mobile_bytecode.pkl").read_bytes()
    with zipfile.ZipFile(path, "w") as file:
        for name, content in {"version": b"8\n", "bytecode.pkl": bytecode, "data.pkl": b"\x80\x02)."}.items():
            file.writestr(f"m/{name}", content)
    shown = text(list(show_program(str(path), None, None)))
    assert "mobile bytecode without code (.ptl)" in shown
    assert "aten::remainder.int, 2 arguments" in shown
    assert text(list(show_program(str(path), "bytecode", None))) == shown


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["return x"], "none"),
        (["for i in range(3):", "  x = torch.relu(x)", "return x"], "1, with a fixed number of rounds"),
        (["for i in range(torch.dim(x)):", "  x = torch.relu(x)", "return x"],
         "1; the number of rounds depends on the data"),
    ],
)  # fmt: skip
def test_loops_are_told_in_words(tmp_path: Path, lines: list[str], told: str) -> None:
    numbers = next(iter(check(str(archive(tmp_path / "m.pt", method(*lines))))))
    assert isinstance(numbers, FileReply) and dict(numbers.facts)["loops"] == told


def test_weights_are_shown_as_a_table() -> None:
    shown = text(list(show_weights(str(FILES / "ckpt.pt"))))
    assert "state_dict.a.weight" in shown and "8 tensors, 30 numbers, 120 bytes" in shown
    assert text(list(show_program(str(FILES / "ckpt.pt"), None, None))) == shown


def test_a_value_without_tensors_is_shown(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "name": "net"}, tmp_path / "v.pt")
    shown = text(list(show_weights(str(tmp_path / "v.pt"))))
    assert "other values" in shown and "epoch" in shown and "'net'" in shown and "0 tensors" not in shown


def test_methods_of_modules_inside_and_functions_are_shown_and_run() -> None:
    path = str(ARCHIVES / "everything.pt")
    shown = text(list(show_program(path, None, None)))
    inner = re.search(r"── (\w+) Scale ", shown)
    assert inner is not None
    for name in (inner[1], f"{inner[1]}.forward"):
        assert text(list(show_program(path, "code", name))).startswith("def forward(self")
    (error,) = show_program(path, "code", f"{inner[1]}.forwrd")
    assert isinstance(error, ErrorReply) and error.hints == (f"did you mean '{inner[1]}.forward'?",)
    (error,) = show_program(path, "code", "qqq")
    assert isinstance(error, ErrorReply) and "layer.forward names one inside" in error.hints[0]


def test_functions_that_methods_call_are_shown_by_their_qualified_names(tmp_path: Path) -> None:
    code = method("return __torch__.double(x, )") + "def double(x: Tensor) -> Tensor:\n  return torch.add(x, x)\n"
    path = str(archive(tmp_path / "m.pt", code))
    assert "torch.add(x, x)" in text(list(show_program(path, "code", "__torch__.double")))


def test_a_module_without_methods_has_no_code(tmp_path: Path) -> None:
    path = str(archive(tmp_path / "m.pt", HEAD))
    assert text(list(show_program(path, "code", None))) == "no code: the module has no methods of its own\n"


def test_what_is_damaged_says_so_when_it_is_shown(tmp_path: Path) -> None:
    data = bytearray((ARCHIVES / "function.pt").read_bytes())
    data[-30] ^= 0xFF
    (tmp_path / "d.pt").write_bytes(data)
    shown = text(list(guarded(show_weights(str(tmp_path / "d.pt")))))
    assert "cannot be shown: it is a PyTorch archive that is damaged (" in shown


def test_showing_explains_what_cannot_be_shown(tmp_path: Path) -> None:
    (tmp_path / "m.pt").write_text("<html><title>Sign in</title>")
    (reply,) = show_program(str(tmp_path / "m.pt"), None, None)
    assert isinstance(reply, ErrorReply) and "a web page that was saved under this name (Sign in)" in reply.message


def test_the_authors_sources_come_from_debug_records(tmp_path: Path) -> None:
    shown = text(list(show_program(str(FILES / "dev.pt"), "sources", None)))
    assert shown.startswith("# /tmp/files/make_files.py, line ")
    assert 'y = x.to("cuda:0") + torch.zeros(2, device="cuda:1") + self.w.to(self.d)' in shown
    (reply,) = show_program(str(archive(tmp_path / "m.pt", method("return x"))), "sources", None)
    assert isinstance(reply, ErrorReply) and "keeps no sources" in reply.message


def test_diff_is_silent_about_what_is_equal() -> None:
    path = str(FILES / "dev.pt")
    (reply,) = diff([path, path])
    assert isinstance(reply, ReportReply) and reply.status == 0
    assert to_text(reply) == "✓ no differences; 1 tensor is equal\n"


def test_diff(tmp_path: Path) -> None:
    old = str(archive(tmp_path / "a.pt", method("return torch.relu(x)")))
    new = str(archive(tmp_path / "b.pt", method("return torch.tanh(x)")))
    (reply,) = diff([old, new])
    assert isinstance(reply, ReportReply) and reply.status == 1
    assert "-   return torch.relu(x)\n+   return torch.tanh(x)" in to_text(reply)
    found = data(*diff([old, new], as_data=True))
    assert found.status == 1 and found.data["code"][0]["paths"] == ["forward"]


def test_diff_of_one_file_is_a_mistake() -> None:
    (reply,) = guarded(diff(["a.pt"]))
    assert isinstance(reply, ErrorReply) and reply.kind == "Usage"


def git(*words: str, cwd: Path) -> str:
    here = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PYTHONPATH": str(ROOT)}
    names = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *words], cwd=cwd, check=True, capture_output=True, text=True, env={**os.environ, **here, **names}
    )
    return done.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_goes_on_behind_a_file_that_is_no_archive(tmp_path: Path) -> None:
    git("init", "-q", cwd=tmp_path)
    git("config", "diff.torchscript.command", f"{sys.executable} -m tsrepl diff --git", cwd=tmp_path)
    (tmp_path / ".gitattributes").write_text("*.pt diff=torchscript\n")
    for name in ("a.pt", "b.pt"):
        archive(tmp_path / name, method("return torch.relu(x)"))
    git("add", ".", cwd=tmp_path)
    git("commit", "-qm", "first", cwd=tmp_path)
    (tmp_path / "a.pt").write_text("not fetched")
    archive(tmp_path / "b.pt", method("return torch.tanh(x)"))
    assert "+   return torch.tanh(x)" in git("--no-pager", "diff", cwd=tmp_path)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_shows_what_changed_inside_an_archive(tmp_path: Path) -> None:
    git("init", "-q", cwd=tmp_path)
    git("config", "diff.torchscript.command", f"{sys.executable} -m tsrepl diff --git", cwd=tmp_path)
    (tmp_path / ".gitattributes").write_text("*.pt diff=torchscript\n")
    archive(tmp_path / "model.pt", method("return torch.relu(x)"))
    archive(tmp_path / "old.pt", method("return x"))
    git("add", ".", cwd=tmp_path)
    git("commit", "-qm", "first", cwd=tmp_path)
    archive(tmp_path / "model.pt", method("return torch.tanh(x)"))
    (tmp_path / "old.pt").unlink()
    shown = git("--no-pager", "diff", cwd=tmp_path)
    assert shown.startswith("model.pt\n! forward\n")
    assert "-   return torch.relu(x)\n+   return torch.tanh(x)\n" in shown
    assert shown.endswith("old.pt\n! deleted\n")


def test_extract(tmp_path: Path) -> None:
    target = str(tmp_path / "w.npz")
    assert text(list(extract(str(FILES / "mobile.ptl"), target))).startswith(f"wrote {target}: 2 tensors, ")
    assert "weights.safetensors" in text(list(extract(str(FILES / "mobile.ptl"), str(tmp_path / "out"))))
    (reply,) = guarded(extract(str(FILES / "mobile.ptl"), str(tmp_path / "w.pt")))
    assert isinstance(reply, ErrorReply) and reply.kind == "Usage"


def test_fix(tmp_path: Path) -> None:
    target = str(tmp_path / "cpu.pt")
    shown = text(list(fix(str(FILES / "dev.pt"), "cpu", target)))
    assert 'code/__torch__.py, line 11\n- _0 = torch.to(x, torch.device("cuda:0"))\n' in shown
    assert shown.splitlines()[-1].startswith(f"wrote {target} (")
    assert "nothing to change" in text(list(fix(target, "cpu", str(tmp_path / "same.pt"))))
    assert (tmp_path / "same.pt").read_bytes() == (tmp_path / "cpu.pt").read_bytes()


@pytest.mark.parametrize(
    "write",
    [
        lambda target, force: fix(str(FILES / "dev.pt"), "cpu", target, force=force),
        lambda target, force: repacked(str(FILES / "mobile.ptl"), target, force=force),
        lambda target, force: extract(str(FILES / "mobile.ptl"), target, force=force),
    ],
    ids=["fix", "repack", "extract"],
)
def test_a_file_is_overwritten_on_request_only(tmp_path: Path, write: Callable[[str, bool], Iterator[Reply]]) -> None:
    target = tmp_path / "there.npz"
    target.write_bytes(b"old")
    (reply,) = guarded(write(str(target), False))
    assert isinstance(reply, ErrorReply) and reply.hints == ("--force overwrites it",)
    assert target.read_bytes() == b"old"
    assert "wrote" in text(list(write(str(target), True)))
    assert target.read_bytes() != b"old"


def test_repacking_does_not_make_a_file_larger(tmp_path: Path) -> None:
    source = Path(__file__).parents[4] / "examples" / "mlp.pt"
    assert "14,077 → " in text(list(repacked(str(source), str(tmp_path / "new.pt"))))
    assert (tmp_path / "new.pt").stat().st_size < 1.02 * source.stat().st_size  # compressors differ a little


def test_repack(tmp_path: Path) -> None:
    old = str(archive(tmp_path / "old.pt", method("return torch.div(x, x)"), version="2"))
    told = text(list(repacked(old, str(tmp_path / "new.pt"))))
    assert "version 2 → 4" in told
    assert "warning" not in told


def gpu_archive(path: Path) -> str:
    """An archive with a tensor on a GPU, whose code makes another."""
    made = torch.jit.script(nn.Linear(2, 2)).save_to_buffer()
    code = b'return torch.add(torch.ones([2], device=torch.device("cuda")), 1, alpha=1)\n'
    with zipfile.ZipFile(io.BytesIO(made)) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("data.pkl"):
                content = content.replace(b"X\3\0\0\0cpu", b"X\6\0\0\0cuda:0")
            if name.endswith(".py"):
                content = content[: content.rindex(b"    ")] + b"    " + code
            if not name.endswith("debug_pkl"):
                target.writestr(name, content)
    return str(path)


def test_advice_about_devices_works_when_it_is_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the check and of repacking; each names its file."""
    monkeypatch.chdir(tmp_path)
    gpu = gpu_archive(tmp_path / "my model.pt")
    repacking = text(list(repacked(gpu, "new.pt")))
    assert "tensors lay on cuda:0; in new.pt they lie on the CPU" in repacking
    assert "the code still names code/__torch__" in repacking
    for said in (repacking, text(list(check(gpu)))):
        command = re.search(r"tsrepl (fix --device cpu .* -o cpu.pt)", " ".join(said.split()))
        assert command is not None, said
        Path("cpu.pt").unlink(missing_ok=True)
        assert main(shlex.split(command[1])) == 0
        assert torch.jit.load("cpu.pt")(torch.ones(1, 2)).tolist() == [2.0, 2.0]


def test_a_report_says_that_tensors_were_brought_to_the_cpu(tmp_path: Path) -> None:
    gpu = gpu_archive(tmp_path / "m.pt")
    told = text(list(report_program(gpu, None, ["input=ones(1, 2)"], str(tmp_path / "r.html"))))
    assert "they are loaded on the CPU" in told


def test_the_shell_loads_weights_and_looks_at_files() -> None:
    session = Session()
    session.execute(f"%load {FILES / 'sd_legacy.pt'} as w")
    assert to_text(session.execute('w["bn.weight"]')[0]).startswith("tensor([1., 1., 1.])")
    for command in ("identify", "check"):
        assert isinstance(session.execute(f"%{command} {FILES / 'dev.pt'}")[0], FileReply)
    assert isinstance(session.execute(f"%diff {FILES / 'dev.pt'} {FILES / 'mobile.ptl'}")[0], ReportReply)
    (reply,) = session.execute(f"%load {FILES / 'exported.pt2'}")
    assert isinstance(reply, ErrorReply) and "torch.export" in reply.message
    assert isinstance(session.execute("%diff a.pt")[0], ErrorReply)
    assert isinstance(session.execute("%check a.pt b.pt")[0], ErrorReply)


def test_what_compiles_is_shown_beside_what_does_not(tmp_path: Path) -> None:
    code = method("y = ops.mylib.pair(x)", "a, b = y", "return torch.add(a, b)")
    code += method("return torch.relu(x)", name="fine").partition("training : bool\n")[2]
    path = str(archive(tmp_path / "m.pt", code))
    for view in (None, "code", "graph"):
        *shown, warning = show_program(path, view, None)
        assert isinstance(warning, TextReply) and warning.level == "warning" and "mylib::pair" in warning.text
        assert "fine" in text(shown) or "relu" in text(shown)


def test_bytecode_for_mobile_devices() -> None:
    assert "aten::linear, 3 arguments" in text(list(show_program(str(FILES / "mobile.ptl"), "bytecode", None)))
    (reply,) = show_program(str(FILES / "dev.pt"), "bytecode", None)
    assert isinstance(reply, ErrorReply) and "holds no mobile bytecode" in reply.message


def test_each_file_is_told_of_though_one_is_missing(tmp_path: Path) -> None:
    first, second = identify_files([str(tmp_path / "none.pt"), str(FILES / "sd_zip.pt")])
    assert isinstance(first, ErrorReply) and first.kind == "No such file"
    assert isinstance(second, FileReply)


def test_a_file_of_weights_has_no_code_to_show() -> None:
    (reply,) = show_program(str(FILES / "sd_zip.pt"), "code", None)
    assert isinstance(reply, ErrorReply)
    assert reply.message.endswith(
        "sd_zip.pt' holds no program: it is a state dict: named tensors that torch.save wrote"
    )


def test_folders_that_are_not_there(tmp_path: Path) -> None:
    source, nowhere = str(FILES / "mobile.ptl"), tmp_path / "no"
    for replies in (repacked(source, str(nowhere / "m.pt")), extract(source, str(nowhere / "out"))):
        (reply,) = guarded(replies)
        assert isinstance(reply, ErrorReply)
        assert f"there is no folder '{nowhere}'" in reply.message and reply.hints == ("make it first",)


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    target = os.fsdecode(bytes(tmp_path) + b"/out\xff.pt")
    assert "wrote" in text(list(repacked(str(FILES / "mobile.ptl"), target)))
    assert "Small" in text(list(show_program(target, None, None)))


def test_weights_that_are_gone_and_new(tmp_path: Path) -> None:
    (reply,) = diff([str(FILES / "sd_zip.pt"), str(FILES / "tensor.pt")])
    assert "weights: 8 are gone, 1 is new, 0 are equal" in to_text(reply)


def test_what_is_filled_while_loading_is_told(tmp_path: Path) -> None:
    code = method("return x") + "  def __getstate__(self: __torch__.M) -> int:\n    return 1\n"
    code += "  def __setstate__(self: __torch__.M,\n    n: int) -> NoneType:\n    return None\n"
    pickle = b"\x80\x02c__torch__\nM\nq\0)\x81K\x01b."
    shown = text(list(show_program(str(archive(tmp_path / "m.pt", code, data=pickle)), None, None)))
    assert "filled while loading\n  __torch__.M\n" in shown
