"""What things may cost: importing the engine, compiling programs, analysing and optimizing graphs."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.executor.pipelines import POST_DERIVATIVE, PRE_DERIVATIVE, PRE_SPECIALISATION, REQUIRED
from engine.frontend.compilation.compile import compile_source
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.parser import parse_ir
from engine.passes.pipeline import run_pipeline

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import compile as compile_benchmark
import passes as passes_benchmark

HEAVY = ("llvmlite", "scipy", "cupy", "rich", "prompt_toolkit", "IPython", "ipywidgets")


def seconds_to_import(module: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - start


def test_importing_the_engine_costs_at_most_half_as_much_again_as_numpy() -> None:
    seconds_to_import("numpy"), seconds_to_import("engine")  # the first time reads the disk
    numpy = statistics.median(seconds_to_import("numpy") for _ in range(5))
    engine = statistics.median(seconds_to_import("engine") for _ in range(5))
    assert engine <= 1.5 * numpy, f"import engine takes {engine:.3f} s, import numpy {numpy:.3f} s"


@pytest.mark.parametrize(
    "use",
    [
        "engine",
        "engine; engine.CompilationUnit('def f(x: int):\\n    return x + 1').f(1)",
        "engine; engine.tensor([1.0])",
    ],
)
def test_heavy_packages_are_not_loaded_before_they_are_needed(use: str) -> None:
    program = f"import {use}; import sys; print(*set({HEAVY!r}) & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ""


def seconds_to_compile(text: str) -> float:
    start = time.process_time()
    compile_source(text)
    return time.process_time() - start


@pytest.mark.parametrize("program", [compile_benchmark.many_functions, compile_benchmark.one_function])
def test_compiling_is_quick_and_linear(program: Callable[[int], str]) -> None:
    seconds_to_compile(program(60))
    short = min(seconds_to_compile(program(500)) for _ in range(3))
    long = min(seconds_to_compile(program(2000)) for _ in range(2))
    assert long < 4.0, f"2,000 lines take {long:.2f} s"
    assert long < 4 * 2.5 * short, f"500 lines take {short:.2f} s, 2,000 lines {long:.2f} s"


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
    done = subprocess.run(
        [sys.executable, "-c", COUNT_SCHEMAS.format(use=use)], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) <= most


@pytest.mark.parametrize("shape", passes_benchmark.SHAPES, ids=lambda shape: shape.__name__)
def test_alias_analysis_takes_at_most_a_second_for_ten_thousand_nodes(shape: Callable[[int], str]) -> None:
    graph = parse_ir(shape(10_000))
    assert sum(1 for _ in graph.all_nodes()) > 9_000
    seconds = min(passes_benchmark.seconds_of(lambda: AliasDb(graph)) for _ in range(2))
    assert seconds < 1.0, f"the analysis takes {seconds:.2f} s"


def test_the_passes_take_at_most_a_second_for_resnet50() -> None:
    pipeline = (*REQUIRED, "inline", *PRE_SPECIALISATION, *PRE_DERIVATIVE, *POST_DERIVATIVE, "remove_mutation")
    seconds = []
    for _ in range(2):
        graph = passes_benchmark.scripted_resnet50()
        start = time.process_time()
        run_pipeline(pipeline, graph)
        seconds.append(time.process_time() - start)
    assert sum(1 for _ in graph.all_nodes()) > 500
    assert min(seconds) < 1.0, f"the passes take {min(seconds):.2f} s"
