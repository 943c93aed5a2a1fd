"""Kernels of groups as they would run on a GPU, without one: code, shapes of launches, registers, occupancy.

In: the graph of a group that has a kernel, the `Binding` of that, arguments like those of a call (which are not read),
and a target.  Out: an `Inspection`.  Raises NotFused, and MachineError where there is no back end for the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from engine.aten.values.libraries import as_strided
from engine.aten.values.tensor import Tensor
from engine.fuser.backend.llvm_lines import Listing
from engine.fuser.gpu import assemble
from engine.fuser.gpu.assemble import NotAssembled, Report, occupancy
from engine.fuser.gpu.compiler import lower
from engine.fuser.gpu.prepared import Numbers, Step, numbers_of, prepared
from engine.fuser.gpu.ptx import Code, listing_of, ptx_of
from engine.fuser.groups.fusion_group import DTYPES
from engine.fuser.ir.kernel import SIZES, Kernel
from engine.fuser.ir.kernel_text import numbered
from engine.fuser.ir.to_numpy import evaluated
from engine.fuser.stubs.binding import Binding, Result
from engine.ir.graph import Graph
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """A launch: the size of its grid, how many threads share a row, bytes of shared memory of a block, and, where the
    assembler is installed, registers and spilled bytes of a thread and the part of the device's threads that fit."""

    name: str
    blocks: int
    threads: int
    team: int
    shared: int
    registers: int | None = None
    spilled: int | None = None
    occupancy: float | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """`why`: the reason that registers are not known; empty where they are.  `kernel`: what launches are made of."""

    target: str
    ptx: str
    launches: tuple[LaunchFacts, ...]
    why: str
    kernel: Kernel = field(repr=False)
    _code: Code = field(repr=False)

    def listing(self) -> Listing:
        """The PTX with the lines of the kernel's text.  Raises MachineError."""
        return listing_of(self._code, self.target)

    def sass(self) -> str:
        """The text of the machine code.  Raises NotAssembled."""
        return assemble.sass(self.ptx, self.target)


def inspect(graph: Graph, known: Binding, args: Sequence[Any], target: str) -> Inspection:
    """The kernel of the group for such arguments on a target; the `known` one says how results lie in memory."""
    numbers = numbers_of(known, [each.array if isinstance(each, Tensor) else each for each in args])
    results = [_like(each, numbers) for each in known.results if isinstance(each, Result)]
    binding = lower(graph, args, results)
    binding = replace(binding, kernel=numbered(binding.kernel))
    made = prepared(binding, numbers)
    ptx = ptx_of(made.code, target)
    reports: dict[str, Report] = {}
    why = ""
    try:
        reports = {each.name: each for each in assemble.reports(ptx, target)}
    except NotAssembled as reason:
        why = str(reason)
    facts = (_facts(step, reports.get(step.launch.name), target) for step in made.steps)
    return Inspection(target, ptx, tuple(facts), why, binding.kernel, made.code)


def _like(result: Result, numbers: Numbers) -> Tensor:
    """A tensor that lies in memory as the result does, and is not to be read."""
    shape = [int(evaluated(each, numbers)) for each in result.shape]
    order = result.order or range(len(shape))
    strides = dict.fromkeys(order, 0)
    step = SIZES[result.type]
    for d in reversed(order):
        strides[d], step = step, step * shape[d]
    steps = [strides[d] for d in range(len(shape))]
    return Tensor(as_strided(np.zeros(1, DTYPES[result.type]), shape, steps))


def _facts(step: Step, report: Report | None, target: str) -> LaunchFacts:
    shape = step.shape
    if report is None:
        return LaunchFacts(step.launch.name, step.blocks, shape.threads, shape.team, step.shared)
    shared = step.shared + report.shared
    fits = occupancy(target, shape.threads, report.registers, shared) if target in assemble.RESOURCES else None
    return LaunchFacts(
        step.launch.name, step.blocks, shape.threads, shape.team, shared, report.registers, report.spilled, fits
    )
