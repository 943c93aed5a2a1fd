"""Interrupts, failing allocations and system calls, other threads and forks at some places of first calls, definitions,
scripting, loading, saving, storing kernels and finding the library of operators; `make test-all` tries every place of
the short ones, and every line that the others come through."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .injected_workloads import SHORT, WORKLOADS

KINDS = ("interrupt", "memory", "system", "switch", "fork")
SYSTEM = ("script", "save", "load", "short_save", "short_load", "store", "library")
"""Workloads that make system calls; the others make some at most while they import."""
EXHAUSTIVE = {each.__name__ for each in SHORT}
PAIRS = [(name, kind) for name in WORKLOADS for kind in KINDS if kind != "system" or name in SYSTEM]
SOME, MANY = 12, 300
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each place is tried in a forked child")


def inject(workload: str, kind: str, which: str) -> None:
    """Raises AssertionError with what was wrong after a fault."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.fuzz.injection", workload, kind, which]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize(("workload", "kind"), PAIRS)
def test_a_fault_leaves_nothing_half_done(workload: str, kind: str) -> None:
    inject(workload, kind, "every" if workload == "store" else str(SOME))


@pytest.mark.slow
@pytest.mark.parametrize(("workload", "kind"), PAIRS)
def test_no_fault_anywhere_leaves_something_half_done(workload: str, kind: str) -> None:
    which = "every" if workload in EXHAUSTIVE else {"system": "every", "switch": str(MANY)}.get(kind, "lines")
    inject(workload, kind, which)
