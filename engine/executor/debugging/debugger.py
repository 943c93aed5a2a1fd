"""A call under the debugger: commands that move it in both directions, the reason of each stop, what a frame shows.

In: a function, its inputs, and commands.  Out: a `Stop` for each command that moves; `FrameView`s; values.

    debugger = Debugger(function, inputs)
    debugger.break_at("model.py:12 if h.max() > 10")
    debugger.go()                           Stop(kind="breakpoint", …)
    debugger.evaluate("h.max()")
    debugger.back_line()

A *line* is where the author wrote it.  Every command that goes forward has a twin that goes back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

from engine.aten.dispatch import table
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import ASSIGN, CALLS, CONSTANT, JUMP, JUMPS, RETURN, Instruction
from engine.executor.debugging import stops
from engine.executor.debugging.author_names import author_name
from engine.executor.debugging.effects import effects_of
from engine.executor.debugging.evaluating import Change, Condition, Evaluator, ResolverFor, Watch, names_in
from engine.executor.debugging.places import (
    ModulePaths,
    Variable,
    line_starts,
    place_in,
    place_of,
    registers_of,
    variables_in,
)
from engine.executor.debugging.recording import BOUND, Recording
from engine.executor.debugging.runs import Run, Runs
from engine.executor.debugging.stops import Breakpoint, Holds, Where
from engine.executor.interpreter.interpreter import Frame
from engine.ir.graph import Graph, Node
from engine.ir.match import callee_of
from engine.ir.unit import Function
from engine.lang.errors import ArgumentError, ExecutionError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.source import SourceRange
from engine.lang.types import BOOL, NUMBER, NUMBERS, STR

StopKind = Literal["start", "step", "breakpoint", "watch", "error", "end", "interrupted"]
Asked = Literal["everywhere", "at lines", "at returns"]
"""Where a command asks whether the run is there: behind each instruction, at line starts, or where a call returns."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the run stands still: `text` in words; `breakpoint` and `error` where one of these is the reason."""

    kind: StopKind
    text: str = ""
    breakpoint: Breakpoint | None = None
    error: ExecutionError | None = None


@dataclass(frozen=True, slots=True)
class FrameView:
    """A call under way: the function, the module that it is a method of (None: of none), and where it stands."""

    function: str
    module: str | None
    place: SourceRange | None
    pc: int
    instruction: Instruction
    frame: Frame

    @property
    def variables(self) -> dict[str, Variable]:
        return variables_in(self.frame)

    def value(self, variable: Variable) -> Any:
        return self.frame.registers[variable.register]


_ByInstruction = dict[int, list[Breakpoint]]
_PASSING: Final = (ASSIGN, CONSTANT, JUMP)
_CONDITIONAL: Final = re.compile(r"(.*?)(?:^|\s)if\s(.+)")
_LINE: Final = re.compile(r"(?:(.+):)?(\d+)")


