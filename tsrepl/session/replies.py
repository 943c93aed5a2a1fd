"""The replies of a session, as data.

In: nothing.  Out: the `Reply` records that every door (shell, notebook, command line) shows in its own way.
Texts in them are plain: no colours, no markup, no width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.lang.counts import duration
from engine.lang.records import dataclass
from tsrepl.session.plan_replies import AutodiffReply, CostReply, ExplainReply, GuardsReply, ProfileReply

if TYPE_CHECKING:
    from engine.executor.plans.explanation import KernelExplanation
    from engine.ir.graph import Graph, Node


@dataclass(frozen=True, slots=True)
class ValueReply:
    """The value of an entry's last expression, which the session keeps as `name`.

    `type` is its static type, `text` how it prints (as it was then: programs may write to it later), `facts` what
    stands beside a tensor: dtype and shape.
    """

    value: Any
    type: str
    text: str
    facts: str = ""
    name: str = "_"


@dataclass(frozen=True, slots=True)
class DefinitionReply:
    """A function or class is known now.

    `replaced` tells that the name was taken before, `relinked` names the functions that were compiled again to
    call the new one, `broken` those that no longer fit it, with the reason.
    """

    name: str
    kind: str
    signature: str
    replaced: bool = False
    relinked: tuple[str, ...] = ()
    broken: tuple[tuple[str, str], ...] = ()


class Later:
    """A text that is made when it is first looked at; it has about `length` lines, and is that of `graph`, if it was
    kept."""

    __slots__ = ("_make", "_text", "graph", "length")

    def __init__(self, make: Callable[[], str], length: int = 0, graph: Graph | None = None) -> None:
        self._make, self._text, self.length, self.graph = make, "", length, graph

    @property
    def text(self) -> str:
        self._text = self._text or self._make()
        return self._text


@dataclass(frozen=True, slots=True)
class Counts:
    """Things of one sort in a graph, as `title` calls them, and how many of each, the most frequent first."""

    title: str
    rows: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class GraphReply:
    """A graph's canonical text, the place of each of its lines, if they are wanted; `summary` counts what is in a long
    one.  The graph itself is for those who draw it: nobody may change it."""

    title: str
    text: str
    places: tuple[str, ...] = ()
    summary: tuple[Counts, ...] = ()
    graph: Graph | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PassesReply:
    """A graph of so many nodes before it goes through passes, each of which is a `PassReply` when it has run."""

    title: str
    nodes: int
    start: Later


@dataclass(frozen=True, slots=True)
class PassReply:
    """A pass that changed a graph, or several in a row that did not.

    `changes` are (kind of node, how many more of it there are now), `altered` counts the nodes that stayed and have
    other inputs, attributes or types.  `title` is the name of the one that changed it, with its options.
    """

    names: tuple[str, ...]
    changed: bool
    seconds: float
    changes: tuple[tuple[str, int], ...]
    altered: int
    before: Later
    after: Later
    title: str = ""


@dataclass(frozen=True, slots=True)
class PipelineReply:
    """A graph and all passes that it went through, for doors that show them together; `note` sums them up."""

    start: PassesReply
    passes: tuple[PassReply, ...]
    note: str


@dataclass(frozen=True, slots=True)
class CodeReply:
    """Python text that the printer made of a graph, and the constants that it names `CONSTANTS.cN`.

    `numbers` stand beside the lines, one each, "" for none.
    """

    title: str
    text: str
    constants: tuple[tuple[str, str], ...] = ()
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EditReply:
    """A text to be edited and run; a door with an editor opens it, others show the text."""

    text: str


@dataclass(frozen=True, slots=True)
class SystemReply:
    """A line for the system's shell; a door with a terminal runs it there, others say that they do not."""

    command: str


@dataclass(frozen=True, slots=True)
class LeaveReply:
    """The reader leaves: a door that is a dialogue ends, and what follows is not run."""


@dataclass(frozen=True, slots=True)
class TreeReply:
    """A syntax tree as an s-expression."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class InstructionsReply:
    """The instructions that the interpreter runs, one a line."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class InstructionRow:
    """An instruction: `variables` are those of the author that it computes, `place` is its line."""

    pc: int
    text: str
    variables: str = ""
    place: str = ""
    is_here: bool = False


