"""`%kernels --target`: the kernels of a function as they would run on a GPU, which need not be there.

In: a function that was called before, or an expression that calls some, a target, and the form of the kernels' texts.
Out: a `GpuKernelsReply`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from engine.executor.plans.explanation import GroupExplanation, KernelExplanation, explain
from engine.executor.plans.explanation_text import group_name
from engine.executor.plans.source_places import full_place
from engine.fuser.backend.machine import MachineError
from engine.fuser.gpu.assemble import NotAssembled
from engine.fuser.gpu.inspection import Inspection, LaunchFacts
from engine.fuser.gpu.ptx import ARCHITECTURES
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.ir.kernel_text import show
from tsrepl.session.called import called, check_has_run, compiled_at_once
from tsrepl.session.failures import UsageError
from tsrepl.session.replies import GpuKernelRow, GpuKernelsReply, LaunchRow, Reply
from tsrepl.session.workspace import Workspace

OPTION: Final = "--target"
FORMS: Final[dict[str, tuple[str, Callable[[Inspection], str]]]] = {
    "ptx": ("asm", lambda found: found.ptx),
    "kernel": ("python", lambda found: show(found.kernel)),
    "sass": ("asm", lambda found: found.sass()),
}
"""Forms of texts that may be asked for: their language, and the text of a kernel."""


def kernels(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%kernels f(x) --target sm_90 [ptx|kernel|sass]`."""
    text, _, options = argument.partition(OPTION)
    target, _, form = options.strip().partition(" ")
    form = form or "ptx"
    if target not in ARCHITECTURES or form not in FORMS:
        wrong = f"'{form}' is no form" if target in ARCHITECTURES else f"'{target}' is no architecture of a GPU"
        told = f"{OPTION} takes an architecture and a form: {', '.join(ARCHITECTURES)}; {', '.join(FORMS)}"
        raise UsageError(wrong, hints=(told,))
    found = called(workspace, text.strip())
    if found.call is not None:
        with compiled_at_once():
            found.call()
    check_has_run("kernels", found)
    explained = [explain(function).plans for function in found.functions]
    plans = [plan for each in explained for plan in (each if found.call is None else each[-1:])]
    language, of = FORMS[form]
    groups = [group for plan in plans for group in plan.groups]
    rows = [_row(group, kernel, target, of) for group in groups for kernel in group.kernels]
    yield GpuKernelsReply(text.strip(), target, language, tuple(rows))


def _row(
    group: GroupExplanation, kernel: KernelExplanation, target: str, of: Callable[[Inspection], str]
) -> GpuKernelRow:
    moved = kernel.cost.bytes if kernel.cost else None
    lines = tuple((full_place(line), line.text) for line in group.lines)
    row = GpuKernelRow(group_name(group.name), moved, (), "", "", lines, kernel)
    try:
        found = kernel.on_gpu(target)
        row = replace(row, launches=tuple(map(_launch, found.launches)), why=found.why)
        return replace(row, text=of(found))
    except (NotFused, MachineError, NotAssembled) as why:
        return replace(row, why=str(why))


def _launch(facts: LaunchFacts) -> LaunchRow:
    return LaunchRow(
        facts.name, facts.blocks, facts.threads, facts.team, facts.shared, facts.registers, facts.spilled,
        facts.occupancy,
    )  # fmt: skip
