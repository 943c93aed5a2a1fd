"""`ScalarWriter`: the statements of a kernel of numbers, lists and dicts while they are written.

In: expressions, from the rules of operators.  Out: statements in nested blocks, and the nodes that they can fail at.

Note [Codes of scalar kernels]
A kernel that went well returns 0.  A positive code tells the node, counted from 1, that raises an error or that is left
to the interpreter: the program is to be run again by other means, which find lists and dicts as they were, or the node
alone, with the inputs that the kernel tells.  `NO_MEMORY` asks to run the program again.  `INTERRUPTED` comes with an
error of Python that is set, such as KeyboardInterrupt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Final

from engine.fuser.ir.kernel import (
    Address,
    Apply,
    Assign,
    Buffer,
    Call,
    Constant,
    Declare,
    Expression,
    If,
    Let,
    Load,
    Name,
    Return,
    Statement,
    Store,
    View,
    apply,
    convert,
    index,
)
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Node, Value
from engine.lang.records import dataclass
from engine.lang.types import BOOL, FLOAT, INT, DictType, ListType, Type

NO_MEMORY: Final = -1
INTERRUPTED: Final = -2
NUMBERS: Final[dict[Type, str]] = {INT: "i64", FLOAT: "f64", BOOL: "bool"}
"""Types of numbers, as kernels name them."""
STATE: Final = Buffer("state", "i64", None, access="inout")
"""The words of a run besides its values: first those that `container_helpers` names, then those of what failed."""
FAILED_ON: Final = 2
"""The word of the state with the list or dict that the failing node was given, or 0."""
INPUTS: Final = 3
"""The first of the words of the state with the numbers that it was given."""
MOST_INPUTS: Final = 4
Operand = Expression | tuple["Operand", ...]
"""A number, the address of a list or dict, or what a tuple holds."""


class Unsupported(Exception):
    """The node is left to other means, for the reason in the message."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(f"{node.kind}: {why}")
        self.node, self.why = node, why


def is_container(type: Type) -> bool:
    """True for lists and dicts of numbers."""
    if isinstance(type, ListType):
        return type.element in NUMBERS
    return isinstance(type, DictType) and type.key in NUMBERS and type.value in NUMBERS


def machine_type(type: Type) -> str | None:
    """The kernel's type of a value: lists and dicts are addresses; None for what kernels do not hold."""
    return "i64" if is_container(type) else NUMBERS.get(type)


@dataclass(eq=False, slots=True)
class ScalarWriter:
    """Statements go to the end of the innermost open block."""

    values: dict[Value, Operand] = field(default_factory=dict)
    failing: list[Node] = field(default_factory=list)
    """The nodes that codes stand for."""
    helpers: dict[str, None] = field(default_factory=dict)
    """The names of the helpers that are called."""
    cost: int = 0
    """The estimated nanoseconds of one run through the open block, inner loops left out."""
    _open: list[list[Statement]] = field(default_factory=lambda: [[]])
    _names: int = 0

    # -- blocks

    @contextmanager
    def block(self) -> Iterator[list[Statement]]:
        """A list that takes the statements written meanwhile."""
        statements: list[Statement] = []
        self._open.append(statements)
        try:
            yield statements
        finally:
            self._open.pop()

    def emit(self, statement: Statement) -> None:
        self._open[-1].append(statement)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements written in the open block."""
        return tuple(self._open[-1])

    # -- values

    def fresh(self, prefix: str = "v") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def let(self, value: Expression) -> Expression:
        """The value under a name, which stands for it from here on."""
        if isinstance(value, Constant):
            return value
        name = Name(self.fresh(), value.type)
        self.emit(Let(name.name, value))
        return name

    def declare(self, value: Expression) -> Name:
        """A variable with this first value."""
        name = Name(self.fresh("x"), value.type)
        self.emit(Declare(name.name, value))
        return name

    def assign(self, variable: Name, value: Expression) -> None:
        if value != variable:
            self.emit(Assign(variable.name, value))

    def choose(self, condition: Expression, value: Expression, otherwise: Expression) -> Expression:
        return self.let(apply("select", condition, value, otherwise))

    def operand(self, value: Value) -> Operand:
        return self.values[value]

    def number(self, value: Value) -> Expression:
        """The number or address; raises Unsupported for what is none."""
        found = self.values.get(value)
        if found is None or isinstance(found, tuple):
            raise Unsupported(value.node, f"no number, list or dict of numbers: {value.type}")
        return found

    # -- calls and failures

    def call(self, function: str, operands: Sequence[Expression], type: str, cost: int = 20) -> Expression:
        """The result of an external function."""
        name = Name(self.fresh("r"), type)
        self.emit(Call(function, tuple(operands), name.name, type))
        self.cost += cost
        return name

    def help(self, helper: str, *operands: Expression, cost: int = 10) -> Expression:
        """The result of one of `container_helpers`."""
        self.helpers[helper] = None
        return self.call(helper, operands, "i64", cost)

    @property
    def state(self) -> Expression:
        return Address(STATE.name, (index(0),))

    def word(self, address: Expression, number: int) -> Expression:
        """The word of that number from an address on."""
        view = self.view(address, "i64")
        return self.let(Load(view.name, (index(number),), "i64"))

    def view(self, address: Expression, type: str) -> Buffer:
        """The memory at an address."""
        view = Buffer(self.fresh("m"), type, None, access="inout")
        self.emit(View(view, address))
        return view

    def when(self, condition: Expression, *body: Statement) -> None:
        self.emit(If(condition, body))

    def fail_if(self, condition: Expression, node: Node) -> None:
        """Return with the node's code if the condition holds.  See Note [Codes of scalar kernels]."""
        if isinstance(condition, Constant) and not condition.value:
            return
        self.failing.append(node)
        self.when(condition, *self._told(node), Return(index(len(self.failing))))

    def _told(self, node: Node) -> Iterator[Statement]:
        """Statements that tell what the node was given."""
        for place, value in enumerate(node.inputs[:MOST_INPUTS]):
            found = self.values.get(value)
            if found is None or isinstance(found, tuple) or constant_value(value) is not NOT_CONSTANT:
                continue
            yield Store(STATE.name, (index(INPUTS + place),), word(found))
            if is_container(value.type):
                yield Store(STATE.name, (index(FAILED_ON),), found)

    def check(self, status: Expression) -> Expression:
        """Return NO_MEMORY if this result of a helper, an address or `1`, is 0."""
        self.when(apply("eq", status, index(0)), Return(index(NO_MEMORY)))
        return status


def either(*conditions: Expression) -> Expression:
    """True if one of the conditions holds."""
    found = [each for each in conditions if not (isinstance(each, Constant) and not each.value)]
    if not found:
        return Constant(False, "bool")
    total = found[0]
    for each in found[1:]:
        total = Apply("bitor", (total, each), "bool")
    return total


def word(value: Expression) -> Expression:
    """The number as a word of 64 bits, as it lies in lists and dicts."""
    return apply("bits_of_f64", value) if value.type == "f64" else convert(value, "i64")


def as_float(value: Expression) -> Expression:
    return Constant(float(value.value), "f64") if isinstance(value, Constant) else convert(value, "f64")
