"""The kernel view: a group's lines, loop IR, LLVM and machine code side by side, linked line by line.

In: a `KernelsReply` or `GpuKernelsReply`.  Out: its widget.  A text is made when it is looked at.  Its lines are those
of a loop IR's text, as LLVM's debug locations say, and these are from lines of the program.  There are two loop IRs,
the host's and the GPU's: what is made of one and of the other meets at the lines of the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final

import traitlets

from engine.executor.plans.explanation import KernelExplanation
from engine.executor.plans.source_places import full_place
from engine.fuser.backend.llvm_lines import Listing
from engine.fuser.ir.kernel_text import show
from engine.lang.counts import byte_size, counted
from engine.lang.records import dataclass
from tsrepl.session.replies import GpuKernelsReply, KernelsReply, LaunchRow, PlanRow
from tsrepl.widgets.messages import Kernel, Refused
from tsrepl.widgets.view import Answer, Handler, View, front_end, spans

_MOST_LINES: Final = 4000
_TARGET: Final = "sm_90"
"""The GPU whose texts stand beside the host's where none was asked for."""
_PROGRAM: Final = "TorchScript"

Made = Callable[[KernelExplanation], Listing]
Lines = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Text:
    """A form of text: its title, the loop IR whose lines it has, its language, what makes it, and a pattern of the line
    that names the function from there on."""

    title: str
    of: str
    language: str
    made: Made
    function: re.Pattern[str]


def _own_lines(text: str) -> Listing:
    return Listing(text, tuple(range(1, text.count("\n") + 2)))


_DEF: Final = re.compile(r"def (\w+)\(")
_DEFINE: Final = re.compile(r'define .*@"?([\w.]+)"?\(')
_LABEL: Final = re.compile(r'^"?([A-Za-z_][\w.]*)"?:|\.entry (\w+)|\.func.* (\w+)\(')
_HOST: Final = "host"
_ON_HOST: Final = (
    _Text("loop IR", _HOST, "python", lambda kernel: _own_lines(kernel.text), _DEF),
    _Text("LLVM", _HOST, "llvm", lambda kernel: kernel.listings.before, _DEFINE),
    _Text("LLVM, optimized", _HOST, "llvm", lambda kernel: kernel.listings.after, _DEFINE),
    _Text("assembly", _HOST, "asm", lambda kernel: kernel.listings.assembly, _LABEL),
)


def _on_gpu(target: str) -> tuple[_Text, ...]:
    """The texts for a GPU."""
    return (
        _Text(f"loop IR for {target}", target, "python",
              lambda kernel: _own_lines(show(kernel.on_gpu(target).kernel)), _DEF),
        _Text(f"PTX for {target}", target, "asm", lambda kernel: kernel.on_gpu(target).listing(), _LABEL),
    )  # fmt: skip


class KernelView(View):
    """The kernels of plans; the texts of one kernel show at a time."""

    _esm = traitlets.Unicode(front_end("kernels")).tag(sync=True)

    HANDLERS: ClassVar[dict[type[Any], Handler]] = {
        Kernel: lambda view, message: view.text(message.number, message.text)
    }

    def __init__(self, reply: KernelsReply | GpuKernelsReply) -> None:
        if isinstance(reply, GpuKernelsReply):
            plans = tuple[PlanRow, ...]()
            found, on_gpu = [*_of_gpu(reply)], _on_gpu(reply.target)
            first = [_PROGRAM, *(each.title for each in on_gpu)]
        else:
            plans, found, on_gpu, first = reply.plans, [*_of_plans(reply)], _on_gpu(_TARGET), [_PROGRAM, *_FIRST]
        self.texts = (*_ON_HOST, *on_gpu)
        self.kernels = [(lines, kernel) for _, _, lines, kernel in found]
        super().__init__({
            "title": reply.title, "kernels": [{"name": name, "facts": facts} for name, facts, _, _ in found],
            "texts": [[_PROGRAM, ""], *([each.title, each.of] for each in self.texts)],
            "first": first,
            "unfused": [[*each] for plan in plans for each in plan.unfused],
            "why": [f"{plan.function}{plan.arguments}: {plan.why}" for plan in plans if plan.why],
        }, number=0)  # fmt: skip

    def text(self, number: int, at: int) -> Answer:
        """A text of a kernel: `rows`, each with its line of loop IR and its function; by the line, `places` in the
        program, and what is `folded` into it; the lines that are `around` others.  The lines of the program itself are
        numbered from 1.
        """
        if not (0 <= number < len(self.kernels) and 0 <= at <= len(self.texts)):
            raise Refused(f"there is no text {at} of a kernel {number}")
        lines, kernel = self.kernels[number]
        answer = {"number": number, "text": at, **(_made(kernel, self.texts[at - 1]) if at else _program(lines))}
        self.keep(**{str(at): answer})
        return answer