@dataclass(frozen=True, slots=True)
class ListingReply:
    """Instructions of a function, one a row."""

    title: str
    rows: tuple[InstructionRow, ...]


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel: what its arguments have to be like, seconds to compile it and for a call (None where it runs on its own
    program's numbers alone), bytes and operations of that call (None where its sizes do not tell them), its text in the
    form that was asked for, and what was measured of calls beside those without it; `explanation` has the other forms.
    """

    name: str
    conditions: tuple[str, ...]
    compiled: float
    seconds: float | None
    bytes: int | None
    operations: int | None
    text: str
    measured: str = ""
    explanation: KernelExplanation | None = field(default=None, compare=False, repr=False)

    @property
    def cost(self) -> str:
        """The time of a call, its rates, and the time that the kernel took to compile."""
        amounts = ((self.bytes, "GB/s"), (self.operations, "Gop/s"))
        call = "" if self.seconds is None else f"{duration(self.seconds)} a call"
        rates = [f"{amount / self.seconds / 1e9:.3g} {unit}" for amount, unit in amounts if amount and self.seconds]
        return ", ".join(filter(None, (call, *rates, self.measured, f"compiled in {duration(self.compiled)}")))


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Lines of a program that run together, as (place, text), and the kernels for them."""

    name: str
    lines: tuple[tuple[str, str], ...]
    kernels: tuple[KernelRow, ...]


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A plan of a function: its groups, `why` there are none, and (place, operator, reason) of what is outside."""

    function: str
    arguments: str
    why: str
    groups: tuple[GroupRow, ...]
    unfused: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class KernelsReply:
    """The kernels of functions; `language` is that of their texts."""

    title: str
    language: str
    plans: tuple[PlanRow, ...]


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """A grid of threads: blocks, threads of each, how many of these share a row, bytes of shared memory, and, where the
    assembler is installed, registers and spilled bytes of a thread and the part of the device's threads that fit."""

    name: str
    blocks: int
    threads: int
    team: int
    shared: int
    registers: int | None
    spilled: int | None
    occupancy: float | None


@dataclass(frozen=True, slots=True)
class GpuKernelRow:
    """A kernel as on a GPU: the bytes that a call moves, its launches, `why` something is missing, and its text; the
    `lines` of the program that it is for, as (place, text), and its `explanation`, which has the other forms."""

    name: str
    bytes: int | None
    launches: tuple[LaunchRow, ...]
    why: str
    text: str
    lines: tuple[tuple[str, str], ...] = ()
    explanation: KernelExplanation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GpuKernelsReply:
    """The kernels of functions as they would run on a GPU of this architecture."""

    title: str
    target: str
    language: str
    kernels: tuple[GpuKernelRow, ...]


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One executed instruction: `reads` and `writes` are (register or variable, value) in order; `module` is the path
    of the module that the function works for, `kernel` the kernel that stands for the instruction when nobody looks."""

    depth: int
    function: str
    pc: int
    instruction: str
    reads: tuple[tuple[str, str], ...]
    writes: tuple[tuple[str, str], ...]
    place: str = ""
    module: str = ""
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """The values that one executed instruction read, then those it wrote, each with the number of writes to it so far;
    the node that it is of, and the graph of that.  The values are a list so that who shows many traces can let go of
    them wherever the reply is kept."""

    graph: Graph
    node: Node | None
    values: list[tuple[Any, int]]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class TraceReply:
    """The interpreter's trace, instruction by instruction; `left_out` were not kept, behind the first `head` rows.

    `note` says what the rows were chosen by, `tiers` what runs of each function when nobody looks; `moments` has the
    values themselves, row by row.
    """

    title: str
    rows: tuple[TraceRow, ...]
    result: str
    left_out: int = 0
    head: int = 0
    note: str = ""
    tiers: tuple[tuple[str, str], ...] = ()
    moments: tuple[Moment, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A line of source: the one where a run stands, one with a breakpoint."""

    number: int
    text: str
    is_here: bool = False
    is_stop: bool = False


@dataclass(frozen=True, slots=True)
class DebugReply:
    """The place where a debugged call stands.

    `title` names the place, `reason` says why it stands there, `variables` have changed since the last stop,
    `position` counts the instructions executed so far; `thread` is 0 where there is one only.  `error` is what stopped
    the program there.  `dialogue` is the debugger's, for those who go on from here.
    """

    title: str
    reason: str = ""
    source: tuple[SourceRow, ...] = ()
    node: str = ""
    instruction: str = ""
    position: int = 0
    thread: int = 0
    variables: tuple[Binding, ...] = ()
    result: str = ""
    error: ErrorReply | TextReply | None = None
    dialogue: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SchemaReply:
    """One or more schemas; `total` counts those there are when not all are shown."""

    title: str
    schemas: tuple[str, ...]
    total: int = 0


@dataclass(frozen=True, slots=True)
class Binding:
    """A name of the session; `kind` is "variable", "function", "class" or "module"."""

    name: str
    kind: str
    type: str
    summary: str


@dataclass(frozen=True, slots=True)
class WhoReply:
    """Everything that the session knows by name."""

    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True)
class TimeReply:
    """The time an expression takes: seconds for one run, best and mean of `repeats` rounds of `loops` runs.

    `compiled` says what the first run, of `first` seconds, had to compile: the "calls" in it, or the "expression".
    """

    expression: str
    first: float
    best: float
    mean: float
    loops: int
    repeats: int
    compiled: str = ""


