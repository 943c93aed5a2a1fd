"""What things may cost: importing the engine."""

import statistics
import subprocess
import sys
import time

import pytest

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