class Debugger:
    """A debugged call.  `stop` is the last stop, `selected` counts the frames from the innermost one outwards.

    `resolver_for` resolves the names in conditions and statements that are no variables of the program.  With
    `follows_plans` the graphs of plans run, in which guards may fail.
    """

    def __init__(
        self, function: Function, inputs: Sequence[Any], resolver_for: ResolverFor | None = None, bound: int = BOUND,
        *, follows_plans: bool = False,
    ) -> None:  # fmt: skip
        self.recording = Recording(function, inputs, bound, follows_plans=follows_plans)
        self.modules = ModulePaths(function.graph, inputs)
        self.evaluator = Evaluator(resolver_for)
        self.breakpoints: list[Breakpoint] = []
        self.selected = 0
        self.stop = Stop("start")
        self._count = 0
        self._before: dict[Code, _ByInstruction] = {}
        self._after: dict[Code, _ByInstruction] = {}
        self._runs: dict[tuple[Code, Asked], Runs] = {}
        self._stops: dict[tuple[Code, Asked], set[int]] = {}
        self._starts: dict[Code, tuple[bool, ...]] = {}
        self._to_first_line()

    def _to_first_line(self) -> None:
        with self.recording.running():
            while not self._is_line_start() and not self.recording.finished:
                self.recording.forward()

    def __repr__(self) -> str:
        if self.finished:
            return "<Debugger: the call has returned>"
        place = self.frame.place
        return f"<Debugger at {place.filename}:{place.line}>" if place is not None else "<Debugger>"

    # ------------------------------------------------------------------ looking

    @property
    def result(self) -> Any:
        """The value that the call has returned; None before."""
        return self.recording.result

    @property
    def finished(self) -> bool:
        return self.recording.finished

    @property
    def frames(self) -> list[FrameView]:
        """The calls under way, outermost first."""
        frames = self.recording.frames
        return [self._view(frame, path) for frame, path in zip(frames, self.modules.along(frames), strict=True)]

    @property
    def frame(self) -> FrameView:
        """The selected call.  Raises ArgumentError where the run is over."""
        frames = self.recording.frames
        if not frames:
            raise ArgumentError("the run is over", hints=("'back' goes back into it, 'restart' begins anew",))
        at = len(frames) - 1 - self.selected
        return self._view(frames[at], self.modules.along(frames)[at])

    def _view(self, frame: Frame, module: str | None) -> FrameView:
        function = stops.names_of(frame.code)[-1]
        return FrameView(function, module, place_in(frame), frame.pc, frame.instruction, frame)

    def select(self, outwards: int) -> FrameView:
        """Select the frame so many calls farther out (in, if negative).  Raises ArgumentError where there is none."""
        wanted = self.selected + outwards
        if not 0 <= wanted < len(self.recording.frames):
            raise ArgumentError("this is the outermost call" if outwards > 0 else "this is the innermost call")
        self.selected = wanted
        return self.frame

    # ------------------------------------------------------------------ going

    def step(self) -> Stop:
        """To the next line, into calls."""
        return self._go(self._is_line_start, "at lines")

    def next(self) -> Stop:
        """To the next line of this call, or of one that is around it."""
        is_outside = self._outside(self._depth())
        return self._go(lambda: self._is_line_start() and is_outside(), "at lines")

    def out(self) -> Stop:
        """To where the selected call has returned."""
        return self._go(self._outside(self._depth() - self.selected - 1), "at returns")

    def until(self, line: int | None = None) -> Stop:
        """To a line of this call farther down than the present one, or at least that; else to where it has returned."""
        depth = self._depth()
        is_inside, has_returned = self._outside(depth), self._outside(depth - 1)
        least = (self._line() or 0) + 1 if line is None else line
        return self._go(
            lambda: has_returned() or (self._is_line_start() and is_inside() and (self._line() or 0) >= least),
            "at lines",
        )

    def go(self) -> Stop:
        """To the next breakpoint, or the end."""
        return self._go(lambda: False, "at returns")

    def instruction(self) -> Stop:
        """One instruction."""
        return self._go(lambda: True, "everywhere")

    def back_step(self) -> Stop:
        """To the beginning of the line before, into calls."""
        return self._go_back(self._is_line_start, "at lines")

    def back_next(self) -> Stop:
        """To the beginning of the line before in this call, or in one that is around it."""
        is_outside = self._outside(self._depth())
        return self._go_back(lambda: self._is_line_start() and is_outside(), "at lines")

    def back_out(self) -> Stop:
        """To the line that has made the selected call."""
        is_outside = self._outside(self._depth() - self.selected - 1)
        return self._go_back(lambda: self._is_line_start() and is_outside(), "at lines")

    def back_go(self) -> Stop:
        """To the last breakpoint that was passed, or the beginning."""
        return self._go_back(lambda: False, "at returns")

    def back_instruction(self) -> Stop:
        return self._go_back(lambda: True, "everywhere")

    def go_to(self, position: int) -> Stop:
        """To where so many instructions have been executed."""
        with self.recording.running():
            try:
                self.recording.go_to(position)
            except ExecutionError as error:
                return self._stopped(Stop("error", str(error), error=error))
            except KeyboardInterrupt:
                return self._stopped(Stop("interrupted"))
        return self._stopped(Stop("end") if self.finished else Stop("step"))

    def restart(self) -> Stop:
        """To the first line; breakpoints stay, and may stop it before."""
        self.go_to(0)
        stop = self._go(self._is_line_start, "at lines")
        return self._stopped(Stop("start")) if stop.kind == "step" else stop

    def switch(self, thread: int) -> Stop:
        """To another thread.  Raises ArgumentError where there is none of that number that could run."""
        if not self.recording.switch(thread):
            raise ArgumentError(f"there is no thread {thread} that could run")
        return self._stopped(Stop("step", f"thread {thread}"))

    def _go(self, is_there: Callable[[], bool], asked: Asked) -> Stop:
        """To where it is there, a breakpoint stops, or an instruction fails."""
        if self.finished:
            return self._stopped(Stop("end"))
        recording = self.recording
        with recording.running():
            try:
                while True:
                    frames = recording.thread.state.frames
                    frame = frames[-1] if frames else None
                    pc = frame.pc if frame is not None else 0
                    run = self._run_at(frame, asked) if frame is not None and recording.is_straight else None
                    if run is not None:
                        recording.forward_over(run)
                        if run.is_passed:
                            continue
                        pc = run.pcs[-1]
                    elif not recording.forward():
                        return self._stopped(Stop("end"))
                    found = self._hit(frame, pc) if self.breakpoints else None
                    if found is not None:
                        return self._stopped(found)
                    if is_there():
                        return self._stopped(Stop("step"))
            except ExecutionError as error:
                return self._stopped(Stop("error", str(error), error=error))
            except KeyboardInterrupt:
                return self._stopped(Stop("interrupted"))

    def _go_back(self, is_there: Callable[[], bool], asked: Asked) -> Stop:
        """To where it was there, a breakpoint stops, or the beginning."""
        recording = self.recording
        with recording.running():
            try:
                while recording.position:
                    if self._is_passed_back(asked):
                        recording.back_over()
                        continue
                    recording.back()
                    found = self._hit_before(backwards=True)
                    if found is not None:
                        return self._stopped(found)
                    if is_there():
                        return self._stopped(Stop("step"))
            except KeyboardInterrupt:
                return self._stopped(Stop("interrupted"))
        self._to_first_line()
        return self._stopped(Stop("start"))

    def _to_place(self) -> None:
        """Past jumps and the like, which do nothing at a line of the program."""
        while (instruction := self.recording.frames[-1].instruction).opcode in _PASSING and place_of(
            instruction
        ) is None:
            self.recording.forward()

    def _stopped(self, stop: Stop) -> Stop:
        self.selected, self.stop = 0, stop
        return stop

    # ------------------------------------------------------------------ where the run stands

    def _depth(self) -> int:
        return len(self.recording.frames)

    def _outside(self, depth: int) -> Callable[[], bool]:
        """A test that holds where no call of the present thread is deeper than that, or the thread is over."""
        recording, thread = self.recording, self.recording.thread
        return lambda: thread.state.finished or (recording.thread is thread and self._depth() <= depth)

    def _is_line_start(self) -> bool:
        frames = self.recording.frames
        if not frames:
            return False
        frame = frames[-1]
        return self._starts_of(frame.code)[frame.pc]

    def _starts_of(self, code: Code) -> tuple[bool, ...]:
        found = self._starts.get(code)
        if found is None:
            found = self._starts[code] = line_starts(code)
        return found

    def _line(self) -> int | None:
        frames = self.recording.frames
        range = place_of(frames[-1].instruction) if frames else None
        return range.line if range is not None else None

    # ------------------------------------------------------------------ breakpoints

    def break_at(self, text: str, *, is_temporary: bool = False) -> Breakpoint:
        """A breakpoint, written as `stops` says.  Raises ArgumentError, ParseError."""
        made = self._breakpoint(text.strip())
        made.is_temporary = is_temporary
        return self._add(made)

    def _breakpoint(self, text: str) -> Breakpoint:
        match = _CONDITIONAL.fullmatch(text)
        place, written = (match[1].strip(), match[2]) if match else (text, "")
        condition = Condition(written, self.evaluator) if written else None
        if condition is not None and not place:
            names = self._known_names(written)
            where = _at_changes(names)
            change = Change(condition, stops.at_writes(names), where)
            return Breakpoint(0, text, where, change, condition, after=True)
        if written:
            names_in(written)  # which raises for what is no expression
        where, more = self._where(place)
        holds: list[Holds] = [each for each in (more, condition) if each is not None]
        test = holds[0] if len(holds) == 1 else (lambda frame: all(each(frame) for each in holds)) if holds else None
        return Breakpoint(0, text, where, test, condition)

    def set_condition(self, number: int, condition: str) -> Breakpoint:
        """Give a breakpoint another condition, or with "" none.  Raises ArgumentError, ParseError."""
        found = self.breakpoint(number)
        if isinstance(found.holds, (Watch, stops.BadResult)):
            raise ArgumentError(f"{number} stops at values and has no condition", hints=("b if x.max() > 10",))
        match = _CONDITIONAL.fullmatch(found.text)
        place = match[1].strip() if match else found.text
        made = self._breakpoint(f"{place} if {condition}".strip() if condition else place)
        found.text, found.where, found.holds, found.after = made.text, made.where, made.holds, made.after
        found.condition = made.condition
        found.forget()
        self._forget_pcs()
        return found

    def watch(self, text: str) -> Breakpoint:
        """A stop wherever the value of an expression changes; `nan`, `inf`: where a computed tensor has one.

        Raises ArgumentError, ParseError.
        """
        if {*text.split()} <= stops.BAD_VALUES:
            return self._add(
                Breakpoint(0, f"watch {text}", stops.at_results, stops.BadResult((*text.split(),)), after=True)
            )
        names = self._known_names(text)
        watched = Watch(text, self.evaluator)
        if self.recording.frames:
            watched.look(self.frame.frame)
        return self._add(Breakpoint(0, f"watch {text}", _at_changes(names), watched, after=True))

    def delete(self, number: int) -> Breakpoint:
        """Forget a breakpoint.  Raises ArgumentError where there is none of that number."""
        found = self.breakpoint(number)
        self.breakpoints.remove(found)
        self._forget_pcs()
        return found

    def breakpoint(self, number: int) -> Breakpoint:
        found = next((each for each in self.breakpoints if each.number == number), None)
        if found is None:
            raise ArgumentError(f"there is no breakpoint {number}", hints=("'break' lists them",))
        return found

    def _add(self, made: Breakpoint) -> Breakpoint:
        self._count += 1
        made.number = self._count
        self.breakpoints.append(made)
        self._forget_pcs()
        return made

    def _forget_pcs(self) -> None:
        for known in (self._before, self._after, self._runs, self._stops):
            known.clear()

    @property
    def names(self) -> frozenset[str]:
        """The names of all variables of the functions that may be called."""
        values = (value for code in self._codes() for value in code.values if value is not None)
        return frozenset(filter(None, map(author_name, values)))

    def places(self) -> list[tuple[str, str]]:
        """The modules and functions at which a breakpoint may stand, each with its kind."""
        modules = [(path, "module") for path in self.modules.known() if path]
        return modules + [(name, "function") for code in self._codes() for name in stops.names_of(code)]

    def _where(self, place: str) -> tuple[Where, Holds | None]:
        line = _LINE.fullmatch(place)
        if line is not None:
            return self._at_line(int(line[2]), line[1]), None
        if place == "guard":
            if not self.recording.follows_plans:
                raise ArgumentError("there are no guards here", hints=("%debug --plan f(x) runs the graphs of plans",))
            return stops.at_failing_guard, None
        if place.startswith("%"):
            return stops.at_node(place[1:]), None
        paths = self.modules.meant(place.removeprefix("."))
        if paths:
            return stops.at_beginning, lambda _: self.modules.along(self.recording.frames)[-1] in paths
        if any(place in stops.names_of(code) for code in self._codes()):
            return stops.at_call(place), None
        if table.overloads(place if "::" in place else f"aten::{place}"):
            return stops.at_operator(place), None
        known = [*self.modules.known(), *(name for code in self._codes() for name in stops.names_of(code))]
        raise ArgumentError(
            f"nothing is called '{place}': no function, module or operator",
            hints=did_you_mean(place, known) or ("write a line, model.py:12, or a condition, if x.max() > 10",),
        )

    def _at_line(self, line: int, file: str | None) -> Where:
        """The line, or the next one at which something is done.  Raises ArgumentError where there is none."""
        wanted = file if file is not None else (place.filename if (place := self.frame.place) else "")
        lines = {r.line for code in self._codes() for _, r in stops.lines_of(code) if stops.is_file(r.filename, wanted)}
        at = min((each for each in lines if each >= line), default=None)
        if at is None:
            known = sorted({r.filename for code in self._codes() for _, r in stops.lines_of(code)})
            hint = f"its last one is {max(lines)}" if lines else f"the program is from {', '.join(known) or 'no file'}"
            raise ArgumentError(f"nothing is done at or after line {line} of '{wanted}'", hints=(hint,))
        return stops.at_line(at, wanted)

    def _known_names(self, text: str) -> list[str]:
        """The variables of the program in an expression.  Raises ArgumentError where there are none."""
        names = names_in(text)
        known = self.names
        found = [name for name in names if name in known]
        if not found:
            hints = [hint for name in names for hint in did_you_mean(name, known)]
            raise ArgumentError(f"there is no variable of the program in '{text}'", hints=tuple(hints))
        return found

    def _codes(self) -> Iterator[Code]:
        """The codes of all functions that may be called, as far as the program tells."""
        yield from self.recording.codes
        waiting, seen = [self.recording.function], {self.recording.function}
        while waiting:
            code = self.recording.code_of(waiting.pop())
            yield code
            called = {callee for node in _nodes(code.graph) if (callee := callee_of(node)) is not None}
            callees = {each for each in called if each.body is not None}
            waiting += callees - seen
            seen |= callees

    def _at(self, code: Code, *, after: bool) -> _ByInstruction:
        """The breakpoints of the instructions of a code, found once."""
        known = self._after if after else self._before
        found = known.get(code)
        if found is None:
            found = known[code] = {}
            for each in self.breakpoints:
                for pc in each.pcs(code) if each.after == after else ():
                    found.setdefault(pc, []).append(each)
        return found

    def _run_at(self, frame: Frame, asked: Asked) -> Run | None:
        """The run at which a frame stands; None where more than registers is changed, or one instruction is wanted."""
        if asked == "everywhere":
            return None
        runs = self._runs.get((frame.code, asked))
        if runs is None:
            runs = self._runs[frame.code, asked] = self.recording.runs_past(frame.code, self._passed(frame.code, asked))
        return runs.at(frame.pc)

    def _passed(self, code: Code, asked: Asked) -> list[bool]:
        """For each instruction of a code, whether nothing can stop behind it, or before what comes next."""
        before, after = self._stops_before(code, asked), self._at(code, after=True)
        found = []
        for at, (opcode, operand, *_) in enumerate(code.program):
            comes_next = {at + 1, operand} if opcode in JUMPS else {at + 1}
            found.append(opcode not in CALLS and at not in after and before.isdisjoint(comes_next))
        return found

    def _stops_before(self, code: Code, asked: Asked) -> set[int]:
        """The instructions before which a run may stop."""
        starts = (at for at, is_start in enumerate(self._starts_of(code)) if is_start) if asked == "at lines" else ()
        return {*self._at(code, after=False), *starts}

    def _is_passed_back(self, asked: Asked) -> bool:
        """True if nothing can stop in the run that was executed last, on the way back."""
        if asked == "everywhere" or self.recording.last is None:
            return False
        code, pcs = self.recording.last
        stops = self._stops.get((code, asked))
        if stops is None:
            stops = self._stops[code, asked] = {*self._stops_before(code, asked), *self._at(code, after=True)}
        return stops.isdisjoint(pcs)

    def _hit(self, frame: Frame | None, pc: int) -> Stop | None:
        """The breakpoint that stops behind the instruction that was executed, or before the next one."""
        if frame is not None and (found := self._hit_after(frame, pc)) is not None:
            self._to_place()
            return found
        return self._hit_before()

    def _hit_before(self, backwards: bool = False) -> Stop | None:
        """The breakpoint that stops before the instruction at which the run stands."""
        frames = self.recording.thread.state.frames
        if not self.breakpoints or not frames:
            return None
        frame = frames[-1]
        found = self._before.get(frame.code)
        if found is None:
            found = self._at(frame.code, after=False)
        hits: Sequence[Breakpoint] = found.get(frame.pc, ())
        if backwards:
            hits = [*hits, *self._at(frame.code, after=True).get(frame.pc, ())]
        return self._first(hits, frame) if hits else None

    def _hit_after(self, frame: Frame, pc: int) -> Stop | None:
        """The breakpoint that stops behind the instruction that was executed; calls are executed when they return."""
        opcode = frame.code.program[pc][0]
        if opcode in CALLS:
            return None
        if opcode == RETURN:
            frames = self.recording.thread.state.frames
            if not frames:
                return None
            frame = frames[-1]
            pc = frame.pc - 1
        found = self._after.get(frame.code)
        if found is None:
            found = self._at(frame.code, after=True)
        hits = found.get(pc)
        return self._first(hits, frame) if hits else None

    def _first(self, hits: Sequence[Breakpoint], frame: Frame) -> Stop | None:
        for each in hits:
            if each.stops(frame):
                if each.is_temporary:
                    self.delete(each.number)
                watched = isinstance(each.holds, Watch)
                return Stop("watch" if watched else "breakpoint", each.text, each)
        return None

    # ------------------------------------------------------------------ values

    def evaluate(self, text: str) -> tuple[Any, Any]:
        """The value and the type of an expression in the selected frame; statements change the program's values.

        Raises CompileError, ExecutionError, ArgumentError.  The type is None where there is no value.
        """
        statements = self.evaluator.compile(text, self.frame.frame)
        depth = len(self.recording.frames) - 1 - self.selected
        with self.recording.running():
            return statements.run(self.recording, depth), statements.type


def _nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph, and of the graphs inside that forks run."""
    for node in graph.all_nodes():
        yield node
        if node.has_attribute("Subgraph"):
            yield from _nodes(node.attr("Subgraph"))


def _at_changes(names: Sequence[str]) -> Where:
    """The instructions behind which one of these variables, or what it holds, may be another."""
    writes = stops.at_writes(names)
    return lambda code: {*writes(code), *(_changing(code) if _may_change(code, names) else ())}


def _may_change(code: Code, names: Sequence[str]) -> bool:
    """True if one of these variables holds what can be written to, which numbers and text cannot."""
    held = {value.type for name in names for r in registers_of(code, name) if (value := code.values[r]) is not None}
    return not held <= {BOOL, STR, NUMBER, *NUMBERS}


def _changing(code: Code) -> Iterator[int]:
    """The instructions that may change values, and calls."""
    for at, (effect, step) in enumerate(zip(effects_of(code), code.program, strict=True)):
        if effect.keep is not None or step[0] in CALLS:
            yield at
