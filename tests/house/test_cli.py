"""The command `tsrepl` as a person runs it: exit statuses, and which stream says what."""

import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
TRACEBACK = "Traceback (most recent call last)"


@dataclass
class Ran:
    status: int
    out: str
    err: str


def tsrepl(*args: str, stdin: str = "", cwd: Path = ROOT, **env: str) -> Ran:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    done = subprocess.run(
        [sys.executable, "-m", "tsrepl", *args],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=60,
    )
    assert TRACEBACK not in done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    text = "def main(x, k: int = 3):\n    return x + k\n\ndef pair(n: int):\n    return n, n * 2\n"
    (tmp_path / "p.py").write_text(text)
    return tmp_path / "p.py"


@pytest.fixture
def archive(program: Path) -> Path:
    ran = tsrepl("-c", f"%run {program}\n%save main {program.parent}/p.pt")
    assert ran.status == 0, ran.err
    return program.parent / "p.pt"


# -- text


def test_one_entry() -> None:
    assert tsrepl("-c", "6 * 7") == Ran(0, "42\n", "")


def test_several_entries_stop_at_the_first_error() -> None:
    ran = tsrepl("-c", "x = 1\nprint(x)\nnope\nprint(2)")
    assert (ran.status, ran.out) == (1, "1\n")
    assert ran.err.startswith("Compile error: undefined value nope\n  -c, line 3\n")


def test_standard_input_goes_on_after_an_error() -> None:
    ran = tsrepl(stdin="def f(n: int):\n    return n + 1\nf(1)\nnope\nf(2)\n")
    assert (ran.status, ran.out) == (1, "defined function f(int n) -> int\n2\n3\n")
    assert "stdin, line 4" in ran.err


def test_empty_input_is_no_error() -> None:
    assert tsrepl(stdin="") == Ran(0, "", "")
    assert tsrepl("-c", "") == Ran(0, "", "")


@pytest.mark.parametrize("text", ["x = = 2", "nope", "1 + 'a'", "[1][3]", "%nope", "%load nothing.pt", "assert 1 == 2"])
def test_what_fails_is_told_on_standard_error_alone(text: str) -> None:
    ran = tsrepl("-c", text)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err


def test_input_that_is_not_utf_8() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tsrepl"], input=b"'\xff'\n1\n", capture_output=True, cwd=ROOT, timeout=60, check=False
    )
    assert done.stdout.endswith(b"1\n")
    assert TRACEBACK.encode() not in done.stderr


def test_pipes_get_plain_unbroken_lines() -> None:
    text = "def f(first_argument, second_argument):\n    return first_argument + second_argument\n%graph --no-lines f"
    ran = tsrepl("-c", text, COLUMNS="20")
    assert "\x1b" not in ran.out
    assert " : Tensor = aten::add(%first_argument.1, %second_argument.1, %4)\n" in ran.out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_that_cannot_show_everything_gets_what_it_can(archive: Path, encoding: str) -> None:
    ran = tsrepl("check", str(archive), PYTHONIOENCODING=encoding)
    assert ran.status == 0 and "? nothing suspicious" in ran.out and ran.err == ""


def test_a_reader_that_leaves_early_is_no_error_of_ours() -> None:
    shell = f"set -o pipefail; {sys.executable} -m tsrepl -c '%ops a\n%graph torch.ones(2)' | head -n 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.stdout.startswith("aten::")
    assert (done.returncode, done.stderr) == (0, "")


PRINTING: Final = (
    "for i in range(1000000):\n    print(i)",
    "def f(n: int):\n    for i in range(n):\n        print(i)\nf(1000000)",
    "def f(n: int):\n    print(torch.ones(99999))\n    print(n)\n    return n\n%time f(1)",
    "def f(n: int):\n    print(torch.ones(99999))\n    return n\n%debug f(1)\nc",
)


@pytest.mark.parametrize("text", PRINTING)
def test_a_reader_that_leaves_a_printing_program_early_is_no_error_either(text: str) -> None:
    shell = f"set -o pipefail; {sys.executable} -m tsrepl -c {shlex.quote(text)} | head -c 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [("-c", "%help"), ("show", "ARCHIVE"), ("check", "ARCHIVE", "--json")])
def test_output_that_cannot_be_written_is_told(archive: Path, words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tsrepl", *(word.replace("ARCHIVE", str(archive)) for word in words)],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=60, check=False,
        )  # fmt: skip
    assert done.stderr == "tsrepl: error: the output cannot be written: No space left on device\n"
    assert done.returncode == 1


def test_an_interrupt_ends_it_with_status_130() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tsrepl", "-c", "print('on')\ni = 0\nwhile True:\n    i = i + 1\n"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130
    assert err.startswith("Interrupted")
    assert TRACEBACK not in err


# -- the shell with a file


@pytest.mark.parametrize("words", [[], ["open"]], ids=["short", "long"])
def test_a_file_is_loaded_before_what_comes_in(archive: Path, words: list[str]) -> None:
    ran = tsrepl(*words, str(archive), stdin="p.forward(torch.zeros(1), 2)\n")
    assert ran.status == 0, ran.err
    assert ran.out.startswith(f"loaded p from {archive}\n") and ran.out.endswith("tensor([2.])\nfloat32 (1,)\n")


def test_on_with_what_comes_in_after_a_text() -> None:
    assert tsrepl("-i", "-c", "x = 40", stdin="x + 2\n") == Ran(0, "42\n", "")