@dataclass(frozen=True, slots=True)
class TextReply:
    """A plain message; `level` is "info", "done" or "warning"."""

    text: str
    level: str = "info"


@dataclass(frozen=True, slots=True)
class CallPlace:
    """One level of an error's call stack."""

    location: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An error.

    `kind` is a short title, `details` whatever else the message says, `location` and `excerpt` tell the place (the
    excerpt marks it with `~~~ <--- HERE`), `places` the calls that led there, outermost first, `hints` what mends it,
    the most useful first.  Long details are shown where `is_whole`; `more` is the command that shows them elsewhere.
    """

    kind: str
    message: str
    location: str = ""
    excerpt: str = ""
    places: tuple[CallPlace, ...] = ()
    hints: tuple[str, ...] = ()
    details: str = ""
    is_whole: bool = False
    more: str = "%more"


@dataclass(frozen=True, slots=True)
class SlotRow:
    """One attribute of a module; `shape`, `dtype` and `bytes` are of tensors only."""

    name: str
    kind: str
    type: str
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    bytes: int = 0
    count: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class ModuleNode:
    """A module and those inside it; `parameters` and `bytes` are totals with everything inside.

    One that was shown before has nothing but `same_as`, the path where that was.
    """

    name: str
    type: str
    slots: tuple[SlotRow, ...]
    methods: tuple[str, ...]
    children: tuple[ModuleNode, ...]
    parameters: int
    bytes: int
    same_as: str | None = None


@dataclass(frozen=True, slots=True)
class ModuleReply:
    """A module, as a tree; `depth` is how deep it is shown, None for as deep as a page has room for; `command` shows it
    to another depth, or `more` all of it."""

    title: str
    root: ModuleNode
    depth: int | None = None
    command: str = "%modules"
    more: str = ""


@dataclass(frozen=True, slots=True)
class TapRow:
    """The output at a place: `value` the last time, of `count` times."""

    place: str
    count: int
    value: str


@dataclass(frozen=True, slots=True)
class TapReply:
    """The outputs of the parts of a module during a call, in order of their first time, and the call's `result`.

    `result` is "" where the rows have it; `name` is what the session keeps the values as, "" if it does not; for the
    patterns in `unreached` nothing came.
    """

    title: str
    rows: tuple[TapRow, ...]
    result: str
    name: str = ""
    unreached: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileReply:
    """The identity of a file: `what` in words, facts (label, text), advice."""

    path: str
    what: str
    facts: tuple[tuple[str, str], ...] = ()
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report: a heading, then a table, or two texts to show the changes between.

    `level` is "", "good", "warning", "error" or "muted"; columns whose title starts with ">" stand to the right; `note`
    stands below the table.
    """

    heading: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    level: str = ""
    note: str = ""
    change: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ReportReply:
    """A report about one or two files; `status` is the exit status of the command."""

    title: str
    sections: tuple[Section, ...]
    status: int = 0


@dataclass(frozen=True, slots=True)
class DataReply:
    """A reply for other programs: a value that JSON can hold."""

    data: Any
    status: int = 0


@dataclass(frozen=True, slots=True)
class HelpTopic:
    """One row of an overview: what to type and what it does; `group` heads those in a row that share it."""

    usage: str
    summary: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class HelpReply:
    """Help: paragraphs, what to begin with, rows, then examples to type."""

    title: str
    paragraphs: tuple[str, ...] = ()
    topics: tuple[HelpTopic, ...] = ()
    examples: tuple[str, ...] = ()
    start: tuple[HelpTopic, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that could stand at the cursor: put `text` in place of the `replaces` characters before it."""

    text: str
    kind: str
    replaces: int = 0
    label: str = ""

    @property
    def shown(self) -> str:
        return self.label or self.text


class SignatureHint(NamedTuple):
    """A schema, of which `start:end` is the argument at the cursor; `others` counts further overloads."""

    text: str
    start: int
    end: int
    others: int = 0


Reply = (
    ValueReply
    | DefinitionReply
    | GraphReply
    | PassesReply
    | PassReply
    | PipelineReply
    | CodeReply
    | EditReply
    | SystemReply
    | LeaveReply
    | TreeReply
    | InstructionsReply
    | ListingReply
    | KernelsReply
    | GpuKernelsReply
    | CostReply
    | ProfileReply
    | GuardsReply
    | AutodiffReply
    | ExplainReply
    | TraceReply
    | DebugReply
    | SchemaReply
    | WhoReply
    | TimeReply
    | TextReply
    | ErrorReply
    | ModuleReply
    | TapReply
    | FileReply
    | ReportReply
    | DataReply
    | HelpReply
)
