"""Every command of the shell, on the examples and on archives of more than 1,000 nodes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

import engine
from engine.ir.clone import copy_graph
from engine.passes.pipeline import run_pipeline
from tests.terminal.archives import SAMPLES, save
from tsrepl.session.commands import COMMANDS
from tsrepl.session.replies import ErrorReply
from tsrepl.session.session import Session

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
LSTM: Final = "torch.ones(1, 3), torch.ones(1, 4), torch.ones(1, 4), torch.ones(16, 3), torch.ones(16, 4), " \
    "torch.ones(16), torch.ones(16)"  # fmt: skip

FAILS: Final = "fails: "
"""Lines that are answered by an error begin so."""

SUBJECTS: Final[Mapping[str, tuple[str, str]]] = {
    "mlp": ("torch.ones(4, 6)", ""),
    "lstm_cell": (LSTM, ""),
    **{name: (sample.input, sample.part) for name, sample in SAMPLES.items()},
}
"""For each archive: the arguments of a call, and the path of a module inside."""

ROWS: Final[Mapping[str, Sequence[str]]] = {
    "graph": ("%graph m", "%graph --no-lines --full m"),
    "modules": ("%modules m", "%modules m 3"),
    "passes": ("%passes m({x})", "%passes m inline dce"),
    "bisect": ("%bisect m({x}) inline dce",),
    "code": ("%code m",),
    "tree": ("def typed(a):\n    return a + 1\n", "%tree typed"),
    "instructions": ("%instructions m",),
    "kernels": ("%kernels m({x})",),
    "explain": ("%explain m({x})", "%explain m"),
    "plan": ("%plan m({x})", "%plan m"),
    "profile": ("%profile m({x})", "%profile --types m({x})"),
    "guards": ("%guards m({x})",),
    "autodiff": ("%autodiff m({x})",),
    "debug": ("%debug m({x})", "n", "s", "bs", "locals", "where", "watch nan", "b aten::add", "q"),
    "trace": ("%trace --last 20 m({x})", "%trace --op add m({x})"),
    "tap": ("%tap m {part} -- m({x})",),
    "run_until": ("%run_until m {part} -- m({x})",),
    "cut": ("%cut m -> {part} as front",),
    "schema": ("%schema m", "%schema torch.add"),
    "ops": ("%ops relu",),
    "time": ("%time m({x})",),
    "save": ("%save m again.pt",),
    "load": ("%load again.pt as again", "again({x})"),
    "identify": ("%identify again.pt",),
    "check": ("%check again.pt",),
    "diff": ("%diff again.pt {path}",),
    "run": ("%run program.py",),
    "doc": ("%doc m", "m?"),
    "more": (f"{FAILS}torch.relu(1, 2, 3)", f"{FAILS}%more"),
    "history": ("%history 3",),
    "cd": ("%cd .",),
    "env": ("%env HOME",),
    "who": ("%who",),
    "help": ("%help", "%help trace"),
    "edit": ("%edit",),
    "reset": ("%reset",),
}
"""For each command, the lines that are typed; those about `{part}` only where there are modules inside."""


def test_every_command_has_a_row() -> None:
    assert [command.name for command in COMMANDS if command.name not in ROWS] == []
    assert set(ROWS) <= {command.name for command in COMMANDS}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "program.py").write_text("def main():\n    print(1 + 1)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def archive(name: str, folder: Path) -> Path:
    return save(name, folder) if name in SAMPLES else Path(shutil.copy(EXAMPLES / f"{name}.pt", folder))


def lines_for(name: str, path: Path) -> Iterator[str]:
    arguments, part = SUBJECTS[name]
    yield f"%load {path} as m"
    for row in ROWS.values():
        for line in row:
            if part or "{part}" not in line:
                yield line.format(x=arguments, part=part, path=path)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ("residual", "dense"))) for name in SUBJECTS]
)
def test_every_command_works(name: str, folder: Path, without_machine_code: None) -> None:
    path = archive(name, folder)
    assert name not in SAMPLES or node_count(path) > 1000
    session = Session()
    for line in lines_for(name, path):
        replies = session.execute(line.removeprefix(FAILS))
        errors = [reply.message for reply in replies if isinstance(reply, ErrorReply)]
        assert bool(errors) == line.startswith(FAILS), (line, errors)


def node_count(path: Path) -> int:
    """The nodes that a call runs: those of the methods that it calls are counted in their places."""
    graph = copy_graph(engine.load(str(path)).forward._function.graph)
    run_pipeline(("inline",), graph)
    return sum(1 for _ in graph.all_nodes())
