"""The debugger's dialogue: `%debug f(x)`, and the commands that stand in front of its prompt.

In: command lines, pdb's where it has one; any other text is TorchScript, evaluated in the selected call.  Out: replies:
where the run stands, with its source, graph node and instruction; values; lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Any, Final, NamedTuple

from engine.executor.bytecode.instructions import CALL
from engine.executor.debugging import stops
from engine.executor.debugging.debugger import Debugger, FrameView, Stop
from engine.executor.debugging.evaluating import Watch, copied, names_in
from engine.executor.plans.source_places import CELLS
from engine.frontend.compilation.entries import ENTRY
from engine.ir.graph import Node, Value
from engine.lang.errors import ArgumentError, CompileError, EngineError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.types import Type
from tsrepl.session.failures import UsageError, error_replies
from tsrepl.session.instruction_rows import instruction_rows, instruction_text
from tsrepl.session.modules import without_scopes
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
from tsrepl.session.stop_reasons import REASONS, computed
from tsrepl.session.values import RESULT, described, summary
from tsrepl.session.workspace import LAST, Workspace

PROMPT: Final = "(debug) "
_AROUND: Final = 2
"""Lines of source shown before the present one, and behind it."""
_LISTED: Final = 11
Answer = Iterable[Reply]


class Command(NamedTuple):
    """A row of the debugger's vocabulary; the first name is the one that help shows.

    `others` are names that pdb and gdb have for it, which give way to variables of the program.  An empty line does
    again what `repeats`.  `argument` says what completes it: expression, place, displayed, command, or nothing.
    """

    names: tuple[str, ...]
    usage: str
    summary: str
    run: Callable[[DebugDialogue, str], Answer]
    repeats: bool = False
    others: tuple[str, ...] = ()
    argument: str = ""


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
    told: set[str] = field(default_factory=set)
    """Variables of which it was said that a command has their name."""

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
            return _print(self, text[1:].strip())
        command = self._command(name.removesuffix("()"), argument)
        if command is None:
            return self._evaluated(text)
        self.again = text if command.repeats else ""
        is_bare = not argument and not command.repeats
        return chain(command.run(self, argument.strip()), self._told_of(name) if is_bare else ())

    def _command(self, name: str, argument: str) -> Command | None:
        """The command of that name; None for what is TorchScript.  Raises UsageError for what no command does here."""
        is_variable = name in self.values()
        if _ASSIGNS.match(argument) or (is_variable and _makes_expression(name, argument)):
            return None
        is_free = not (is_variable or name in self.workspace.functions()) or bool(_WORD.match(argument))
        if name in _NOT_HERE and is_free:
            raise UsageError(f"this debugger has no '{name}'", hints=(_NOT_HERE[name],))
        return _BY_NAME.get(name) or (_BY_OTHER_NAME.get(name) if is_free else None)

    def _told_of(self, name: str) -> Answer:
        """A word, once, on a variable that has the name of the command that has just run."""
        if name in self.values() and name not in self.told and not self.is_over:
            self.told.add(name)
            yield TextReply(f"{name} is also a variable here: !{name} shows it")

    def values(self) -> dict[str, tuple[Any, Type]]:
        """The values of the selected call's variables, with their types; none where the run is over."""
        if self.debugger.finished:
            return {}
        view = self.debugger.frame
        return {name: (view.value(variable), variable.type) for name, variable in view.variables.items()}

    def remember(self, value: Any, type: Type) -> None:
        """Keep a value that is shown as `_`; in a notebook that is the last value of a cell."""
        if self.workspace.partner is self:
            self.workspace.bind(LAST, copied(value), type)

    def quit(self) -> Iterator[Reply]:
        """Leave; what the call has done so far stays done."""
        self.leave()
        yield TextReply("left the debugger", "done")

    def _evaluated(self, text: str) -> Answer:
        """The value of TorchScript; a word that means nothing there may be a command mistyped."""
        try:
            yield from _print(self, text)
        except ArgumentError as error:
            assigned = _NEW_NAME.match(text)
            if assigned is None or assigned[1] in self.values():
                raise
            hint = f"keep {assigned[2]} as {assigned[1]} makes it a variable of the session"
            raise ArgumentError(error.message, error.range, hints=(*error.hints, hint)) from None
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
            yield from self._never_asked()
            return
        error = _error(stop) if stop.kind == "error" else None
        yield replace(self.place(REASONS[stop.kind](stop), computed(stop)), error=error)
        for text in self.displayed:
            yield from _displayed(self, text)

    def _never_asked(self) -> Answer:
        """The breakpoints whose conditions made no sense wherever the run came by."""
        for each in self.debugger.breakpoints:
            if each.condition is not None and each.condition.never and each.is_enabled:
                yield TextReply(f"breakpoint {each.number} never stopped: {each.condition.never}", "warning")

    def _to_callee(self) -> Stop:
        """To the first line of what the entry calls."""
        stop = self.debugger.step()
        while stop.kind == "step" and len(self.debugger.frames) == 1:
            stop = self.debugger.step()
        return Stop("start") if stop.kind == "step" else stop

    def place(self, reason: str = "", computed: Sequence[Binding] = ()) -> DebugReply:
        """The selected call, and variables that have changed.

        `computed` are values that the stop is about; variables among them are shown as such.
        """
        view = self.debugger.frame
        variables = {name: summary(view.value(variable)) for name, variable in view.variables.items()}
        changed = {name: text for name, text in variables.items() if self.before.get(name) != text}
        self.before = variables
        shown = [each for each in computed if each.name not in changed]
        shown += [_binding(view, name) for name in changed]
        return replace(self.standing(), reason=reason, variables=tuple(shown))

    def standing(self) -> DebugReply:
        """The selected call: source around its line, the node, the instruction; of a run that is over, its result."""
        if self.debugger.finished:
            result = described(self.debugger.recording.result, RESULT)
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


