"""NVIDIA's tools: what they say of kernels, and how many threads fit on a multiprocessor."""

from __future__ import annotations

import pytest

from engine.fuser.gpu import assemble
from engine.fuser.gpu.assemble import NotAssembled, occupancy
from engine.fuser.gpu.inspection import inspect
from engine.fuser.groups import from_graph
from engine.fuser.groups.from_graph import NotFused
from engine.ir.clone import copy_graph
from tests.unit.fuser.gpu_kernels import graph_of
from tests.unit.fuser.kernels_of_groups import tensor

SAID = """
ptxas info    : Compiling entry function 'group_0' for 'sm_90'
ptxas info    : Function properties for group_0
    8 bytes stack frame, 12 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 48 registers, used 1 barriers, 8 bytes cumulative stack size, 4112 bytes smem
ptxas info    : Compiling entry function 'group_1' for 'sm_90'
ptxas info    : Function properties for group_1
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 14 registers, used 0 barriers
"""


def test_reports_are_read() -> None:
    assert [*assemble._parsed(SAID)] == [
        assemble.Report("group_0", 48, 16, 8, 4112), assemble.Report("group_1", 14, 0, 0, 0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "expected"),
    [(256, 32, 0, 1.0), (256, 48, 0, 0.625), (1024, 33, 0, 0.5), (32, 16, 0, 0.5), (128, 16, 40 << 10, 0.3125)],
)
def test_occupancy_of_hopper(threads: int, registers: int, shared: int, expected: float) -> None:
    assert occupancy("sm_90", threads, registers, shared) == expected


def test_a_missing_tool_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "_candidates", lambda name: iter(()))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotAssembled, match="ptxas is not installed"):
        assemble.reports("", "sm_90")


def test_kernels_of_the_host_are_inspected_for_a_gpu() -> None:
    x = tensor(2, 3, 5)
    graph, results = graph_of("x: x.permute(0, 2, 1) * 2", [x])
    found = inspect(graph, from_graph.lower(copy_graph(graph), [x], results), [x], "sm_80")
    (launch,) = found.launches
    assert ".target sm_80" in found.ptx and (launch.threads, launch.team) == (256, 1)
    assert found.why or (launch.registers and launch.spilled == 0 and launch.occupancy == 1.0)


def test_products_are_not_inspected() -> None:
    x = tensor(4, 4)
    graph, results = graph_of("x: (x @ x).relu()", [x])
    with pytest.raises(NotFused, match="library"):
        inspect(graph, from_graph.lower(copy_graph(graph), [x], results), [x], "sm_80")
