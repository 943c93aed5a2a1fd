"""The lines of a program that the statements of a kernel are from.

In: a kernel that knows its lines (`kernel_text.numbered`), and the graph that it was made of.  Out: for each line of
the kernel's text lines of the program, and which lines read what it makes.

Values of a kernel have the names of the graph's values, with more behind them where there are several of one.  What
has a name of its own, as elements of arguments and indices, is from the lines of what reads it; a loop from those of
what is in it; a store from those of what it stores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from engine.executor.plans.source_lines import SourceLine, line_of_node
from engine.fuser.groups.schedule import spelled
from engine.fuser.ir.kernel import (
    Accumulate,
    Address,
    Allocate,
    Assign,
    Call,
    Declare,
    Expression,
    Kernel,
    Let,
    Load,
    Name,
    Statement,
    Store,
    View,
    all_expressions,
    all_statements,
    bodies,
    parts,
)
from engine.ir.graph import Graph
from engine.lang.records import dataclass

Lines = frozenset[SourceLine]
NONE: Lines = frozenset()


@dataclass(frozen=True, slots=True)
class KernelLines:
    """Facts about lines of a kernel's text.

    `program`: the lines of the program that they are from, as far as these are known; `readers`: the lines of what
    reads the value that is made there, or of what is in a loop; `around`: the lines of functions, loops and branches,
    which are from the lines of what is in them.
    """

    program: dict[int, Lines]
    readers: dict[int, set[int]]
    around: set[int]

    def folded(self, present: Iterable[int]) -> dict[int, list[int]]:
        """Lines that are in code as a part of others, by these.

        An element that is loaded may be an operand of the instruction that uses it, a variable a register.  So what has
        no instruction of its own, as its line is not among those `present`, is in those of what reads it.
        """
        own = {*present}
        found: dict[int, list[int]] = {}
        for line in sorted(self.readers.keys() - own):
            for other in self._heirs(line, own):
                found.setdefault(other, []).append(line)
        return found

    def _heirs(self, line: int, own: set[int]) -> set[int]:
        """The nearest readers with instructions of their own."""
        found, seen, left = set[int](), {line}, [line]
        while left:
            for each in self.readers.get(left.pop(), set()) - seen:
                seen.add(each)
                (found.add if each in own else left.append)(each)
        return found


def lines_of_kernel(kernel: Kernel, graph: Graph) -> KernelLines:
    """The facts about a kernel of the graph.  What tells nothing has the lines of its function, or of calls of that."""
    values = ((value, line_of_node(node)) for node in graph.all_nodes() for value in node.outputs)
    known = {spelled(value.debug_name): line for value, line in values if line is not None}
    functions, found = (*kernel.helpers, kernel), KernelLines({}, {}, set())
    helpers = dict[str, Lines]()
    for each in functions:
        helpers[each.name] = found.program[each.line] = _Reading(known, helpers, found).block(each.body)
    calls: defaultdict[str, Lines] = defaultdict(frozenset)
    for each in reversed(functions):
        otherwise = found.program[each.line] = helpers[each.name] or calls[each.name]
        found.around.add(each.line)
        for statement in all_statements(each.body):
            lines = found.program[statement.line] = found.program[statement.line] or otherwise
            if isinstance(statement, Call):
                calls[statement.function] |= lines
    return replace(found, program={line: lines for line, lines in found.program.items() if lines})


def _of_name(name: str, known: Mapping[str, SourceLine]) -> Lines:
    """The line of the value that the name, or the beginning of it, stands for."""
    while name and name not in known:
        name = name.rpartition("_")[0]
    return frozenset({known[name]}) if name else NONE


@dataclass(eq=False, slots=True)
class _Reading:
    """One function, read from its end: what reads a name is known before what gives it."""

    known: Mapping[str, SourceLine]
    helpers: Mapping[str, Lines]
    """The lines of the functions before it."""
    found: KernelLines
    readers: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The lines of what reads a name."""

    def block(self, body: Sequence[Statement]) -> Lines:
        return _together(self.statement(each) for each in reversed(body))

    def statement(self, of: Statement) -> Lines:
        inside = _together(self.block(each) for each in reversed(bodies(of)))
        name, read = _given(of), {*_names(of)}
        readers = self.readers[name] | {each.line for body in bodies(of) for each in body}
        self.found.readers[of.line] = readers - {of.line}
        lines = self.found.program[of.line] = inside or self.own(of, name, read, readers)
        if bodies(of):
            self.found.around.add(of.line)
        for each in (*read, *([name] if isinstance(of, (Assign, Accumulate)) else ())):
            self.readers[each].add(of.line)
        return lines

    def own(self, of: Statement, name: str, read: Iterable[str], readers: Iterable[int]) -> Lines:
        """The lines of a statement that has none inside."""
        if isinstance(of, Store):
            stored = _together(_of_name(each, self.known) for each in _names_in(of.value))
            return stored or _of_name(of.buffer, self.known)
        if isinstance(of, Call):
            return self.helpers.get(of.function, NONE)
        if name:
            return _of_name(name, self.known) or _together(self.found.program[line] for line in readers)
        return _together(_of_name(each, self.known) for each in read)


def _given(of: Statement) -> str:
    """The name that stands for what the statement makes; "" for none."""
    match of:
        case Let(name=name) | Declare(name=name) | Assign(name=name) | Accumulate(name=name) | Call(name=name):
            return name
        case Allocate(buffer=buffer) | View(buffer=buffer):
            return buffer.name
    return ""


def _together(lines: Iterable[Lines]) -> Lines:
    return NONE.union(*lines)


def _names(of: Statement) -> Iterator[str]:
    """The values and buffers that the statement itself reads."""
    for root in parts(of):
        yield from _names_in(root)


def _names_in(root: Expression) -> Iterator[str]:
    for each in all_expressions(root):
        if isinstance(each, Name):
            yield each.name
        elif isinstance(each, (Load, Address)):
            yield each.buffer