def _makes_expression(name: str, argument: str) -> bool:
    """True if a variable with the name of a command is meant, by what stands behind it."""
    row = _BY_NAME.get(name) or _BY_OTHER_NAME.get(name)
    takes_text = row is not None and bool(row.argument)
    return bool(_GOES_ON.match(argument) or (not takes_text and _OPERATOR.match(argument)))


def _numbers(first: int, last: int) -> range:
    return range(first, last + 1)


_PLAN: Final = "--plan"
_NEW_NAME: Final = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*(.+)", re.DOTALL)
_LAST_WORD: Final = re.compile(r"[A-Za-z_]\w*$")
_ASSIGNS: Final = re.compile(r"[-+*/@%&|^]?=(?!=)")
_GOES_ON: Final = re.compile(r"(?:[-+*/@%&|^<>]|\*\*|//|<<|>>|[=!<>]=)(?:\s|$)|[\[(.,]|(?:is|in|and|or|if|not)\b")
"""An operator behind a name, which makes an expression of it; it is one where nothing follows yet, too."""
_OPERATOR: Final = re.compile(r"[-+*/@%&|^<>=!]")
"""The beginning of what only expressions take, where a command takes numbers."""
_WORD: Final = re.compile(r"(?!(?:is|in|and|or|if|not)\b)\w")
"""A word, which no expression has behind a name."""


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
        yield from workspace.dialogue.run(argument)
        return
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

    if workspace.partner is not None:
        yield TextReply("the call that was debugged before is left", "warning")
    if function.name == ENTRY:
        function.inlines = False  # the entry around the call has no plan
    debugger = Debugger(function, inputs, workspace.resolver, follows_plans=plan == _PLAN)
    dialogue = DebugDialogue(workspace, debugger)
    if isinstance(workspace.dialogue, DebugDialogue):
        workspace.dialogue.leave()
    workspace.dialogue = dialogue
    yield from dialogue.stopped(debugger.stop if argument else debugger.go())


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
    return dialogue.quit()


# ------------------------------------------------------------------ looking


def _up(dialogue: DebugDialogue, argument: str) -> Answer:
    dialogue.debugger.select(_number(argument, 1))
    dialogue.before = {}
    yield dialogue.place()


def _down(dialogue: DebugDialogue, argument: str) -> Answer:
    dialogue.debugger.select(-_number(argument, 1))
    dialogue.before = {}
    yield dialogue.place()


def _frame(dialogue: DebugDialogue, argument: str) -> Answer:
    """Select the call of a number; without one, show the selected call again."""
    if argument:
        innermost = len(dialogue.debugger.frames) - 1
        dialogue.debugger.select(innermost - _number(argument, 0) - dialogue.debugger.selected)
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


def _whole(dialogue: DebugDialogue, argument: str) -> Answer:
    """The source of the whole function, as far as something is done there."""
    view = dialogue.debugger.frame
    lines = [range.line for _, range in stops.lines_of(view.frame.code)]
    here = view.place.line if view.place is not None else 1
    first = min([*lines, here])
    yield DebugReply(_where(view), source=dialogue.source(view, max(1, first - 1), max([*lines, here])))


def _locals(dialogue: DebugDialogue, argument: str) -> Answer:
    yield WhoReply(dialogue.variables())


