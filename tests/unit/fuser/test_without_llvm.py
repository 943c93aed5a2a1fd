"""Where llvmlite is missing, programs run as they would, in every mode and after every change of mode."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import itertools, sys
import engine, engine.torch as torch
from engine.fuser.backend import tiering

torch.manual_seed(0)
X, W, IMAGE = torch.randn(6, 10), torch.randn(3, 2, 3, 3), torch.randn(1, 2, 8, 8)
TEXT = '''
def softmax(x: Tensor):
    return torch.softmax(torch.tanh(x) * 1.5 + x.mean(-1, True), -1)
def numbers(n: int):
    total = 0
    for i in range(n):
        total += i * i
    return total
'''
UNIT = torch.jit.CompilationUnit(TEXT)


def gradients(f):
    x = X.clone().requires_grad_()
    f(x).backward()
    return x.grad


CASES = {
    "conv": lambda: torch.nn.functional.conv2d(IMAGE, W), "sum": lambda: (torch.ones(1000) * 3).sum(),
    "sort": lambda: torch.sort(X, 1)[0], "matmul": lambda: torch.matmul(X, X.t()), "add_": lambda: X.clone().add_(1),
    "backward": lambda: gradients(lambda x: torch.matmul(x, x.t()).sum() + torch.relu(x).cumsum(0).mean()),
    "leaky": lambda: gradients(lambda x: torch.nn.functional.leaky_relu(x).exp().sum()),
    "unit": lambda: UNIT.softmax(X), "unit backward": lambda: gradients(lambda x: UNIT.softmax(x)[0, 0]),
    "numbers": lambda: torch.tensor(UNIT.numbers(10)),
    "cumprod": lambda: torch.cumprod(X, 0), "lstm": lambda: torch.nn.LSTMCell(10, 4)(X)[0] * 0,
    "dropout": lambda: torch.nn.functional.dropout(X, 0.5) * 0, "mean": lambda: X.mean(1), "gelu": lambda: gradients(
        lambda x: torch.nn.functional.gelu(x).sum()),
}
engine.set_compile_mode("off")
EXPECTED = {name: case() for name, case in CASES.items()}
for mode in ("eager", "background", "off", "background", "eager", "off"):
    engine.set_compile_mode(mode)
    for name, case in CASES.items():
        for _ in range(3):
            assert torch.allclose(case(), EXPECTED[name]), (mode, name)
tiering.wait()
assert not tiering.failures(), tiering.failures()
print("llvmlite" in sys.modules)
"""


def test_programs_run_as_ever_in_every_mode(tmp_path: Path) -> None:
    (tmp_path / "llvmlite").mkdir()
    (tmp_path / "llvmlite" / "__init__.py").write_text("raise ImportError('there is no llvmlite here')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr[-3000:]


SHORT = """
import os, resource, signal, sys, tempfile
import engine, engine.torch as torch
engine.set_compile_mode("eager")
# Python itself ends the process where there is no memory for the object of the error that it raises.
PYTHONS_OWN = b"Cannot recover from MemoryErrors while normalizing exceptions"
said = tempfile.TemporaryFile()
TEXT = '''
def f(x: Tensor, n: int):
    for i in range(n):
        x = torch.tanh(x) * %r + i
    return torch.softmax(x + 1, -1).sum()
'''
run = lambda number: [torch.jit.CompilationUnit(TEXT % number).f(torch.ones(3, 3), 2).item() for _ in range(3)]
run(0.25)
for kib in (0, 100, 200, 300, 400, 500, 600, 800, 1000, 2000, 4000, 16000):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os.dup2(said.fileno(), 2)
        taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + kib * 1024, -1))
        try:
            os._exit(0 if all(abs(each - 3) < 1e-4 for each in run(0.5)) else 1)
        except (MemoryError, RuntimeError):
            os._exit(0)
        finally:
            os._exit(2)
    status = os.waitpid(child, 0)[1]
    said.seek(0)
    last = said.read()
    said.truncate(0)
    if status and PYTHONS_OWN not in last:
        print(f"with {kib} KiB: status {status}", last.decode())
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's facts about memory")
def test_where_memory_is_short_the_process_does_not_end() -> None:
    environment = {**os.environ, "TSREPL_KERNEL_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", SHORT], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr[-3000:]
