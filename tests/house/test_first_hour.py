"""The first hour: what the page shows is run, and answers what stands there.

Blocks of Python run in one fresh process, in order.  A block below a paragraph that names `print(...)` is what this
prints; other calls that the text names run, too, as do views of the shell and commands.  What stands below an entry at
a prompt is its answer; times and passes differ from run to run.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from engine.fuser.backend import machine
from tests.house.typed_pages import replayed
from tsrepl.session.replies import ErrorReply
from tsrepl.session.session import Session

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "first-hour.md"
TEXT: Final = PAGE.read_text(encoding="utf-8")
_BLOCK: Final = re.compile(r"(?:^ {4}.*\n(?:\n+(?= {4}))?)+", re.MULTILINE)
_CALL: Final = re.compile(r"`((?:print|engine\.\w+)\([^`]+\))`")
_VIEW: Final = re.compile(r"%\w+(?: --\w+)? f\b(?:\(x, 2\))?(?: f\.pt)?")
_MARK: Final = "-- answer --"
_TIMES: Final = re.compile(r"\d+(\.\d+)? (ns|µs|ms|s)\b")
_PASSES: Final = re.compile(r"^ +\w+ TIME\n", re.MULTILINE)
_COUNTS: Final = re.compile(r"\d+ in TIME; \d+ changed")


def blocks() -> Iterator[tuple[str, str]]:
    """Each block, and the paragraph above it."""
    for match in _BLOCK.finditer(TEXT):
        lines = [line[4:] for line in match[0].rstrip("\n").split("\n")]
        yield TEXT[: match.start()].rstrip("\n").rpartition("\n\n")[2], "\n".join(lines)


def kind(above: str, text: str) -> str:
    """Entries at a prompt, the row of an operator, Python, what a `print` above the block shows, or commands."""
    if text.startswith(("ts>", "op(")):
        return "entries" if text.startswith("ts>") else "row"
    try:
        ast.parse(text)
    except SyntaxError:
        return "shows" if "`print(" in above else "commands"
    return "python"


def script() -> tuple[str, list[str]]:
    """The page as a program, and the answers that it shows."""
    written, shown = [], []
    for above, text in blocks():
        if kind(above, text) == "python":
            written.append(text)
        elif kind(above, text) == "shows":
            written += [f"print({_MARK!r})", _CALL.findall(above)[-1], f"print({_MARK!r})"]
            shown.append(text)
    return "\n".join([*written, *_CALL.findall(TEXT)]), shown


def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=300,
        check=True,
    )


def test_python_prints_what_stands_there(tmp_path: Path) -> None:
    program, shown = script()
    found = run(sys.executable, "-c", program, cwd=tmp_path).stdout.split(f"{_MARK}\n")[1::2]
    assert [each.rstrip("\n") for each in found] == shown
    assert len(shown) > 1
    assert len(_CALL.findall(TEXT)) > 5


def rows_shown() -> list[str]:
    return [text for above, text in blocks() if kind(above, text) == "row"]


_USES = """
import engine, engine.torch as torch
x, y = torch.tensor([0.5, 2.0, -3.0]), torch.tensor([1.0, -1.0, 1.0])
assert torch.smooth_hinge(x, y).tolist() == x.smooth_hinge(y).tolist() == [0.125, 2.5, 3.5]
assert torch.smooth_hinge(x, y, 0.5, out=torch.empty(3)).tolist() == x.clone().smooth_hinge_(y, 0.5).tolist()
engine.set_compile_mode("eager")
f = torch.jit.CompilationUnit("def f(x, y):\\n    return torch.smooth_hinge(torch.tanh(x), y).sum()").f
for given in (x, x.clone().requires_grad_()):
    for _ in range(4):
        given.grad = None
        result = f(given, y)
    torch.testing.assert_close(result, torch.smooth_hinge(torch.tanh(x), y).sum())
    if given.requires_grad:
        result.backward()
        numeric = (f(x + 1e-3, y) - f(x - 1e-3, y)) / 2e-3
        torch.testing.assert_close(given.grad.sum(), numeric, rtol=1e-2, atol=1e-3)