# -- run


def test_run_a_text_file(program: Path) -> None:
    assert (
        tsrepl("run", str(program), "--input", "torch.zeros(2, dtype=torch.int64)").out
        == "tensor([3, 3])\nint64 (2,)\n"
    )
    assert tsrepl("run", str(program), "--method", "pair", "--input", "n=4").out == "(4, 8)\n(int, int)\n"


def test_run_an_archive(archive: Path) -> None:
    ran = tsrepl("run", str(archive), "--input", "x=zeros(2, dtype=torch.int64)", "k=5")
    assert (ran.status, ran.out, ran.err) == (0, "tensor([5, 5])\nint64 (2,)\n", "")


def test_arrays_in_and_out(archive: Path) -> None:
    folder = archive.parent
    np.save(folder / "x.npy", np.arange(3, dtype=np.float32))
    np.savez(folder / "both.npz", x=np.ones(2, dtype=np.float32), k=np.zeros(2))
    ran = tsrepl("run", str(archive), "--input", "x.npy", "4", "--output", "out.npz", cwd=folder)
    assert ran.status == 0, ran.err
    assert np.load(folder / "out.npz")["result"].tolist() == [4.0, 5.0, 6.0]
    assert tsrepl("run", "p.pt", "--input", "x=x.npy", "--output", "o.npy", cwd=folder).status == 1  # k has no default
    assert not (folder / "o.npy").exists()


def test_a_text_file_without_main_tells_what_it_defines(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def f(n: int):\n    return n\n")
    assert tsrepl("run", str(tmp_path / "p.py")) == Ran(0, "f(int n) -> int\n", "")


def test_results_that_cannot_be_kept_leave_nothing(program: Path) -> None:
    ran = tsrepl("run", str(program), "--method", "pair", "--input", "4", "--output", "o.npy", cwd=program.parent)
    assert ran.status == 1
    assert sorted(path.name for path in program.parent.iterdir()) == ["p.py"]


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["run", "nothing.pt"], 1),
        (["run", "nothing.py"], 1),
        (["run", "."], 1),
        (["run", "p.py"], 1),
        (["run", "p.py", "--method", "mian"], 2),
        (["run", "p.py", "--input", "x=nope(2)"], 1),
        (["run", "p.py", "--input", "x=ones("], 1),
        (["run", "p.py", "--input", "nothing.npy"], 1),
        (["run", "p.py", "--input", "ones(2)", "--output", "o.txt"], 2),
        (["run", "p.py", "--input", "ones(2)", "--output", "nowhere/o.npz"], 1),
        (["run"], 2),
        (["run", "p.py", "--frob"], 2),
        (["frob"], 2),
        (["show"], 2),
        (["show", "nothing.pt"], 1),
        (["show", "-"], 2),
        (["repack", "p.pt", "-o", "-"], 2),
        (["identify", "-"], 2),
        (["show", "p.py", "--code", "--graph"], 2),
        (["-c"], 2),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_what_goes_wrong_has_its_status(program: Path, args: list[str], status: int) -> None:
    ran = tsrepl(*args, cwd=program.parent)
    assert (ran.status, ran.out) == (status, "")
    assert ran.err


# -- show


def test_show_an_archive(archive: Path) -> None:
    shown = tsrepl("show", str(archive)).out
    assert shown.startswith(f"{archive}: a TorchScript archive\n")
    assert "\np PlaceholderModule" in shown
    assert shown.endswith("forward(Tensor x, int k) -> Tensor\n")
    assert tsrepl("show", str(archive), "--graph").out.startswith("graph(%self : __torch__.PlaceholderModule,\n")
    assert "torch.add(x, k)" in tsrepl("show", str(archive), "--code").out
    assert tsrepl("show", str(archive), "--constants").out == "no constants\n"


def test_show_a_text_file(program: Path) -> None:
    assert tsrepl("show", str(program)).out.splitlines() == [
        "main(Tensor x, int k=3) -> Tensor",
        "pair(int n) -> ((int, int))",
    ]
    assert tsrepl("show", str(program), "--tree", "--method", "pair").out.startswith("(def (ident pair)")


def test_showing_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("print('ran')\n\ndef f(n: int):\n    return n\n")
    assert "ran" not in tsrepl("show", str(tmp_path / "p.py")).out


# -- help


@pytest.mark.parametrize("args", [["--help"], ["run", "--help"], ["show", "--help"]], ids=" ".join)
def test_help_has_examples(args: list[str]) -> None:
    ran = tsrepl(*args)
    assert ran.status == 0
    assert "examples:\n  tsrepl" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 120


def test_version() -> None:
    ran = tsrepl("--version")
    assert ran.status == 0
    assert ran.out.startswith("tsrepl ")


# -- a terminal


def read_until(terminal: int, wanted: str, seconds: float = 20) -> str:
    text, end = "", time.monotonic() + seconds
    while wanted not in text and time.monotonic() < end:
        text += os.read(terminal, 4096).decode("utf-8", "replace")
    return text


def test_the_shell_on_a_terminal(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(PYTHONPATH=str(ROOT), XDG_STATE_HOME=str(tmp_path), TERM="dumb", HOME=str(tmp_path))
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-m", "tsrepl"])
    assert "ts> " in read_until(terminal, "ts> ")
    os.write(terminal, b"6 * 7\r")
    assert "42" in read_until(terminal, "42")
    os.write(terminal, b"exit\r")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert status == 0
