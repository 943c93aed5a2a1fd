"""The debugger's dialogue: `%debug f(x)`, and the commands that stand in front of its prompt.

In: command lines, pdb's where it has one; any other text is TorchScript, evaluated in the selected call.  Out: replies:
where the run stands, with its source, graph node and instruction; values; lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Final, NamedTuple

from engine.executor.bytecode.instructions import CALL
from engine.executor.debugging import stops
from engine.executor.debugging.debugger import Debugger, FrameView, Stop
from engine.executor.debugging.evaluating import Watch
from engine.frontend.compilation.entries import ENTRY
from engine.ir.graph import Node, Value
from engine.lang.errors import CompileError, did_you_mean
from engine.lang.records import dataclass
from tsrepl.session.failures import UsageError, error_replies
from tsrepl.session.instruction_rows import instruction_rows, instruction_text
from tsrepl.session.modules import without_scopes
from tsrepl.session.places import CELLS
from tsrepl.session.replies import (
    Binding,
    DebugReply,
    ErrorReply,
    HelpReply,
    HelpTopic,
    ListingReply,
    Reply,
    ReportReply,
    Section,
    SourceRow,
    TextReply,
    WhoReply,
)
from tsrepl.session.values import described, summary
from tsrepl.session.workspace import Workspace

PROMPT: Final = "(debug) "
_AROUND: Final = 2
"""Lines of source shown before the present one, and behind it."""
_LISTED: Final = 11
Answer = Iterable[Reply]


class Command(NamedTuple):
    """A row of the debugger's vocabulary; the first name is the one that help shows."""

    names: tuple[str, ...]
    usage: str
    summary: str
    run: Callable[[DebugDialogue, str], Answer]
    repeats: bool = False
    """An empty line does it again."""


