"""Golden cases: plain text files in which each stage of a program stands beneath its name.

    [case adds_once]
    [graph]
    graph(%x : int):
      ...
    [after dce, cse]
    graph(%x : int):
      ...
    [unchanged after inline]
    [run (1)]
    2

In: the text of a `.case` file.  Out: cases, each a list of sections.  The first section of a case is its program,
`[source]` (TorchScript; the function `f`, or the last one, is meant) or `[graph]` (IR); every further section says
what a stage makes of it.  `STAGES` maps names of stages to functions, and grows with the rooms of the engine.
A line that begins with `#` before the first case is a comment.

Note [Cases are run]
    A program with passes is also run, before and after those of each section, on calls that are made from the types of
    its inputs (`case_inputs`), some with arguments that share memory: what it returns, prints and raises, what becomes
    of its arguments and who shares memory with whom has to stay, and tensors have to be as the types of their values
    say (`case_meaning`).  At least one call of each kind has to give a result.  Notes, which stand behind the program
    and have no text, help with that:

        [inputs x=float32[2, 3], n={1, 2}, l=[1, 1]]    a tensor so big; one of these; this value
        [raises]                                        every call raises an error, which is compared
        [not compared: why]                             it can not be run, or is meant to do something else

    A note fails where the case would do without it.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import ndiff
from importlib import import_module
from itertools import groupby
from typing import Any, Final

from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.verify import verify
from engine.lang.errors import EngineError
from engine.passes.pipeline import PassEvent, run_pipeline, verifier
from tests.case_inputs import hints_in
from tests.case_meaning import Notes, differences
from tests.fuzz.meaning import run_as_compiled

_HEADER = re.compile(r"^\[(.+)\]$")
_NOTES: Final = ("inputs ", "raises", "not compared: ")
"""How notes begin (Note [Cases are run])."""
_AROUND: Final = 3
"""Lines around a difference that are shown."""
_OPTIMIZED = ("inline", "peephole", "constant_propagation", "cse", "dce", "constant_pooling")


@dataclass
class Section:
    """`name` is what stands in the brackets, `line` where (from 1)."""

    name: str
    line: int
    body: str = ""

    @property
    def is_note(self) -> bool:
        return self.name.startswith(_NOTES)

    @property
    def takes_no_text(self) -> bool:
        return self.is_note or self.name.startswith("unchanged")

    @property
    def passes(self) -> list[str]:
        """The passes after which the section shows the program."""
        return self.name.partition("after ")[2].split(", ") if self.name.startswith(("after ", "unchanged ")) else []


@dataclass
class Case:
    """A program and what is expected of it."""

    name: str
    line: int
    sections: list[Section] = field(default_factory=list)

    @property
    def program(self) -> Section:
        return self.sections[0]

    def check(self) -> list[str]:
        """What is wrong, one text for each section, and what the program does otherwise after its passes; empty when
        all is well."""
        stages = [section for section in self.sections if not section.is_note]
        return [problem for section in stages if (problem := self._problem(section))] + self.differences()

    @property
    def orders(self) -> list[list[str]]:
        """The passes of each section that has some."""
        return [section.passes for section in self.sections if section.passes]

    @property
    def notes(self) -> Notes:
        hints, raises, reason = ([s.name for s in self.sections if s.name.startswith(word)] for word in _NOTES)
        return Notes(hints_in("".join(hints).removeprefix(_NOTES[0])), bool(raises), "".join(reason))

    def differences(self) -> list[str]:
        """What the program does otherwise after passes (Note [Cases are run])."""
        program = Program(self.program)
        return differences(self.name, program.runnable(), self.orders, self.notes) if self.orders else []

    def update(self) -> None:
        """Let each section say what its stage makes now."""
        for section in self.sections:
            if not section.takes_no_text:
                section.body = self.result(section)

    def result(self, section: Section) -> str:
        """What the section's stage makes of the program; a refusal is its message behind `!!`."""
        try:
            return _stage(section.name)(Program(self.program)).rstrip("\n")
        except EngineError as error:
            return "\n".join(f"!! {line}".rstrip() for line in str(error).splitlines())

    def _problem(self, section: Section) -> str:
        where = f"line {section.line}, [{section.name}]"
        if not section.body.strip() and not section.takes_no_text:
            return f"{where}: nothing is expected; run with --update-cases and look at what it writes"
        found = self.result(section)
        wanted = Program(self.program).graph_text() if section.takes_no_text else section.body
        return "" if found.strip() == wanted.strip() else f"{where}:\n{aligned(wanted, found)}"


class Program:
    """The program of a case, compiled when a stage asks for it."""

    def __init__(self, section: Section) -> None:
        self.section = section

    @property
    def source(self) -> str:
        assert self.section.name == "source", "this stage needs a case that begins with [source]"
        return self.section.body + "\n"

    def function(self) -> Any:
        """The compiled function `f`, or the last of the source."""
        return self._main(self._unit())

    def _unit(self) -> Any:
        return import_module("engine.frontend.compilation.compile").compile_source(self.source)

    def _main(self, unit: Any) -> Any:
        return unit.functions.get("f") or list(unit.functions.values())[-1]

    def runnable(self) -> Graph:
        """The graph, with calls of functions that run as they were compiled."""
        if self.section.name != "source":
            return self.graph()
        unit = self._unit()
        run_as_compiled(unit)
        graph: Graph = self._main(unit).graph
        return graph

    def graph(self) -> Graph:
        """A graph of its own, that may be changed."""
        if self.section.name == "source":
            return copy_graph(self.function().graph)
        return parse_ir(self.section.body)

    def graph_text(self) -> str:
        graph = self.graph()
        verify(graph)
        return str(graph)