_FIRST: Final = ("loop IR", "LLVM", "assembly")
"""The texts that show at first, beside the program."""
Row = tuple[str, str, Lines, KernelExplanation]
"""A kernel's name, the facts about it, and the lines of the program that it is for."""


def _of_plans(reply: KernelsReply) -> Iterator[Row]:
    for plan in reply.plans:
        for group in plan.groups:
            for kernel in group.kernels:
                if kernel.explanation is not None:
                    facts = f"{kernel.cost}; for {'; '.join(kernel.conditions)}"
                    yield f"{plan.function}{plan.arguments} {group.name}", facts, group.lines, kernel.explanation


def _of_gpu(reply: GpuKernelsReply) -> Iterator[Row]:
    for kernel in reply.kernels:
        if kernel.explanation is not None:
            moved = f"moves {byte_size(kernel.bytes)}" if kernel.bytes is not None else ""
            facts = filter(None, (f"on {reply.target}", moved, *map(_launch, kernel.launches), kernel.why))
            yield kernel.name, "; ".join(facts), kernel.lines, kernel.explanation


def _launch(row: LaunchRow) -> str:
    known = f", {counted(row.registers, 'register')}" if row.registers is not None else ""
    return f"{row.name}: {counted(row.blocks, 'block')} of {counted(row.threads, 'thread')}{known}"


def _program(lines: Lines) -> Answer:
    rows = [[spans(text, "python")[0], at, ""] for at, (_, text) in enumerate(lines, 1)]
    return _NOTHING | {"rows": rows, "places": {at: [place] for at, (place, _) in enumerate(lines, 1)}}


def _made(kernel: KernelExplanation, text: _Text) -> Answer:
    """The text; where there can be none, the reason in its place."""
    try:
        listing = text.made(kernel)
        lines = kernel.lines(None if text.of == _HOST else kernel.on_gpu(text.of))
    except Exception as error:
        return _NOTHING | {"rows": [[[[str(error).split("\n")[0], "muted"]], 0, ""]]}
    shown = listing.text.rstrip().split("\n")[:_MOST_LINES]
    rows = zip(spans("\n".join(shown), text.language), listing.lines, _functions(shown, text.function), strict=False)
    program = (
        (line, sorted(found, key=lambda each: (each.file, each.number))) for line, found in lines.program.items()
    )
    return {
        "rows": [[*each] for each in rows],
        "places": {line: [*map(full_place, found)] for line, found in program},
        "folded": lines.folded(listing.lines),
        "around": sorted(lines.around),
    }


_NOTHING: Final[Answer] = {"places": {}, "folded": {}, "around": []}
"""The links of a text that has none."""


def _functions(lines: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """For each line the function that it is of."""
    names, name = list[str](), ""
    for line in lines:
        match = pattern.search(line)
        found = next(filter(None, match.groups()), "") if match else ""
        name = found if found and not found.startswith(".L") else name
        names.append(name)
    return names