def _arguments(dialogue: DebugDialogue, argument: str) -> Answer:
    view = dialogue.debugger.frame
    known = view.variables
    names = dict.fromkeys(value.variable_name for value in view.frame.code.graph.inputs)
    yield WhoReply(tuple(_binding(view, name) for name in names if name in known))


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
        dialogue.remember(value, type)
        yield dialogue.workspace.show(value, type)


def _keep(dialogue: DebugDialogue, text: str) -> Answer:
    """Give a value a name in the session, where it stays when the call is left."""
    expression, _, name = text.rpartition(" as ") if " as " in text else (text, "", text)
    if not expression or not name.strip().isidentifier():
        raise UsageError("keep wants a value and a name", hints=("keep x", "keep x.sum() as total"))
    value, type = dialogue.debugger.evaluate(expression)
    if type is None:
        raise UsageError(f"'{expression}' has no value")
    dialogue.workspace.bind(name.strip(), copied(value), type)
    yield TextReply(f"{name.strip()} is a variable of the session now: {summary(value)}", "done")


def _set(dialogue: DebugDialogue, text: str) -> Answer:
    """gdb's way to assign."""
    text = text.removeprefix("variable ").removeprefix("var ")
    if "=" not in text:
        raise UsageError("set wants an assignment", hints=("n = 3, without a word before it, does the same",))
    return _print(dialogue, text)


def _result(dialogue: DebugDialogue, argument: str) -> Answer:
    if not dialogue.debugger.finished:
        raise UsageError("the call has not returned yet", hints=("c goes on to its end",))
    yield TextReply(described(dialogue.debugger.result, RESULT))


def _info(dialogue: DebugDialogue, argument: str) -> Answer:
    """gdb's `info`: what other commands tell."""
    name, _, rest = argument.partition(" ")
    found = [row for what, row in _INFO.items() if name and what.startswith(name)]
    if not found:
        raise UsageError(f"info tells of {', '.join(_INFO)}", hints=did_you_mean(name, _INFO))
    return _BY_NAME[found[0]].run(dialogue, rest.strip())


def _type(dialogue: DebugDialogue, text: str) -> Answer:
    if not text:
        raise UsageError("an expression is wanted", hints=("whatis x",))
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
    except KeyboardInterrupt:
        dialogue.displayed.remove(text)  # or each stop would have to be interrupted again
        yield TextReply(f"interrupted: {text} is displayed no more", "warning")
        return
    except Exception as error:
        yield TextReply(_why_none(dialogue, text, error))
        return
    yield TextReply(f"{text} = {summary(value)}" if type is not None else text)


def _why_none(dialogue: DebugDialogue, text: str, error: Exception) -> str:
    """The reason why an expression has no value here, in a line."""
    known = dialogue.values()
    unset = [name for name in names_in(text) if name in dialogue.debugger.names and name not in known]
    if unset:
        return f"{unset[0]} is not set here"
    return f"{text}: {error.message if isinstance(error, EngineError) else error}"


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
    if not text:
        raise UsageError("tbreak wants a place", hints=("tbreak 12", "tbreak relu"))
    return [_made(dialogue.debugger.break_at(text, is_temporary=True))]


def _watch(dialogue: DebugDialogue, text: str) -> Answer:
    if not text:
        raise UsageError("watch wants an expression", hints=("watch x", "watch x.shape", "watch nan"))
    found = dialogue.debugger.watch(text)
    yield _made(found)
    if isinstance(found.holds, Watch) and not dialogue.debugger.finished:
        try:
            dialogue.debugger.evaluate(text)
        except Exception as error:
            yield TextReply(f"it has no value yet: {_why_none(dialogue, text, error)}", "warning")


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


def _condition(dialogue: DebugDialogue, text: str) -> Answer:
    """Another condition for a breakpoint; without one, it always stops."""
    number, _, condition = text.partition(" ")
    dialogue.debugger.set_condition(_number(number, 0), condition.strip())
    return [_breakpoints(dialogue)]


def _ignore(dialogue: DebugDialogue, text: str) -> Answer:
    number, _, count = text.partition(" ")
    dialogue.debugger.breakpoint(_number(number, 0)).ignore = _number(count.strip(), 1)
    return [_breakpoints(dialogue)]