def well_made(event: PassEvent) -> None:
    """A listener: after each pass the graph is well made, and reads back as it is printed."""
    verifier(event)
    if "<Tensors>" in event.after_text:
        return  # What is in such a list no text tells.
    again = str(parse_ir(event.after_text))
    assert again == event.after_text, f"what {event.name} left\n{event.after_text}reads as\n{again}"


Stage = Callable[[Program, str], str]
"""From a program and the rest of the section's name to text."""


def _source(program: Program, rest: str) -> str:
    return program.source


def _graph(program: Program, rest: str) -> str:
    return program.graph_text()


def _after(program: Program, rest: str) -> str:
    graph = program.graph()
    run_pipeline(rest.split(", "), graph, well_made)
    return str(graph)


def _unchanged(program: Program, rest: str) -> str:
    graph = program.graph()
    changed = run_pipeline(rest.removeprefix("after ").split(", "), graph, well_made)
    return f"{graph}(but the pass says that it changed something)" if changed else str(graph)


def _instructions(program: Program, rest: str) -> str:
    code = import_module("engine.executor.bytecode.code").Code
    return str(code(program.graph(), "f"))


def _code(program: Program, rest: str) -> str:
    text: str = import_module("engine.serialize.code.source_export").function_code(program.function())
    return text


def _run(program: Program, rest: str) -> str:
    """`[run f(1, 2)]`: one answer from the graph as compiled, after optimization, and (where it can) from CPython."""
    arguments = rest[rest.index("(") :]
    function = program.function()
    answer = _called(function, arguments)
    run_pipeline(_OPTIMIZED, function.graph, well_made)
    function.executor = None
    optimized = _called(function, arguments)
    assert optimized == answer, f"{answer} became {optimized} by {', '.join(_OPTIMIZED)}"
    python = _answer_of_python(program, function.name, arguments)
    assert python is None or python == answer, f"CPython says {python}, the interpreter {answer}"
    return answer


def _called(function: Any, arguments: str) -> str:
    call = import_module("engine.executor.calls.call").call_function
    return _printed(lambda *args, **kwargs: call(function, args, kwargs), arguments)


def _answer_of_python(program: Program, name: str, arguments: str) -> str | None:
    """None where the source is TorchScript only."""
    typing = import_module("typing")
    namespace: dict[str, Any] = {n: getattr(typing, n) for n in ("List", "Dict", "Tuple", "Optional", "Union", "Any")}
    if "Tensor" in program.source or "torch" in program.source:
        return None
    try:
        exec(program.source, namespace)
    except SyntaxError:
        return None
    return _printed(namespace[name], arguments)


def _printed(function: Callable[..., Any], arguments: str) -> str:
    """What it prints, then what it returns."""
    output = io.StringIO()
    tensors = import_module("engine.aten.values.tensor")
    with contextlib.redirect_stdout(output):
        result = eval(f"f{arguments}", {"f": function, "tensor": tensors.tensor, "inf": float("inf")})
    return output.getvalue() + repr(result)


def aligned(wanted: str, found: str) -> str:
    """The lines of both texts, `-` before what is expected and `+` before what is found, with marks beneath the
    characters that differ; far from differences lines are left out."""
    lines = [line.rstrip() for line in ndiff(wanted.strip().splitlines(), found.strip().splitlines())]
    differs = [number for number, line in enumerate(lines) if not line.startswith("  ")]
    shown = {near for number in differs for near in range(number - _AROUND, number + _AROUND + 1)}
    groups = groupby(range(len(lines)), shown.__contains__)
    parts = ["\n".join(lines[number] for number in part) if is_shown else "  ..." for is_shown, part in groups]
    return "\n".join(["- expected, + found", *parts])


STAGES: dict[str, Stage] = {
    "source": _source, "graph": _graph, "after": _after, "unchanged": _unchanged, "instructions": _instructions,
    "code": _code, "run": _run,
}  # fmt: skip


def _stage(name: str) -> Callable[[Program], str]:
    word, _, rest = name.partition(" ")
    stage = STAGES.get(word)
    assert stage is not None, f"there is no stage [{word}]; there are {', '.join(sorted(STAGES))}"
    return lambda program: stage(program, rest)


def parse_cases(text: str) -> tuple[str, list[Case]]:
    """What stands before the first case, and the cases."""
    head: list[str] = []
    cases: list[Case] = []
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header and header[1].startswith("case "):
            cases.append(Case(header[1].removeprefix("case ").strip(), number))
        elif not cases:
            head.append(line)
        elif header:
            cases[-1].sections.append(Section(header[1], number))
        else:
            assert cases[-1].sections or not line.strip(), f"line {number} stands in no section"
            if cases[-1].sections:
                cases[-1].sections[-1].body += line + "\n"
    for section in (section for case in cases for section in case.sections):
        section.body = section.body.strip("\n")
    return "\n".join(head).rstrip("\n"), cases


def written(head: str, cases: list[Case]) -> str:
    """The text of the file."""
    return "\n".join(_lines(head, cases)) + "\n"


def _lines(head: str, cases: list[Case]) -> Iterator[str]:
    if head:
        yield head
        yield ""
    for index, case in enumerate(cases):
        if index:
            yield ""
        yield f"[case {case.name}]"
        for section in case.sections:
            yield f"[{section.name}]"
            if section.body:
                yield section.body
