"""`%kernels`: the kernels that a function runs, and why the rest of it runs without.

In: a function that was called before, or an expression that calls some, and the form of the kernels' texts.  Out: a
`KernelsReply`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from engine.executor.plans.explanation import (
    GroupExplanation,
    KernelExplanation,
    NodeOutside,
    PlanExplanation,
    explain,
)
from engine.executor.plans.explanation_text import group_name, measured
from engine.executor.plans.source_places import full_place
from engine.lang.counts import counted
from tsrepl.session import gpu_kernels
from tsrepl.session.called import called, check_has_run, compiled_at_once, no_grad_hint
from tsrepl.session.replies import GroupRow, KernelRow, KernelsReply, PlanRow, Reply
from tsrepl.session.workspace import Workspace

FORMS: Final[dict[str, tuple[str, Callable[[KernelExplanation], str]]]] = {
    "": ("python", lambda kernel: _main(kernel.text)),
    "kernel": ("python", lambda kernel: kernel.text),
    "before": ("llvm", lambda kernel: kernel.code().llvm_before),
    "after": ("llvm", lambda kernel: kernel.code().llvm_after),
    "assembly": ("asm", lambda kernel: kernel.code().assembly),
}
"""Forms of texts that may be asked for: their language, and the text of a kernel.  Without a form, that of its last
function, which calls the others: a product has a thousand lines."""


def _main(text: str) -> str:
    *helpers, main = text.rstrip().split("\n\n")
    names = f"# calls {counted(len(helpers), 'function')} of its own: ask for the form kernel\n" if helpers else ""
    return names + main


def kernels(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%kernels f [kernel|before|after|assembly]`, or `%kernels f(x)`; with `--target sm_90` as on a GPU."""
    if gpu_kernels.OPTION in argument:
        yield from gpu_kernels.kernels(workspace, argument)
        return
    target, _, form = argument.rpartition(" ")
    if form not in FORMS:
        target, form = argument, ""
    found = called(workspace, target)
    if found.call is not None:
        with compiled_at_once():
            found.call()
    check_has_run("kernels", found)
    language, text = FORMS[form]
    plans = [
        (function, plan)
        for function in found.functions
        for plan in (explain(function).plans if found.call is None else explain(function).plans[-1:])
    ]
    rows = [_plan(found.name(function), plan, text) for function, plan in plans]
    yield KernelsReply(target, language, tuple(rows))
    yield from no_grad_hint("kernels", found, (plan for _, plan in plans))


def _plan(function: str, plan: PlanExplanation, text: Callable[[KernelExplanation], str]) -> PlanRow:
    groups = tuple(_group(group, text) for group in plan.groups)
    return PlanRow(function, plan.arguments, plan.why, groups, tuple(map(_unfused, plan.unfused)))


def _unfused(node: NodeOutside) -> tuple[str, str, str]:
    return full_place(node.line), node.kind, node.why


def _group(group: GroupExplanation, text: Callable[[KernelExplanation], str]) -> GroupRow:
    lines = tuple((full_place(line), line.text) for line in group.lines)
    return GroupRow(group_name(group.name), lines, tuple(_kernel(kernel, text) for kernel in group.kernels))


def _kernel(kernel: KernelExplanation, text: Callable[[KernelExplanation], str]) -> KernelRow:
    cost = kernel.cost
    return KernelRow(
        kernel.name, (*kernel.arguments, *kernel.guards), kernel.seconds, kernel.measure(),
        cost.bytes if cost else None, cost.operations if cost else None, text(kernel), measured(kernel), kernel,
    )  # fmt: skip
