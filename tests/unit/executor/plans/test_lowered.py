"""Kernels on disk by what they are made of: found in another process, and for nothing else."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.aten.values.promotion import DEFAULTS
from engine.aten.values.tensor import Tensor, tensor
from engine.executor.plans import cpu_kernels
from engine.executor.plans.lowered import SETTINGS, Compiler, Example, Lowered
from engine.frontend.compilation.compile import compile_source
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.library import key
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir

ADD = """graph(%x : Tensor, %y : Tensor, %n : Scalar):
  %k : int = prim::Constant[value=1]()
  %z : Tensor = aten::add(%x, %y, %k)
  %r : Tensor = aten::mul(%z, %n)
  return (%r)
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "kernels"))
    cpu_kernels._circumstances.cache_clear()
    yield
    cpu_kernels._circumstances.cache_clear()


class Counting:
    """A compiler as another process has it, which counts what it lowers."""

    def __init__(self) -> None:
        self.lowered = 0
        made = cpu_kernels.COMPILER
        self.compiler = Compiler(made.is_fusible, self.lower, made.bind, made.show, made.prepare, made.keeper)

    def lower(self, *args: Any) -> Any:
        self.lowered += 1
        return cpu_kernels.COMPILER.lower(*args)


def of(*sizes: int, dtype: str = "float32") -> Tensor:
    return Tensor(np.arange(int(np.prod(sizes)), dtype=dtype).reshape(sizes))


def example(*args: Any, result: Tensor | None = None) -> Example:
    return args, [of(3, 5) if result is None else result]


def lowerings(graph: Graph, call: Example, sizes: Any = ()) -> int:
    """The number of lowerings that a process without kernels needs for the call."""
    counting = Counting()
    counting.compiler.lowered(graph, call, sizes)
    return counting.lowered


def test_another_process_lowers_nothing() -> None:
    graph, call = parse_ir(ADD), example(of(3, 5), of(3, 5), 2.0)
    assert [lowerings(graph, call) for _ in range(3)] == [1, 0, 0]
    found = Counting().compiler.lowered(graph, call)
    run = cpu_kernels.COMPILER.bind("f", [found.prepared], lambda *args: None)
    np.testing.assert_array_equal(run(of(3, 5), of(3, 5), 2.0).array, (of(3, 5).array * 2) * 2)
    assert run(of(3, 5), of(3, 5), 2) is None, "its guards hold for kernels from disk, too"


def test_names_of_values_are_no_part_of_it() -> None:
    assert lowerings(parse_ir(ADD), example(of(3, 5), of(3, 5), 2.0)) == 1
    assert lowerings(parse_ir(ADD.replace("%z", "%another")), example(of(3, 5), of(3, 5), 2.0)) == 0


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], tuple[str, Example, Any]]] = {
    "structure": lambda patch: (ADD.replace("mul", "sub").replace("%n)", "%n, %k)"), CALL, ()),
    "a constant": lambda patch: (ADD.replace("value=1", "value=3"), CALL, ()),
    "a dtype": lambda patch: (ADD, example(of(3, 5, dtype="float64"), of(3, 5), 2.0), ()),
    "sizes": lambda patch: (ADD, example(of(3, 5), of(1, 5), 2.0), ()),
    "strides": lambda patch: (ADD, example(Tensor(of(5, 3).array.T), of(3, 5), 2.0), ()),
    "how the result lies": lambda patch: (ADD, example(*CALL[0], result=Tensor(of(5, 3).array.T)), ()),
    "the type of a number": lambda patch: (ADD, example(of(3, 5), of(3, 5), 2), ()),
    "a float": lambda patch: (ADD, example(of(3, 5), of(3, 5), 2.5), ()),
    "sizes that are asked for": lambda patch: (ADD, CALL, ((3, None), (), ())),
    "the dtype of new tensors": lambda patch: (
        patch.setattr(DEFAULTS, "floating", np.dtype("float64")), ADD, CALL, (),
    )[1:],
    "the engine's sources": lambda patch: (
        patch.setattr(key, "current", lambda: key.Key({"sources": "others"})),
        cpu_kernels._circumstances.cache_clear(), ADD, CALL, (),
    )[2:],
}  # fmt: skip
CALL = example(of(3, 5), of(3, 5), 2.0)


@pytest.mark.parametrize("what", CHANGES)
def test_each_part_decides(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lowerings(parse_ir(ADD), CALL) == 1
    text, call, sizes = CHANGES[what](monkeypatch)
    assert lowerings(parse_ir(text), call, sizes) == 1
    monkeypatch.undo()


def test_what_no_kernel_holds_is_kept_with_its_reason() -> None:
    text = "graph(%x : Tensor):\n  %r : Tensor = aten::relu(%x)\n  return (%r)\n"
    graph, call = parse_ir(text), example(of(3, 5, dtype="complex64"))
    reasons = []
    for expected in (1, 0):
        counting = Counting()
        with pytest.raises(NotFused) as refusal:
            counting.compiler.lowered(graph, call)
        assert counting.lowered == expected
        reasons.append((str(refusal.value), refusal.value.node))
    assert reasons[0] == reasons[1]


@pytest.mark.parametrize("kind", ["stub", "code"])
def test_what_is_lost_or_corrupted_is_made_again(kind: str, tmp_path: Path) -> None:
    graph = parse_ir(ADD)
    assert lowerings(graph, CALL) == 1
    files = sorted((tmp_path / "kernels").glob("*.kernel"), key=lambda path: path.stat().st_size)
    for path in files if kind == "stub" else files[-1:]:
        path.write_bytes(path.read_bytes()[:-1])
    gc.collect()  # the code of before
    assert [lowerings(graph, CALL) for _ in range(2)] == [1, 0]


PROGRAM = """
import numpy as np, sys
import engine, engine.torch as torch
engine.set_compile_mode("eager")
f = torch.jit.CompilationUnit("def f(x, y):\\n    return torch.tanh(x * y + 1) * 2").f
x = torch.from_numpy(np.linspace(-1, 1, 300, dtype="float32"))
for _ in range(3):
    r = f(x, x)
print(r.numpy().tobytes().hex(), "llvmlite" in sys.modules)
(kernel,) = engine.explain(f).plans[0].groups[0].kernels
print("tanh" in kernel.text, kernel.guards is not None)
"""


def test_a_second_process_needs_no_compiler(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answers = [
        subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, env=environment).stdout.split()
        for _ in range(2)
    ]
    assert [answer[1] for answer in answers] == [b"True", b"False"]
    assert answers[0][0] == answers[1][0] and answers[0][2:] == answers[1][2:] == [b"True", b"True"]


def test_a_long_chain_is_lowered_wherever_it_is_asked_for() -> None:
    """Expressions are as deep as the chain is long, and who asks may be deep in calls already."""
    text = "def f(x: Tensor):\n" + "    x = x * 2 - x\n" * 120 + "    return x\n"
    graph = compile_source(text).functions["f"].graph
    example = [tensor([[1.0, 2.0]])], [tensor([[1.0, 2.0]])]
    compiler = SETTINGS.compiler_for(None)
    assert compiler is not None

    def asked(depth: int) -> object:
        return asked(depth - 1) if depth else Lowered(compiler, graph, example, ()).binding

    assert asked(300) is not None
