"""What things may cost, counted in calls, modules and schemas, so that a busy machine changes nothing.

`benchmarks/compile.py` and `benchmarks/passes.py` print the same in seconds.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import engine
from benchmarks import compile as programs
from benchmarks import passes as graphs
from engine.executor.plans.pipelines import BEFORE_EXECUTION, POST_DERIVATIVE, PRE_DERIVATIVE, PRE_SPECIALISATION
from engine.frontend.compilation.compile import compile_source
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.parser import parse_ir
from engine.passes.pipeline import run_pipeline

FILES = Path(__file__).parents[1] / "unit" / "serialize"
HEAVY = ("llvmlite", "scipy", "cupy", "rich", "prompt_toolkit", "IPython", "ipywidgets")


def calls_of(work: Callable[[], object]) -> int:
    """The number of calls of Python and builtin functions that the work makes."""
    count = 0

    def on_event(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def printed_by(program: str) -> str:
    """The output of a program in a process that keeps bytecode, as those of users do."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def ours(loaded: set[str]) -> set[str]:
    """The modules that are this project's."""
    return {name for name in loaded if name.split(".")[0] in ("engine", "tsrepl")}


def test_the_prompt_waits_for_neither_the_engine_nor_what_shows_answers() -> None:
    loaded = {*printed_by("import tsrepl.cli, tsrepl.shell, sys; print(*sys.modules)").split()}
    engine = {"numpy", "engine.aten", "engine.ir.graph"}
    answers = {"rich", "pygments.lexer", "tsrepl.render.terminal", "tsrepl.session.replies", "tsrepl.shell.pager"}
    assert not loaded & (engine | answers | {"argparse", "tomllib"})
    assert len(ours(loaded)) <= 22


ONE_ENTRY = "import sys; from tsrepl.cli import main; main(['-c', 'torch.ones(2) * 3']); print(*sys.modules)"


def test_one_entry_loads_what_it_needs() -> None:
    printed_by(ONE_ENTRY)  # keeps the index of families
    loaded = {*printed_by(ONE_ENTRY).splitlines()[-1].split()}
    plans = {f"engine.executor.plans.{name}" for name in ("making", "fusion", "differentiation", "scalar_plans")}
    others = {"engine.ir.parser", "engine.frontend.tracing", "engine.serialize.container.write", "engine.torch"}
    shown = {"argparse", "pathlib", "json", "pygments", "rich", "prompt_toolkit", "IPython", "llvmlite"}
    assert not loaded & (plans | others | shown)
    families = {name for name in loaded if name.startswith("engine.aten.ops.")}
    assert len(families) <= 6
    assert len(ours(loaded)) <= 285


ARCHIVES = ("archives/everything.pt", "files/mobile.ptl", "files/sd_zip.pt", "files/sd_legacy.pt")


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("file", ARCHIVES)
def test_telling_what_a_file_is_loads_nothing_that_computes(file: str, options: list[str]) -> None:
    words = ["identify", str(FILES / file), *options]
    told = printed_by(f"import sys; from tsrepl.cli import main; main({words!r}); print(*sys.modules)")
    assert words[1] in told
    loaded = {*told.splitlines()[-1].split()}
    packages = {".".join(name.split(".")[:2]) for name in loaded}
    assert not packages & {"engine.aten", "engine.executor", "engine.frontend", "engine.fuser", "engine.ir", "numpy"}
    assert len(ours(loaded)) <= 62


PROGRAM = "def f(x: Tensor) -> Tensor:\n    return x + 1\n\ndef main():\n    print(f(torch.ones(2)))\n"