def _table(title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Reply:
    return ReportReply("", (Section(title, tuple(columns), tuple(rows)),))


# ------------------------------------------------------------------ the vocabulary


def _help(dialogue: DebugDialogue, argument: str) -> Answer:
    if argument in _NOT_HERE:
        return [TextReply(_NOT_HERE[argument])]
    chosen = [row for row in COMMANDS if not argument or argument in (*row.names, *row.others)]
    if not chosen:
        raise UsageError(f"there is no command '{argument}'", hints=did_you_mean(argument, _BY_NAME))
    topics = tuple(HelpTopic(row.usage, row.summary) for row in chosen)
    details = () if argument else (
        "An empty line repeats the last move. Anything that is no command is TorchScript, evaluated in the selected "
        "call; write !n for a variable with a command's name. Assignments change the program's values.",
        "Commands of the shell, %who and the like, work here too, and see the variables of the call: %save x x.npy.",
        "Names that pdb and gdb have for these commands work, too.",
    )  # fmt: skip
    return [HelpReply("The debugger goes both ways", details, topics)]


COMMANDS: Final = (
    Command(("next", "n"), "n, next [times]", "to the next line of this call", _go(Debugger.next), True),
    Command(("step", "s"), "s, step [times]", "to the next line, into calls", _go(Debugger.step), True),
    Command(("return", "r", "out", "finish"), "r, return", "to where this call has returned", _go(Debugger.out), True,
            ("fin",)),
    Command(("until", "unt"), "unt, until [line]", "to a line farther down", _until, True, ("advance",)),
    Command(("continue", "c", "cont"), "c, continue", "to the next breakpoint, or the end", _go(Debugger.go), True,
            ("fg",)),
    Command(("stepi", "si"), "si, stepi [times]", "one instruction", _go(Debugger.instruction), True),
    Command(("back-next", "bn", "rn"), "bn, back-next [times]", "back to the line before in this call",
            _go(Debugger.back_next), True, ("reverse-next",)),
    Command(("back", "bs", "rs"), "bs, back [times]", "back to the line before, into calls",
            _go(Debugger.back_step), True, ("reverse-step",)),
    Command(("back-return", "br", "back-out"), "br, back-return", "back to the line that has made this call",
            _go(Debugger.back_out), True, ("reverse-finish",)),
    Command(("back-continue", "bc", "rc"), "bc, back-continue", "back to the breakpoint before, or the beginning",
            _go(Debugger.back_go), True, ("reverse-continue",)),
    Command(("back-stepi", "bsi", "rsi"), "bsi, back-stepi [times]", "back one instruction",
            _go(Debugger.back_instruction), True, ("reverse-stepi",)),
    Command(("goto",), "goto position", "to a position, which each stop shows", _go_to),
    Command(("restart", "run"), "run, restart", "to the beginning; breakpoints stay", _restart, others=("start",)),
    Command(("break", "b"), "b, break place [if condition]",
            "stop at a line, function, module, operator, %node, failing guard; alone: list", _break,
            others=("brea", "breakpoints", "hbreak"), argument="place"),
    Command(("tbreak",), "tbreak place [if condition]", "the same, once", _temporary, others=("tb", "thbreak"),
            argument="place"),
    Command(("watch",), "watch expression", "stop where a value changes; nan, inf: where one is computed", _watch,
            others=("awatch",), argument="expression"),
    Command(("clear", "cl", "delete"), "cl, clear [number ...]", "delete breakpoints", _clear, others=("unwatch",)),
    Command(("condition",), "condition number [condition]", "stop there only if that holds", _condition,
            others=("cond",), argument="expression"),
    Command(("disable",), "disable [number ...]", "leave breakpoints out", _enable(False)),
    Command(("enable",), "enable [number ...]", "let them stop again", _enable(True)),
    Command(("ignore",), "ignore number [times]", "do not stop there the next times", _ignore),
    Command(("where", "w", "bt"), "w, where", "the calls that led here", _calls, others=("backtrace", "stack")),
    Command(("up", "u"), "u, up [times]", "select the call around", _up, True),
    Command(("down", "d"), "d, down [times]", "select the call inside", _down, True),
    Command(("frame",), "frame [number]", "select a call by its number, or show the selected one", _frame,
            others=("f",)),
    Command(("list", "l"), "l, list [line]", "source", _list, True),
    Command(("longlist", "ll"), "ll, longlist", "the source of the whole function", _whole, others=("source",)),
    Command(("locals",), "locals", "all variables of the selected call", _locals),
    Command(("args", "a"), "a, args", "its arguments", _arguments),
    Command(("p", "pp", "print"), "p expression", "a value, also as _; statements change the program", _print,
            others=("inspect", "output", "call"), argument="expression"),
    Command(("keep",), "keep expression [as name]", "give a value a name in the session", _keep,
            argument="expression"),
    Command(("whatis",), "whatis expression", "its type", _type, others=("ptype",), argument="expression"),
    Command(("display",), "display [expression]", "show a value at each stop", _display, argument="expression"),
    Command(("undisplay",), "undisplay [expression]", "no longer", _undisplay, argument="displayed"),
    Command(("registers", "regs"), "regs, registers", "the interpreter's registers", _registers),
    Command(("instructions", "x"), "x, instructions [around]", "instructions around the present one", _instructions,
            others=("disassemble", "disas")),
    Command(("threads", "thread"), "thread [number]", "forks are threads: list them, or switch", _threads),
    Command(("info",), "info locals|args|breakpoints|…", "the same under gdb's names", _info, others=("i", "inf")),
    Command(("set",), "set var n = 3", "an assignment under gdb's name", _set, argument="expression"),
    Command(("retval", "rv"), "rv, retval", "what the call has returned", _result),
    Command(("quit", "q", "exit"), "q, quit", "leave the debugger", _quit, others=("kill", "k", "EOF")),
    Command(("help", "h", "?"), "h, help [command]", "this list", _help, argument="command"),
)  # fmt: skip
_BY_NAME: Final = {name: row for row in COMMANDS for name in row.names}
_BY_OTHER_NAME: Final = {name: row for row in COMMANDS for name in row.others}
_INFO: Final = {
    "locals": "locals", "args": "args", "breakpoints": "break", "watchpoints": "break", "registers": "registers",
    "threads": "threads", "frame": "where", "stack": "where", "display": "display", "source": "longlist",
    "line": "list", "variables": "locals",
}  # fmt: skip
"""The subjects of gdb's `info`, and the command that tells of each here."""
_COMMENTS: Final = "display shows a value at each stop; a breakpoint runs no commands"
_RECORDED: Final = "every run is recorded: back, bn and bc go back, goto goes to a position"
_NAMED: Final = "the commands have the names that help lists"
_NOT_HERE: Final = {
    **dict.fromkeys(("jump", "j"), "no code is left out: goto goes to a position of the run, n = 3 changes a variable"),
    **dict.fromkeys(("commands", "silent"), _COMMENTS),
    **dict.fromkeys(("alias", "unalias", "define", "macro"), _NAMED),
    **dict.fromkeys(("interact", "python"), "any other line is TorchScript in the selected call; keep x takes x out"),
    **dict.fromkeys(("nexti", "ni"), "si goes one instruction, n to the next line"),
    **dict.fromkeys(("catch", "exceptions", "handle"), "errors stop the run by themselves; watch nan stops at NaN"),
    **dict.fromkeys(("rwatch",), "watch x stops where x changes, b aten::relu at an operator"),
    **dict.fromkeys(("record", "checkpoint", "rewind"), _RECORDED),
    **dict.fromkeys(("layout", "tui", "focus"), "l and ll show source, regs registers, x instructions"),
    **dict.fromkeys(("shell", "make"), "leave with q; at the prompt !ls is for the system's shell"),
    **dict.fromkeys(("debug", "attach", "detach", "file"), "q leaves; %debug f(x) debugs another call"),
    **dict.fromkeys(("printf", "echo"), "p shows values, and print(x) prints them"),
}
"""Commands of pdb and gdb that have no counterpart, and what does their work here."""


def completions(dialogue: DebugDialogue, line: str) -> tuple[str, list[tuple[str, str]], bool]:
    """The word at the end of a line, what may complete it, and whether any name of an expression may, too."""
    first, blank, argument = line.lstrip().partition(" ")
    variables = [(name, without_scopes(type.annotation_str)) for name, (_, type) in dialogue.values().items()]
    if not blank:
        rows = [(name, row.summary) for row in COMMANDS for name in row.names if len(name) > 1]
        others = [(name, row.summary) for row in COMMANDS for name in row.others if len(name) > 1]
        fitting = [row for row in (*variables, *rows) if row[0].startswith(line)] or others
        return line, fitting, not any(name.startswith(line) for name, _ in fitting)
    row = _BY_NAME.get(first) or _BY_OTHER_NAME.get(first)
    kind = row.argument if row is not None else "expression"
    if kind == "place" and " if " not in f" {argument}":
        return argument, dialogue.debugger.places(), True
    if kind == "displayed":
        return argument, [(text, "displayed") for text in dialogue.displayed], False
    if kind == "command":
        return argument, [(name, row.summary) for row in COMMANDS for name in row.names if len(name) > 1], False
    word = _LAST_WORD.search(argument)
    return (word[0] if word else ""), variables if kind else [], bool(kind)
