"""`%kernels`: the kernels that an expression runs, and why the rest of it runs without.

In: an expression, and the form of the kernels' texts.  Out: a `KernelsReply`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from engine.executor.interpreter.interpreter import run_function
from engine.executor.plans.explanation import (
    GroupExplanation,
    KernelExplanation,
    NodeOutside,
    PlanExplanation,
    explain,
)
from engine.executor.plans.source_lines import SourceLine
from engine.fuser.backend import tiering
from engine.ir.unit import Function
from tsrepl.session.replies import GroupRow, KernelRow, KernelsReply, PlanRow, Reply
from tsrepl.session.workspace import Workspace

FORMS: Final[dict[str, tuple[str, Callable[[KernelExplanation], str]]]] = {
    "kernel": ("python", lambda kernel: kernel.text),
    "before": ("llvm", lambda kernel: kernel.code().llvm_before),
    "after": ("llvm", lambda kernel: kernel.code().llvm_after),
    "assembly": ("asm", lambda kernel: kernel.code().assembly),
}
"""Forms of texts that may be asked for: their language, and the text of a kernel."""


def kernels(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%kernels f(x) [kernel|before|after|assembly]`."""
    target, _, form = argument.rpartition(" ")
    if form not in FORMS:
        target, form = argument, "kernel"
    function, arguments = workspace.compile_expression(target)
    _run_compiled(function, arguments)
    language, text = FORMS[form]
    yield KernelsReply(target, language, tuple(_plan(plan, text) for plan in explain(function).plans))


def _run_compiled(function: Function, arguments: Sequence[Any]) -> None:
    """Run it, with kernels made before."""
    before = tiering.mode()
    tiering.set_mode("eager" if before == "background" else before)
    try:
        run_function(function, arguments)
    finally:
        tiering.set_mode(before)


def _plan(plan: PlanExplanation, text: Callable[[KernelExplanation], str]) -> PlanRow:
    groups = tuple(_group(group, text) for group in plan.groups)
    return PlanRow(plan.arguments, plan.why, groups, tuple(map(_unfused, plan.unfused)))


def _unfused(node: NodeOutside) -> tuple[str, str, str]:
    return _place(node.line) if node.line else "", node.kind, node.why


def _group(group: GroupExplanation, text: Callable[[KernelExplanation], str]) -> GroupRow:
    lines = tuple((_place(line), line.text) for line in group.lines)
    return GroupRow(group.name, lines, tuple(_kernel(kernel, text) for kernel in group.kernels))


def _kernel(kernel: KernelExplanation, text: Callable[[KernelExplanation], str]) -> KernelRow:
    cost = kernel.cost
    return KernelRow(
        kernel.name, (*kernel.arguments, *kernel.guards), kernel.seconds, kernel.measure(),
        cost.bytes if cost else None, cost.operations if cost else None, text(kernel),
    )  # fmt: skip


def _place(line: SourceLine) -> str:
    return f"{line.file}:{line.number}" if line.file else f"line {line.number}"
