"""What things may cost: importing the engine, compiling programs."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.frontend.compile import compile_source

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import compile as compile_benchmark

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
    start = time.perf_counter()
    compile_source(text)
    return time.perf_counter() - start


@pytest.mark.parametrize("program", [compile_benchmark.many_functions, compile_benchmark.one_function])
def test_compiling_is_quick_and_linear(program: Callable[[int], str]) -> None:
    seconds_to_compile(program(60))
    short = min(seconds_to_compile(program(500)) for _ in range(3))
    long = min(seconds_to_compile(program(2000)) for _ in range(2))
    assert long < 4.0, f"2,000 lines take {long:.2f} s"
    assert long < 4 * 2.5 * short, f"500 lines take {short:.2f} s, 2,000 lines {long:.2f} s"