@dataclass(eq=False, slots=True)
class DebugDialogue:
    """One debugged call.  `before` has the variables of the last stop as text, `displayed` what each stop shows
    besides, `again` the line that an empty one repeats, `listed` the line at which `list` goes on, `listeners` those
    who want to know when a line has run or the call was left."""

    workspace: Workspace
    debugger: Debugger
    listeners: list[Callable[[], None]] = field(default_factory=list)
    before: dict[str, str] = field(default_factory=dict)
    displayed: list[str] = field(default_factory=list)
    again: str = ""
    listed: int = 0
    prompt: str = PROMPT

    def run(self, text: str) -> Iterator[Reply]:
        """Run one line.  Errors are replies."""
        try:
            yield from self._run(text.strip())
        except (GeneratorExit, SystemExit):
            raise
        except BaseException as error:
            yield from error_replies(error)
        self.tell()

    @property
    def is_over(self) -> bool:
        """True if the call is no longer debugged."""
        return self.workspace.dialogue is not self

    def leave(self) -> None:
        """End the dialogue; what the call has done so far stays done."""
        if not self.is_over:
            self.workspace.dialogue = None
            self.tell()

    def tell(self) -> None:
        """Let the listeners know that something may have changed."""
        for each in self.listeners:
            each()

    def variables(self) -> tuple[Binding, ...]:
        """All variables of the selected call."""
        view = self.debugger.frame
        return tuple(_binding(view, name) for name in view.variables)

    def _run(self, text: str) -> Answer:
        text = text or self.again
        self.again = ""
        if not text:
            return []
        name, _, argument = text.partition(" ")
        if text[0] == "!":
            return _print(self, text[1:])
        command = _BY_NAME.get(name)
        if command is None or _ASSIGNS.match(argument):
            return self._evaluated(text)
        self.again = text if command.repeats else ""
        return command.run(self, argument.strip())

    def _evaluated(self, text: str) -> Answer:
        """The value of TorchScript; a word that means nothing there may be a command mistyped."""
        try:
            yield from _print(self, text)
        except CompileError:
            if text.isidentifier() and text not in self.debugger.frame.variables:
                hints = did_you_mean(text, _BY_NAME) or ("help lists the commands",)
                raise UsageError(f"'{text}' is no command, and no variable of this call", hints=hints) from None
            raise

    # -- the stop

    def stopped(self, stop: Stop) -> Answer:
        """The reply for the place where the run stands now; the entry around the call is no place to begin at."""
        self.listed = 0
        if stop.kind == "start" and _calls_something(self.debugger):
            stop = self._to_callee()
        if self.debugger.finished:
            self.before = {}
            yield self.standing()
            yield TextReply("back goes back into it, restart begins anew, quit leaves")
            return
        error = _error(stop) if stop.kind == "error" else None
        yield replace(self.place(_REASONS[stop.kind](stop)), error=error)
        for text in self.displayed:
            yield from _displayed(self, text)

    def _to_callee(self) -> Stop:
        """To the first line of what the entry calls."""
        stop = self.debugger.step()
        while stop.kind == "step" and len(self.debugger.frames) == 1:
            stop = self.debugger.step()
        return Stop("start") if stop.kind == "step" else stop

    def place(self, reason: str = "") -> DebugReply:
        """The selected call, and variables that have changed."""
        view = self.debugger.frame
        variables = {name: summary(view.value(variable)) for name, variable in view.variables.items()}
        changed = {name: text for name, text in variables.items() if self.before.get(name) != text}
        self.before = variables
        return replace(self.standing(), reason=reason, variables=tuple(_binding(view, name) for name in changed))

    def standing(self) -> DebugReply:
        """The selected call: source around its line, the node, the instruction; of a run that is over, its result."""
        if self.debugger.finished:
            result = summary(self.debugger.recording.result, 200)
            return DebugReply("the call has returned", result=result, dialogue=self)
        view = self.debugger.frame
        range = view.place
        node = view.instruction.node
        return DebugReply(
            title=_where(view),
            source=() if range is None else self.source(view, range.line - _AROUND, range.line + _AROUND),
            node=_first_line(node) if node is not None else "",
            instruction=f"{view.pc}: {instruction_text(view.frame.code, view.instruction)}",
            position=self.debugger.recording.position,
            thread=self.debugger.recording.thread.number if len(self.debugger.recording.threads) > 1 else 0,
            dialogue=self,
        )

    def source(self, view: FrameView, first: int, last: int) -> tuple[SourceRow, ...]:
        """Lines of the file in which a call stands."""
        range = view.place
        if range is None:
            return ()
        source = range.source
        count = len(source.line_starts())
        rows = [n for n in _numbers(first, last) if 0 <= n - source.first_line < count]
        stopping = {at for each in self.debugger.breakpoints for at in self.lines_of(each)}
        return tuple(
            SourceRow(n, source.line_text(n - source.first_line), n == range.line, n in stopping) for n in rows
        )

    def lines_of(self, breakpoint: stops.Breakpoint) -> set[int]:
        """The lines of the selected call's function at which a breakpoint stops."""
        code = self.debugger.frame.frame.code
        wanted = breakpoint.pcs(code) if breakpoint.is_enabled and not breakpoint.after else ()
        return {range.line for at, range in stops.lines_of(code) if at in wanted}


def _error(stop: Stop) -> ErrorReply | TextReply:
    return TextReply(stop.text, "warning") if stop.error is None else error_replies(stop.error)[0]


def _calls_something(debugger: Debugger) -> bool:
    """True if the outermost call is an entry around calls."""
    code = debugger.recording.threads[0].state.code
    return code.name == ENTRY and any(each.opcode == CALL for each in code.instructions)


def _numbers(first: int, last: int) -> range:
    return range(first, last + 1)


_PLAN: Final = "--plan"
_ASSIGNS: Final = re.compile(r"[-+*/@%&|^]?=(?!=)")
_REASONS: Final[dict[str, Callable[[Stop], str]]] = {
    "start": lambda stop: "",
    "step": lambda stop: stop.text,
    "error": lambda stop: "the program fails here",
    "end": lambda stop: "",
    "interrupted": lambda stop: "interrupted",
    "breakpoint": lambda stop: _hit(stop),
    "watch": lambda stop: _hit(stop),
}


