"""The kernel view: a group's lines, loop IR, LLVM and machine code side by side, linked line by line.

In: a `KernelsReply`.  Out: its widget.  A text is made when it is looked at.  Its lines are those of a loop IR's text,
as LLVM's debug locations say, and these are from lines of the program.  There are two loop IRs, the host's and the
GPU's: what is made of one and of the other meets at the lines of the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import traitlets

from engine.executor.plans.explanation import KernelExplanation
from engine.fuser.backend.llvm_lines import Listing
from engine.fuser.ir.kernel_text import show
from engine.lang.records import dataclass
from tsrepl.session.places import full_place
from tsrepl.session.replies import GroupRow, KernelsReply
from tsrepl.widgets.messages import Kernel, Refused
from tsrepl.widgets.view import Answer, Handler, View, front_end, spans

_MOST_LINES: Final = 4000
_TARGET: Final = "sm_90"
_PROGRAM: Final = "TorchScript"

Made = Callable[[KernelExplanation], Listing]


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
_TEXTS: Final = (
    _Text("loop IR", _HOST, "python", lambda kernel: _own_lines(kernel.text), _DEF),
    _Text("LLVM", _HOST, "llvm", lambda kernel: kernel.listings.before, _DEFINE),
    _Text("LLVM, optimized", _HOST, "llvm", lambda kernel: kernel.listings.after, _DEFINE),
    _Text("assembly", _HOST, "asm", lambda kernel: kernel.listings.assembly, _LABEL),
    _Text(f"loop IR for {_TARGET}", _TARGET, "python",
          lambda kernel: _own_lines(show(kernel.on_gpu(_TARGET).kernel)), _DEF),
    _Text(f"PTX for {_TARGET}", _TARGET, "asm", lambda kernel: kernel.on_gpu(_TARGET).listing(), _LABEL),
)  # fmt: skip


class KernelView(View):
    """The kernels of plans; the texts of one kernel show at a time."""

    _esm = traitlets.Unicode(front_end("kernels")).tag(sync=True)

    HANDLERS: ClassVar[dict[type[Any], Handler]] = {
        Kernel: lambda view, message: view.text(message.number, message.text)
    }

    def __init__(self, reply: KernelsReply) -> None:
        found = [(p, g, k) for p in reply.plans for g in p.groups for k in g.kernels if k.explanation is not None]
        self.kernels = [(group, kernel.explanation) for _, group, kernel in found]
        rows = [
            {
                "name": f"{plan.function}{plan.arguments} {group.name}",
                "facts": f"{kernel.cost}; for {'; '.join(kernel.conditions)}",
            }
            for plan, group, kernel in found
        ]
        unfused = [[*each] for plan in reply.plans for each in plan.unfused]
        why = [f"{plan.function}{plan.arguments}: {plan.why}" for plan in reply.plans if plan.why]
        texts = [[_PROGRAM, ""], *([each.title, each.of] for each in _TEXTS)]
        super().__init__(
            {"title": reply.title, "kernels": rows, "texts": texts, "unfused": unfused, "why": why}, number=0
        )

    def text(self, number: int, at: int) -> Answer:
        """A text of a kernel: `rows`, each with its line of loop IR and its function; by the line, `places` in the
        program, and what is `folded` into it; the lines that are `around` others.  The lines of the program itself are
        numbered from 1.
        """
        if not (0 <= number < len(self.kernels) and 0 <= at <= len(_TEXTS)):
            raise Refused(f"there is no text {at} of a kernel {number}")
        group, kernel = self.kernels[number]
        assert kernel is not None
        answer = {"number": number, "text": at, **(_made(kernel, _TEXTS[at - 1]) if at else _program(group))}
        self.keep(**{str(at): answer})
        return answer


def _program(group: GroupRow) -> Answer:
    rows = [[spans(text, "python")[0], at, ""] for at, (_, text) in enumerate(group.lines, 1)]
    return _NOTHING | {"rows": rows, "places": {at: [place] for at, (place, _) in enumerate(group.lines, 1)}}


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
