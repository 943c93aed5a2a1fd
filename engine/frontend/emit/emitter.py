"""The emitter of one function, and its state.

In: trees, given to `sugared`, `expression` and `statements`; the rules for each kind of tree are tables
of free functions in this package.  Out: nodes in the graph.  Variables are written and read through
`assign` and `lookup`, as `prim::Store` and `prim::Load`; the SSA conversion removes these later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from enum import Enum, auto

from engine.frontend.diagnostics.hints import conversion_hints, name_hints
from engine.frontend.emit.environment import Environment, Variable
from engine.frontend.emit.recovery import LEAVE, Recovery
from engine.frontend.matching.convert import convert
from engine.frontend.names.globals import GLOBALS
from engine.frontend.names.resolve import Resolver
from engine.frontend.names.type_annotations import TypeReader
from engine.frontend.sugared.classes import ConstantValue
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import SimpleValue
from engine.frontend.syntax.tree import Tree
from engine.ir.graph import Block, Value
from engine.ir.names import name_after
from engine.lang.errors import Caution, CompileError, FollowUpError
from engine.lang.records import dataclass
from engine.lang.source import SourceRange
from engine.lang.types import ANY, ListType, Type


class LoopKind(Enum):
    """The kind of loop that `break` and `continue` would leave."""

    RUNNING = auto()
    UNROLLED = auto()


@dataclass(frozen=True, slots=True)
class Rules:
    """The function that compiles each kind of tree."""

    expressions: Mapping[str, Callable[[Emitter, Tree, Type | None], SugaredValue]]
    statements: Mapping[str, Callable[[Emitter, Tree], None]]


@dataclass(eq=False, slots=True, kw_only=True)
class Emitter(Builder):
    """One function being compiled.

    `declared` is the annotated return type, `returned` what the `return`s so far share; `exits` are the
    blocks that every path leaves by `return` or `raise`.
    """

    resolver: Resolver
    rules: Rules
    declared: Type | None = None
    returned: Type | None = None
    environment: Environment = field(init=False)
    types: TypeReader = field(init=False)
    exits: set[Block] = field(default_factory=set)
    loops: list[LoopKind] = field(default_factory=list)
    around: Callable[[Value, float | complex, SourceRange], None] | None = None
    """In a function inside another: called for each of its literals."""
    lost_writes: list[Caution] = field(default_factory=list)
    """Writes that lowering the graph removed although they may be observable."""
    recovery: Recovery = field(default_factory=Recovery)
    _literals: dict[tuple[type, str], Value] = field(default_factory=dict)
    _temporaries: int = 0

    def __post_init__(self) -> None:
        self.environment = Environment(self.graph.block)
        self.types = TypeReader(self.resolver)

    # -- trees

    def sugared(self, tree: Tree, hint: Type | None = None) -> SugaredValue:
        """The sugared value of the expression; `hint` is the type that is wanted, where one is annotated."""
        rule = self.rules.expressions.get(tree.kind)
        if rule is None:
            raise _no_expression(tree)
        return rule(self, tree, hint)

    def expression(self, tree: Tree, hint: Type | None = None) -> Value:
        """The value of the expression."""
        value = self.sugared(tree, hint).as_value(self, tree.range)
        return self.cast(value, ANY) if hint is ANY and value.type is not ANY else value

    def statements(self, trees: Sequence[Tree]) -> None:
        """Compile the statements up to the first that always leaves the block.  Errors are kept in `recovery`."""
        for tree in trees:
            rule = self.rules.statements.get(tree.kind, _unknown_statement)
            loops = len(self.loops)
            try:
                with self.graph.inserting_at(self.graph.insert_point, tree.range):
                    rule(self, tree)
            except CompileError as error:
                del self.loops[loops:]
                self.recovery.keep(tree, error, in_init=self.initializes is not None)
                if tree.kind in LEAVE:
                    self.exits.add(self.environment.block)
            if self.environment.block in self.exits:
                return

    @contextmanager
    def inside(self, block: Block, suffix: str = "") -> Iterator[Environment]:
        """Compile into `block`, with an environment of its own, while the context lasts."""
        saved = self.environment
        self.environment = Environment(block, saved, suffix or saved.suffix)
        place = block if block is not saved.block else self.graph.insert_point
        with self.graph.inserting_at(place):
            try:
                yield self.environment
            finally:
                self.environment = saved

    # -- constants

    def literal(self, value: float | complex, range: SourceRange) -> Value:
        """A numeric literal: one constant for each value, at the very start of the function."""
        key = (type(value), repr(value))
        if key not in self._literals:
            first = self.graph.block.param_node.next
            assert first is not None
            with self.graph.inserting_at(first):
                self._literals[key] = self.constant(value, range)
            if self.around is not None:
                self.around(self._literals[key], value, range)
        return self._literals[key]

    def retype(self, value: Value, type: Type) -> None:
        """Give an element of a comprehension the annotated type at once.

        Uses of the same literal elsewhere keep its own.
        """
        if value.type == type or value.has_uses:
            return
        value.set_type(type)
        self._literals = {key: known for key, known in self._literals.items() if known is not value}

    # -- names

    def temporary(self) -> str:
        """A fresh name that no program can write."""
        self._temporaries += 1
        return f"$tmp_{self._temporaries}"

    def lookup(self, name: str, range: SourceRange) -> SugaredValue:
        """The sugared value of the name here.  Raises CompileError, with a suggestion, for an undefined name."""
        found = self.find(name, range)
        if found is not None:
            return found
        why = self.environment.error(name)
        if why is not None:
            hints = [f"it is used in line {range.line}", f"give {name} a value in both branches, or before the `if`"]
            raise CompileError(why[0], why[1], hints=hints)
        known = [*self.environment.names(), *GLOBALS, *self.resolver.names()]
        raise CompileError(f"undefined value {name}", range, hints=name_hints(name, known))

    def find(self, name: str, range: SourceRange) -> SugaredValue | None:
        self.check_known(name, range)
        found = self.environment.find(name)
        if isinstance(found, Variable):
            return SimpleValue(self.load(name, found, range))
        return found or GLOBALS.get(name) or self.resolver.resolve_value(self, name, range)

    def outside(self, name: str, range: SourceRange | None) -> Value:
        """The variable of a function around this one."""
        place = range or self.graph.current_range
        assert place is not None, "something in the program is compiled"
        return self.lookup(name, place).as_value(self, place)

    def check_known(self, name: str, range: SourceRange) -> None:
        """Raises FollowUpError for a name whose statement failed."""
        if name in self.recovery.unknown:
            raise FollowUpError(f"{name} is not known, since the statement that sets it does not compile", range)

    def load(self, name: str, variable: Variable, range: SourceRange | None = None) -> Value:
        """The value of a variable."""
        node = self.node("prim::Load", (), [variable.type], range).set_attr("name", variable.stored)
        return node.output.set_debug_name(name_after(name))

    def store(self, name: str, value: Value, type: Type, range: SourceRange | None = None) -> None:
        """Write a variable, unchecked."""
        self.environment.define(name, type)
        self.node("prim::Store", [value], (), range).set_attr("name", name + self.environment.suffix)

    def assign(self, name: str, value: SugaredValue, range: SourceRange, annotated: Type | None = None) -> None:
        """`name = value`, or `name: annotated = value`.  Raises CompileError when the types forbid it."""
        if name in self.recovery.unknown:
            return
        if isinstance(value, ConstantValue):
            value = SimpleValue(value.as_value(self, range))
        simple = value.value if isinstance(value, SimpleValue) else None
        outer = self.environment.find_outside(name)
        if simple is None and outer is None:
            self.environment.define_sugared(name, value)
            return
        if simple is None:
            raise CompileError(_not_first_class(name, value.describe()), range)
        self._name_after(name, simple)
        if outer is not None:
            simple = self._fit_outer(name, simple, outer, range, annotated)
        if annotated is not None and not simple.type.is_subtype_of(annotated):
            raise CompileError(
                f"Variable '{name}' is annotated with type {annotated.annotation_str} but is being assigned to a value "
                f"of type {simple.type.annotation_str}",
                range,
                hints=conversion_hints(simple.type, annotated, None),
            )
        self.store(name, simple, annotated or simple.type, range)

    def assign_value(self, name: str, value: Value, range: SourceRange) -> None:
        self.assign(name, SimpleValue(value), range)

    def _name_after(self, name: str, value: Value) -> None:
        """Name the value after its first variable, if it was made in the same block."""
        made_here = value.node.block is self.environment.block
        if not value.has_debug_name and made_here:
            value.set_debug_name(name_after(name))

    def _fit_outer(
        self, name: str, value: Value, outer: Variable | SugaredValue, range: SourceRange, annotated: Type | None
    ) -> Value:
        """A variable of an outer block keeps its type."""
        if annotated is not None:
            raise CompileError(
                f"Attempting to declare and annotate the type of variable '{name}' but it is already defined in "
                "an outer block",
                range,
                hints=("annotate it where it is set first",),
            )
        if not isinstance(outer, Variable):
            raise CompileError(_not_first_class(name, outer.describe()), range)
        value = convert(self.graph, value, outer.type, True, range)
        if value.type.is_subtype_of(outer.type):
            return value
        text = (
            f"Variable '{name}' previously had type {outer.type.annotation_str} but is now being assigned to a value "
            f"of type {value.type.annotation_str}"
        )
        if isinstance(outer.type, ListType) and isinstance(value.type, ListType):
            hints = ("an empty list is a List[Tensor]; annotate the variable, as in `x: List[int] = []`",)
        else:
            hints = (f"within an if or a loop '{name}' keeps the type it had before; use another name",)
        raise CompileError(text, range, hints=hints)


def _no_expression(tree: Tree) -> CompileError:
    if tree.kind == "starred":
        text = "Unexpected starred expansion. File a bug report"
        return CompileError(text, tree.range, hints=("*x stands only among a call's arguments and in tuples",))
    hints = ("... stands in an index beside others, as in x[..., 0]",) if tree.kind == "dots" else ()
    shown = str(tree).replace("(slice_expr ", "(slice expr ")
    return CompileError(f"Cannot emit expr for: {shown}", tree.range, hints=hints)


def _unknown_statement(e: Emitter, tree: Tree) -> None:
    hints = ("make it a parameter, and return what it becomes",) if tree.kind == "global" else ()
    raise CompileError(f"Unrecognized statement kind {tree.kind}", tree.range, hints=hints)


def _not_first_class(name: str, kind: str) -> str:
    return (
        f"Cannot re-assign '{name}' to a value of type {kind} because {name} is not a first-class value.  Only "
        "reassignments to first-class values are allowed"
    )
