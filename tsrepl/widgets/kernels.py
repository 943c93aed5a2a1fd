"""The kernel view: a group's lines, loop IR, LLVM and machine code side by side, linked by what they compute.

In: a `KernelsReply`.  Out: its widget.  A text is made when it is looked at.  Lines of the program and of loop IR
are linked by the values that they name, functions of loop IR with those of LLVM and assembly by theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, Final

import traitlets

from engine.executor.plans.explanation import KernelExplanation
from tsrepl.session.places import full_place
from tsrepl.session.replies import GroupRow, KernelsReply
from tsrepl.widgets.messages import Kernel, Refused
from tsrepl.widgets.view import Answer, Handler, View, front_end, spans

_MOST_LINES: Final = 4000
_TARGET: Final = "sm_90"
_PROGRAM: Final = "TorchScript"
_FUNCTIONS: Final[dict[str, re.Pattern[str]]] = {
    "loops": re.compile(r"def (\w+)\("),
    "llvm": re.compile(r'define .*@"?([\w.]+)"?\('),
    "asm": re.compile(r'^"?([A-Za-z_][\w.]*)"?:|\.entry (\w+)|\.func.* (\w+)\('),
}
_NAME: Final = re.compile(r"\s*(\w+)(?:: [^=]*)? = |\s*out")

Made = Callable[[KernelExplanation], str]
_TEXTS: Final[tuple[tuple[str, str, str, Made], ...]] = (
    ("loop IR", "loops", "python", lambda kernel: kernel.text),
    ("LLVM", "llvm", "llvm", lambda kernel: kernel.code().llvm_before),
    ("LLVM, optimized", "llvm", "llvm", lambda kernel: kernel.code().llvm_after),
    ("assembly", "asm", "asm", lambda kernel: kernel.code().assembly),
    (f"PTX for {_TARGET}", "asm", "asm", lambda kernel: kernel.on_gpu(_TARGET).ptx),
)


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
            {"name": f"{plan.function}{plan.arguments} {group.name}", "facts": "; ".join(kernel.conditions)}
            for plan, group, kernel in found
        ]
        unfused = [[*each] for plan in reply.plans for each in plan.unfused]
        why = [f"{plan.function}{plan.arguments}: {plan.why}" for plan in reply.plans if plan.why]
        texts = [_PROGRAM, *(title for title, *_ in _TEXTS)]
        super().__init__(
            {"title": reply.title, "kernels": rows, "texts": texts, "unfused": unfused, "why": why}, number=0
        )

    def text(self, number: int, at: int) -> Answer:
        """A text of a kernel, as lines with the keys that link them to those of other texts."""
        if not (0 <= number < len(self.kernels) and 0 <= at <= len(_TEXTS)):
            raise Refused(f"there is no text {at} of a kernel {number}")
        group, kernel = self.kernels[number]
        assert kernel is not None
        rows = _rows(kernel, *_TEXTS[at - 1][1:]) if at else _program(group)
        answer = {"number": number, "text": at, "rows": rows}
        self.keep(**{str(at): answer})
        return answer


def _program(group: GroupRow) -> list[list[Any]]:
    return [[spans(text, "python")[0], place, place] for place, text in group.lines]


def _rows(kernel: KernelExplanation, form: str, language: str, made: Made) -> list[list[Any]]:
    """The lines; where there can be none, the reason in their place."""
    try:
        text = made(kernel)
    except Exception as error:
        return [[[[str(error).split("\n")[0], "muted"]], "", ""]]
    lines = text.rstrip().split("\n")
    keys = _places(kernel, lines) if form == "loops" else [""] * len(lines)
    functions = _functions(lines, _FUNCTIONS[form])
    pieces = spans("\n".join(lines[:_MOST_LINES]), language)
    return [[*each] for each in zip(pieces, keys, functions, strict=False)]


def _places(kernel: KernelExplanation, lines: list[str]) -> list[str]:
    """For each line of loop IR the place in the program of the value that it computes."""
    known = kernel.lines
    named = (match.group(1) if (match := _NAME.match(line)) else None for line in lines)
    found = (known.get(name or "") or known.get((name or "").rstrip("_")) for name in named)
    return [full_place(line) for line in found]


def _functions(lines: list[str], pattern: re.Pattern[str]) -> list[str]:
    """For each line the function that it is of."""
    names, name = list[str](), ""
    for line in lines:
        match = pattern.search(line)
        found = next(filter(None, match.groups()), "") if match else ""
        name = found if found and not found.startswith(".L") else name
        names.append(name)
    return names