def _hit(stop: Stop) -> str:
    made = stop.breakpoint
    assert made is not None
    if isinstance(made.holds, Watch):
        return f"{made.number}: {made.text}   {summary(made.holds.before)} → {summary(made.holds.now)}"
    return f"breakpoint {made.number}: {made.text}"


def _where(view: FrameView) -> str:
    range = view.place
    file = "" if range is None else CELLS.of(range.filename) or range.filename.rpartition("/")[2].strip("<>")
    if view.function == ENTRY:
        return file or "the entry"
    module = f" of {view.module}" if view.module else ""
    place = f"{file}:{range.line} in " if range is not None else ""
    return f"{place}{view.function}{module}"


def _first_line(node: Node) -> str:
    """A node without those inside; one that ends a block has no results to name."""
    return without_scopes(str(node).strip().split("\n")[0]).removeprefix("= ")


def _binding(view: FrameView, name: str) -> Binding:
    variable = view.variables[name]
    return Binding(name, "variable", without_scopes(variable.type.annotation_str), described(view.value(variable)))


# ------------------------------------------------------------------ starting


def debug(workspace: Workspace, argument: str) -> Answer:
    """`%debug f(x)`; without an expression, the last entry that failed, again, up to its error.

    While a call is debugged, `%debug` with a command of the debugger, or with `!` and TorchScript, carries that to it,
    as notebooks need.
    """
    if workspace.dialogue is not None and (argument[:1] == "!" or argument.partition(" ")[0] in _BY_NAME):
        return workspace.dialogue.run(argument)
    plan, _, rest = argument.partition(" ")
    argument = rest.strip() if plan == _PLAN else argument
    if argument.partition(" ")[0] in _BY_NAME and not workspace.is_target(argument):
        raise UsageError("no call is debugged", hints=("write %debug f(x) first",))
    if argument:
        function, inputs = workspace.compile_expression(argument)
    elif workspace.failed is not None:
        function, inputs = workspace.failed
    else:
        raise UsageError("nothing has failed yet", hints=("write %debug f(x)",))

    if function.name == ENTRY:
        function.inlines = False  # the entry around the call has no plan
    debugger = Debugger(function, inputs, workspace.resolver, follows_plans=plan == _PLAN)
    dialogue = DebugDialogue(workspace, debugger)
    if isinstance(workspace.dialogue, DebugDialogue):
        workspace.dialogue.leave()
    workspace.dialogue = dialogue
    return dialogue.stopped(debugger.stop if argument else debugger.go())


# ------------------------------------------------------------------ going


def _go(move: Callable[[Debugger], Stop]) -> Callable[[DebugDialogue, str], Answer]:
    """A command that moves the run, as often as its argument says."""

    def run(dialogue: DebugDialogue, argument: str) -> Answer:
        times = _number(argument, 1)
        stop = move(dialogue.debugger)
        for _ in range(times - 1):
            if stop.kind != "step":
                break
            stop = move(dialogue.debugger)
        return dialogue.stopped(stop)

    return run


def _number(text: str, default: int) -> int:
    """The number that a command was given.  Raises UsageError for other text."""
    if not text:
        return default
    if not text.isdecimal():
        raise UsageError(f"'{text}' is no number")
    return int(text)


def _until(dialogue: DebugDialogue, argument: str) -> Answer:
    return dialogue.stopped(dialogue.debugger.until(_number(argument, 0) or None))


def _go_to(dialogue: DebugDialogue, argument: str) -> Answer:
    if not argument:
        raise UsageError("goto wants a position", hints=("each stop shows its own: instruction 17 is goto 17",))
    return dialogue.stopped(dialogue.debugger.go_to(_number(argument, 0)))


def _restart(dialogue: DebugDialogue, argument: str) -> Answer:
    dialogue.before = {}
    return dialogue.stopped(dialogue.debugger.restart())