def test_running_a_text_loads_neither_plans_nor_archives(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    run = f"import sys; from tsrepl.cli import main; main(['run', {str(path)!r}]); print(*sys.modules)"
    printed_by(run)  # keeps the index of families
    loaded = {*printed_by(run).splitlines()[-1].split()}
    plans = {f"engine.executor.plans.{name}" for name in ("making", "fusion", "differentiation", "explanation")}
    archives = {"engine.serialize.archive", "engine.serialize.code.source_export", "engine.serialize.inspect"}
    assert not loaded & (plans | archives | {*HEAVY, "engine.torch", "engine.fuser.groups"})
    assert len(ours(loaded)) <= 326


LOADING = """
import sys
from engine.serialize.archive import load_archive
load_archive({file!r})
print(*sys.modules)
"""


def test_loading_an_archive_loads_no_compiler() -> None:
    loaded = {*printed_by(LOADING.format(file=str(FILES / "archives" / "constants.pt"))).split()}
    compilers = {
        "engine.frontend.emit",
        "engine.frontend.lowering",
        "engine.frontend.python.resolver",
        "engine.fuser.ir",
    }
    shown = {"engine.executor.plans.explanation", "engine.executor.debugging", "engine.torch.nn.functional", "tempfile"}
    assert not loaded & (compilers | shown | {*HEAVY, "argparse", "json", "hashlib", "pathlib"})
    assert len(ours(loaded)) <= 272


CALLING = """
import sys, engine.torch as torch
from engine.fuser.backend import tiering
known = {{*sys.modules}}
f = torch.jit.load({file!r})
for _ in range(3):
    f(torch.ones(3, 3))
    tiering.wait()
print(*known, "|", *({{*sys.modules}} - known))
"""
PROGRAMS = {
    "chain": "def f(x):\n    return torch.softmax(torch.tanh(x @ x) + x.t(), 1)\n",
    "loop": "def f(x):\n    y = [x]\n    for i in range(x.size(0)):\n        if i > 0:\n            y.append(x[i])\n"
    "    return y\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_loads_and_first_calls_find_all_that_they_need_in_the_namespace(name: str, tmp_path: Path) -> None:
    file = str(tmp_path / "f.pt")
    engine.jit.save(engine.CompilationUnit(PROGRAMS[name]).f, file)
    with_namespace, later = printed_by(CALLING.format(file=file)).split("|")
    assert not {*HEAVY, "engine.executor.debugging"} & {*with_namespace.split()}
    assert not [name for name in ours({*later.split()}) if not name.startswith("engine.aten.")]


def test_importing_the_engine_loads_nothing_else() -> None:
    assert int(printed_by("import sys, numpy; n = len(sys.modules); import engine; print(len(sys.modules) - n)")) <= 5


@pytest.mark.parametrize(
    "use",
    [
        "engine",
        "engine; engine.CompilationUnit('def f(x: int):\\n    return x + 1').f(1)",
        "engine; engine.tensor([1.0])",
    ],
)
def test_heavy_packages_are_not_loaded_before_they_are_needed(use: str) -> None:
    assert printed_by(f"import {use}; import sys; print(*set({HEAVY!r}) & set(sys.modules))") == ""


@pytest.mark.parametrize("program", [programs.many_functions, programs.one_function])
def test_compiling_is_linear(program: Callable[[int], str]) -> None:
    compile_source(program(60))
    texts = program(100), program(400)
    short, long = (calls_of(partial(compile_source, text)) for text in texts)
    assert long < 4 * 1.2 * short
    assert long < 400 * 3500


COUNT_SCHEMAS = """
import engine.lang.schema_parser as parser
parse, count = parser.parse_schema, [0]
def counted(text):
    count[0] += 1
    return parse(text)
parser.parse_schema = counted
import {use}
print(count[0])
"""


@pytest.mark.parametrize(
    ("use", "most"),
    [
        ("engine", 0),
        ("engine.torch as torch; torch.tensor([1.0])", 100),
        ("engine.torch as torch; (torch.tensor([1.0]) + 1).sum()", 100),
        ("engine.torch as torch; torch.nn.Linear(2, 2)(torch.ones(1, 2))", 100),
    ],
)
def test_schemas_are_parsed_when_they_are_needed(use: str, most: int) -> None:
    assert int(printed_by(COUNT_SCHEMAS.format(use=use))) <= most


@pytest.mark.parametrize("shape", graphs.SHAPES, ids=lambda shape: shape.__name__)
def test_alias_analysis_is_linear(shape: Callable[[int], str]) -> None:
    small, large = parse_ir(shape(600)), parse_ir(shape(2400))
    assert calls_of(lambda: AliasDb(large)) < 4 * 1.3 * calls_of(lambda: AliasDb(small))


def test_the_passes_make_few_calls_for_each_node_of_resnet50() -> None:
    pipeline = (*BEFORE_EXECUTION, "inline", *PRE_SPECIALISATION, *PRE_DERIVATIVE, *POST_DERIVATIVE, "remove_mutation")
    graph = graphs.scripted_resnet50()
    calls = calls_of(lambda: run_pipeline(pipeline, graph))
    nodes = sum(1 for _ in graph.all_nodes())
    assert nodes > 500
    assert calls < 900 * nodes