plans = engine.explain(f).plans
assert [[node.kind() for node in f.graph.nodes()].count("aten::smooth_hinge")] == [1]
assert any(len(group.kernels) == 1 and group.graph.count("aten::") == 3 for plan in plans for group in plan.groups)
"""


def test_a_composed_operator_is_one_row(tmp_path: Path) -> None:
    (row,) = (row for row in rows_shown() if "composite=" in row)
    run(sys.executable, "-c", f"from engine.aten.dispatch.table import op\n{row}\n{_USES}", cwd=tmp_path)


def test_rows_of_operators_are_there() -> None:
    rows = [row for row in rows_shown() if "composite=" not in row]
    found = [" ".join(each.split()) for each in (*rows, *re.findall(r"`(describe\([^`]+\))`", TEXT))]
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "engine/aten/ops").glob("*.py"))
    table = " ".join(" ".join(sources).split())
    assert [row for row in found if row not in table] == []
    assert len(found) > 1


def test_views_of_the_shell_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = Session()
    program = re.search(r'CompilationUnit\("""\n(.*?)"""', "\n".join(text for _, text in blocks()), re.DOTALL)
    assert program is not None
    views = dict.fromkeys(_VIEW.findall(TEXT))
    entries = [program[1], "x = torch.ones(2, 2)", "f(x, 2)", *views]
    assert [
        (entry, reply) for entry in entries for reply in session.execute(entry) if isinstance(reply, ErrorReply)
    ] == []
    assert len(views) > 8


def masked(text: str) -> str:
    """The page without what differs from run to run, however its lines are wrapped."""
    return " ".join(_COUNTS.sub("COUNTS", _PASSES.sub("", _TIMES.sub("TIME", text))).split())


@pytest.mark.skipif(not machine.has_feature("sse2") and not machine.has_feature("neon"), reason="no LLVM")
def test_entries_answer_what_stands_below(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path))
    found = replayed(TEXT, Session(), leaves_out=True)
    if request.config.getoption("--update-cases"):
        PAGE.write_text(found, encoding="utf-8")
        return
    assert masked(found) == masked(TEXT)


def commands() -> list[str]:
    """The commands of the page, without what is said of them."""
    lines = (line for above, text in blocks() if kind(above, text) == "commands" for line in text.split("\n"))
    return [re.split(r" {2,}", line)[0] for line in lines]


def fill(folder: Path) -> None:
    """Write a program whose two products are one, and an archive of it."""
    (folder / "p.py").write_text(
        'import engine\nf = engine.CompilationUnit("def f(x):\\n    return x * 2 + x * 2\\n").f\n'
        'engine.run_pass("cse", f.graph)\nf.save("model.pt")\n'
    )
    run(sys.executable, "p.py", cwd=folder)


@pytest.mark.parametrize("command", commands())
def test_commands_answer(command: str, tmp_path: Path) -> None:
    settings, words = dict[str, str](), shlex.split(command)
    while "=" in words[0]:
        name, _, settings[name] = words.pop(0).partition("=")
    program, *rest = words
    if "pytest" in rest:
        found = run(sys.executable, *rest, "--collect-only", "-o", "addopts=--import-mode=importlib -q", cwd=ROOT)
        assert "::" in found.stdout
    elif program == "make":
        assert run(program, "--dry-run", *rest, cwd=ROOT).stdout
    else:
        fill(tmp_path)
        called = {".venv/bin/python": (), ".venv/bin/tsrepl": ("-m", "tsrepl")}[program]
        found = run(sys.executable, *called, *rest, cwd=tmp_path, **settings)
        assert bool(found.stdout) == bool(rest[1:])
        assert ("[UPDATE cse:001] Replacing" in found.stderr) == bool(settings)