def _quit(dialogue: DebugDialogue, argument: str) -> Answer:
    dialogue.leave()
    yield TextReply("left the debugger", "done")


# ------------------------------------------------------------------ looking


def _up(dialogue: DebugDialogue, argument: str) -> Answer:
    dialogue.debugger.select(_number(argument, 1))
    dialogue.before = {}
    yield dialogue.place()


def _down(dialogue: DebugDialogue, argument: str) -> Answer:
    dialogue.debugger.select(-_number(argument, 1))
    dialogue.before = {}
    yield dialogue.place()


def _calls(dialogue: DebugDialogue, argument: str) -> Answer:
    frames = dialogue.debugger.frames
    if not frames:
        raise UsageError("the run is over", hints=("'back' goes back into it, 'restart' begins anew",))
    selected = len(frames) - 1 - dialogue.debugger.selected
    rows = [("→" if at == selected else "", str(at), _where(view), _line_text(view)) for at, view in enumerate(frames)]
    yield _table("calls, outermost first", ("", ">", "place", "line"), rows)


def _line_text(view: FrameView) -> str:
    range = view.place
    return "" if range is None else range.source.line_text(range.line - range.source.first_line).strip()


def _list(dialogue: DebugDialogue, argument: str) -> Answer:
    view = dialogue.debugger.frame
    present = view.place.line if view.place is not None else 1
    first = _number(argument, 0) or dialogue.listed or max(1, present - _LISTED // 2)
    dialogue.listed = first + _LISTED
    yield DebugReply(_where(view), source=dialogue.source(view, first, first + _LISTED - 1))


def _locals(dialogue: DebugDialogue, argument: str) -> Answer:
    yield WhoReply(dialogue.variables())


def _arguments(dialogue: DebugDialogue, argument: str) -> Answer:
    view = dialogue.debugger.frame
    names = {value.variable_name for value in view.frame.code.graph.inputs}
    yield WhoReply(tuple(_binding(view, name) for name in view.variables if name in names))


def _registers(dialogue: DebugDialogue, argument: str) -> Answer:
    view = dialogue.debugger.frame
    code, registers = view.frame.code, view.frame.registers
    rows = [
        (str(at), *_described_value(value), summary(registers[at]))
        for at, value in enumerate(code.values) if registers[at] is not None
    ]  # fmt: skip
    yield _table("registers", (">", "value", "type", "holds"), rows)


def _described_value(value: Value | None) -> tuple[str, str]:
    return ("", "") if value is None else (f"%{value.debug_name}", without_scopes(str(value.type)))


def _instructions(dialogue: DebugDialogue, argument: str) -> Answer:
    view = dialogue.debugger.frame
    around = _number(argument, 6)
    rows = instruction_rows(view.frame.code)[max(0, view.pc - around) : view.pc + around + 1]
    yield ListingReply("instructions", tuple(replace(row, is_here=row.pc == view.pc) for row in rows))


def _print(dialogue: DebugDialogue, text: str) -> Answer:
    if not text:
        raise UsageError("an expression is wanted", hints=("p x.sum()",))
    value, type = dialogue.debugger.evaluate(text)
    if type is not None:
        yield dialogue.workspace.show(value, type)


def _type(dialogue: DebugDialogue, text: str) -> Answer:
    statements = dialogue.debugger.evaluator.compile(text, dialogue.debugger.frame.frame)
    yield TextReply(without_scopes(str(statements.type)) if statements.type is not None else "no value")


def _display(dialogue: DebugDialogue, text: str) -> Answer:
    if text and text not in dialogue.displayed:
        dialogue.displayed.append(text)
    for each in [text] if text else dialogue.displayed:
        yield from _displayed(dialogue, each)


def _displayed(dialogue: DebugDialogue, text: str) -> Answer:
    try:
        value, type = dialogue.debugger.evaluate(text)
    except Exception as error:
        yield TextReply(f"{text}: {str(error).splitlines()[0]}")
        return
    yield TextReply(f"{text} = {summary(value)}" if type is not None else text)


def _undisplay(dialogue: DebugDialogue, text: str) -> Answer:
    if text and text not in dialogue.displayed:
        raise UsageError(f"'{text}' is not displayed", hints=did_you_mean(text, dialogue.displayed))
    dialogue.displayed[:] = [each for each in dialogue.displayed if text and each != text]
    return []


def _threads(dialogue: DebugDialogue, argument: str) -> Answer:
    if argument:
        dialogue.before = {}
        return dialogue.stopped(dialogue.debugger.switch(_number(argument, 1)))
    recording = dialogue.debugger.recording
    rows = [
        ("→" if each is recording.thread else "", str(each.number),
         "over" if each.state.finished else each.state.frame.code.name,
         f"waited for by {each.waited_by.number}" if each.waited_by else "")
        for each in recording.threads
    ]  # fmt: skip
    return [_table("threads", ("", ">", "runs", ""), rows)]


# ------------------------------------------------------------------ breakpoints


def _break(dialogue: DebugDialogue, text: str) -> Answer:
    if not text:
        return [_breakpoints(dialogue)]
    return [_made(dialogue.debugger.break_at(text))]


def _temporary(dialogue: DebugDialogue, text: str) -> Answer:
    return [_made(dialogue.debugger.break_at(text, is_temporary=True))]


def _watch(dialogue: DebugDialogue, text: str) -> Answer:
    if not text:
        raise UsageError("watch wants an expression", hints=("watch x", "watch x.shape", "watch nan"))
    return [_made(dialogue.debugger.watch(text))]


def _made(found: stops.Breakpoint) -> Reply:
    return TextReply(f"{found.number}: {found.text}", "done")


def _breakpoints(dialogue: DebugDialogue) -> Reply:
    rows = [
        (str(each.number), each.text, f"{each.hits}", ", ".join(_states(each)))
        for each in dialogue.debugger.breakpoints
    ]
    return _table("breakpoints", (">", "stops at", ">hits", ""), rows) if rows else TextReply("no breakpoints")


def _states(found: stops.Breakpoint) -> Iterator[str]:
    if not found.is_enabled:
        yield "disabled"
    if found.is_temporary:
        yield "once"
    if found.ignore:
        yield f"ignores the next {found.ignore}"


def _clear(dialogue: DebugDialogue, text: str) -> Answer:
    for number in text.split() or [str(each.number) for each in dialogue.debugger.breakpoints]:
        found = dialogue.debugger.delete(_number(number, 0))
        yield TextReply(f"deleted {found.number}: {found.text}", "done")


def _enable(wanted: bool) -> Callable[[DebugDialogue, str], Answer]:
    def run(dialogue: DebugDialogue, text: str) -> Answer:
        for number in text.split() or [str(each.number) for each in dialogue.debugger.breakpoints]:
            dialogue.debugger.breakpoint(_number(number, 0)).is_enabled = wanted
        return [_breakpoints(dialogue)]

    return run


def _ignore(dialogue: DebugDialogue, text: str) -> Answer:
    number, _, count = text.partition(" ")
    dialogue.debugger.breakpoint(_number(number, 0)).ignore = _number(count.strip(), 1)
    return [_breakpoints(dialogue)]


def _table(title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Reply:
    return ReportReply("", (Section(title, tuple(columns), tuple(rows)),))


# ------------------------------------------------------------------ the vocabulary


def _help(dialogue: DebugDialogue, argument: str) -> Answer:
    chosen = [row for row in COMMANDS if not argument or argument in row.names]
    if not chosen:
        raise UsageError(f"there is no command '{argument}'", hints=did_you_mean(argument, _BY_NAME))
    topics = tuple(HelpTopic(row.usage, row.summary) for row in chosen)
    details = () if argument else (
        "An empty line repeats the last move. Anything that is no command is TorchScript, evaluated in the selected "
        "call; write !n for a variable with a command's name. Assignments change the program's values.",
        "Commands of the shell, %who and the like, work here too.",
    )  # fmt: skip
    yield HelpReply("The debugger goes both ways", details, topics)


COMMANDS: Final = (
    Command(("next", "n"), "n, next [times]", "to the next line of this call", _go(Debugger.next), True),
    Command(("step", "s"), "s, step [times]", "to the next line, into calls", _go(Debugger.step), True),
    Command(("return", "r", "out", "finish"), "r, return", "to where this call has returned", _go(Debugger.out), True),
    Command(("until", "unt"), "unt, until [line]", "to a line farther down", _until, True),
    Command(("continue", "c", "cont"), "c, continue", "to the next breakpoint, or the end", _go(Debugger.go), True),
    Command(("stepi", "si"), "si, stepi [times]", "one instruction", _go(Debugger.instruction), True),
    Command(("back-next", "bn", "rn"), "bn, back-next [times]", "back to the line before in this call",
            _go(Debugger.back_next), True),
    Command(("back", "bs", "rs"), "bs, back [times]", "back to the line before, into calls",
            _go(Debugger.back_step), True),
    Command(("back-return", "br", "back-out"), "br, back-return", "back to the line that has made this call",
            _go(Debugger.back_out), True),
    Command(("back-continue", "bc", "rc"), "bc, back-continue", "back to the breakpoint before, or the beginning",
            _go(Debugger.back_go), True),
    Command(("back-stepi", "bsi", "rsi"), "bsi, back-stepi [times]", "back one instruction",
            _go(Debugger.back_instruction), True),
    Command(("goto",), "goto position", "to a position, which each stop shows", _go_to),
    Command(("restart", "run"), "run, restart", "to the beginning; breakpoints stay", _restart),
    Command(("break", "b"), "b, break place [if condition]",
            "stop at a line, function, module, operator, %node, failing guard; alone: list", _break),
    Command(("tbreak",), "tbreak place [if condition]", "the same, once", _temporary),
    Command(("watch",), "watch expression", "stop where a value changes; nan, inf: where one is computed", _watch),
    Command(("clear", "cl", "delete"), "cl, clear [number ...]", "delete breakpoints", _clear),
    Command(("disable",), "disable [number ...]", "leave breakpoints out", _enable(False)),
    Command(("enable",), "enable [number ...]", "let them stop again", _enable(True)),
    Command(("ignore",), "ignore number [times]", "do not stop there the next times", _ignore),
    Command(("where", "w", "bt"), "w, where", "the calls that led here", _calls),
    Command(("up", "u"), "u, up [times]", "select the call around", _up, True),
    Command(("down", "d"), "d, down [times]", "select the call inside", _down, True),
    Command(("list", "l"), "l, list [line]", "source", _list, True),
    Command(("locals",), "locals", "all variables of the selected call", _locals),
    Command(("args", "a"), "a, args", "its arguments", _arguments),
    Command(("p", "pp", "print"), "p expression", "a value; statements change the program", _print),
    Command(("whatis",), "whatis expression", "its type", _type),
    Command(("display",), "display [expression]", "show a value at each stop", _display),
    Command(("undisplay",), "undisplay [expression]", "no longer", _undisplay),
    Command(("registers", "regs"), "regs, registers", "the interpreter's registers", _registers),
    Command(("instructions", "x"), "x, instructions [around]", "instructions around the present one", _instructions),
    Command(("threads", "thread"), "thread [number]", "forks are threads: list them, or switch", _threads),
    Command(("quit", "q", "exit"), "q, quit", "leave the debugger", _quit),
    Command(("help", "h", "?"), "h, help [command]", "this list", _help),
)  # fmt: skip
_BY_NAME: Final = {name: row for row in COMMANDS for name in row.names}


def names() -> list[tuple[str, str]]:
    """The words of the vocabulary that help shows, each with what it does, for completion."""
    return [(name, row.summary) for row in COMMANDS for name in row.names if name in row.usage and len(name) > 1]
