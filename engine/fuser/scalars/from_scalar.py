"""Graphs of ints, floats, bools, and lists and dicts of them as kernels: control flow, and what goes in and out.

In: a graph without tensors.  Out: a `ScalarProgram`: the kernel, its arguments and results, and the node that each code
stands for.  Raises `Unsupported` at the first node that is left to other means.  Operators are the rows of
`scalar_rules` and `container_rules`; memory is that of `container_helpers`.

    %s : int = prim::Loop(%n, %true, %zero)             x1 = 0
      block0(%i : int, %acc : int):                     for v2 in range(n):
        %next : int = aten::add(%acc, %i)         →         v3 = x1 + v2
        -> (%true, %next)                                   x1 = v3

Note [Interrupting kernels]
Every loop takes what its iterations are estimated to cost from the variable `fuel`.  When that is used up, the helper
`poll` lets other threads run and Python's signal handlers be called.  A loop that counts does so in chunks, so that
LLVM sees an inner loop without any of this.

Note [Ownership]
An object counts the variables that hold it.  What a block inside a loop makes is given up at the block's end; what goes
out of a block, or into the next iteration, is held once more before.  All that is left goes when the kernel ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Final

from engine.fuser.ir.kernel import (
    BOOL,
    Assign,
    Buffer,
    Call,
    Constant,
    Declare,
    Expression,
    For,
    If,
    Kernel,
    Name,
    Return,
    Scalar,
    Statement,
    Store,
    While,
    apply,
    constant,
    index,
)
from engine.fuser.scalars import containers
from engine.fuser.scalars.container_rules import CONTAINER_RULES, WRITERS
from engine.fuser.scalars.scalar_rules import RULES, cost_of
from engine.fuser.scalars.scalar_writer import (
    INTERRUPTED,
    NUMBERS,
    STATE,
    ScalarWriter,
    Unsupported,
    is_container,
    machine_type,
)
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.ops import op_of
from engine.lang.records import dataclass
from engine.lang.types import NONE, DictType, TupleType, Type

_ENDLESS: Final = 2**63 - 1
"""The trip count of a `while`."""
_FUEL: Final = 1_000_000
"""Nanoseconds, by estimate, between two polls."""
_FUEL_LEFT: Final = Name("fuel", "i64")


@dataclass(frozen=True, slots=True)
class ScalarProgram:
    """`nodes[code - 1]` is the node of a positive code.  `arguments` and `results` are their types, by name.

    The kernel takes the arguments, as buffers of one element the results, and `containers.FAILURE`.  A list or dict
    goes in as the address of the Python object and comes out as that of a new reference.  The kernel is called with the
    interpreter lock held.  Several results are a tuple, none is None.  `writes`: it may change lists or dicts that go
    in.
    """

    kernel: Kernel
    arguments: tuple[tuple[str, Type], ...]
    results: tuple[tuple[str, Type], ...]
    nodes: tuple[Node, ...]
    writes: bool


def lower(graph: Graph, name: str = "scalar") -> ScalarProgram:
    """The graph as a kernel; raises Unsupported."""
    return _GraphLowering(graph, name).lower()


@dataclass(eq=False, slots=True)
class _Scope:
    """A block that is being written: the objects that it made, which it gives up at its end if it is in a loop."""

    is_in_loop: bool
    owned: list[Expression] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _GraphLowering:
    graph: Graph
    name: str
    w: ScalarWriter = field(default_factory=ScalarWriter)
    scopes: list[_Scope] = field(default_factory=lambda: [_Scope(False)])
    has_loops: bool = False

    # -- the kernel

    def lower(self) -> ScalarProgram:
        arguments = [(f"a{i}", value.type) for i, value in enumerate(self.graph.inputs)]
        for (name, type), value in zip(arguments, self.graph.inputs, strict=True):
            self.w.values[value] = Name(name, self._machine_type(type, self.graph.param_node))
        self._block(self.graph.block)
        returned = self._returned()
        results = [(f"result{i}", value.type) for i, value in enumerate(returned)]
        for (name, _), value in zip(results, returned, strict=True):
            self.w.emit(Store(name, (index(0),), self.w.number(value)))
        writes = any(map(_is_writer, self.graph.all_nodes())) and any(is_container(type) for _, type in arguments)
        kernel = self._kernel(arguments, results, writes)
        nodes = tuple(self.w.failing)
        return ScalarProgram(kernel, tuple(arguments), tuple(results), nodes, writes)

    def _returned(self) -> Sequence[Value]:
        """The values that go out: none for None, several for a tuple."""
        outputs = self.graph.outputs
        if len(outputs) != 1 or not isinstance(outputs[0].type, TupleType):
            return outputs if len(outputs) != 1 or outputs[0].type != NONE else ()
        made = outputs[0].node
        if made.kind != "prim::TupleConstruct" or outputs[0].type.name or len(made.inputs) < 2:
            raise Unsupported(self.graph.return_node, f"no tuple of several numbers and lists: {outputs[0].type}")
        return made.inputs

    def _kernel(self, arguments: containers.Names, results: containers.Names, writes: bool) -> Kernel:
        fuel = (Declare(_FUEL_LEFT.name, index(_FUEL)),) if self.has_loops else ()
        parameters = [Scalar(name, self._machine_type(type, self.graph.param_node)) for name, type in arguments]
        given = [Buffer(n, self._machine_type(t, self.graph.return_node), (index(1),), None, "out") for n, t in results]
        body = (*fuel, *self.w.statements, Return(index(0)))
        inner = Kernel(f"{self.name}_body", (STATE, *parameters, *given), body)
        return containers.enclosed(f"{self.name}_scalar", inner, arguments, results, self.w.helpers, writes)

    def _machine_type(self, type: Type, node: Node) -> str:
        found = machine_type(type)
        if found is None:
            raise Unsupported(node, f"no number, list or dict of numbers: {type}")
        return found

    # -- nodes

    def _block(self, block: Block) -> None:
        for node in block.nodes():
            self._node(node)

    def _node(self, node: Node) -> None:
        if node.kind == "prim::Constant":
            self._constant(node)
        elif node.kind == "prim::If":
            self._if(node)
        elif node.kind == "prim::Loop":
            self._loop(node)
        elif node.kind == "prim::RaiseException":
            self.w.fail_if(Constant(True, BOOL), node)
        elif node.kind == "prim::Uninitialized":
            self.w.values[node.output] = self._zero(node.output)
        elif node.kind in ("prim::TupleConstruct", "prim::NamedTupleConstruct"):
            self.w.values[node.output] = tuple(map(self.w.operand, node.inputs))
        elif node.kind in ("prim::TupleUnpack", "prim::TupleIndex"):
            self._take_apart(node)
        elif not _is_message(node):
            self._operator(node)

    def _constant(self, node: Node) -> None:
        value, type = constant_value(node.output), node.output.type
        if type in NUMBERS:
            self.w.values[node.output] = constant(value, NUMBERS[type])
        elif type == NONE:  # a bound of a slice, which looks at the type
            self.w.values[node.output] = index(0)
        elif is_container(type):
            found = CONTAINER_RULES["prim::Constant"](self.w, node, _elements(value, type))
            assert not isinstance(found, tuple)
            self._define(node.output, found)

    def _take_apart(self, node: Node) -> None:
        parts = self.w.operand(node.inputs[0])
        place = constant_value(node.inputs[1]) if node.kind == "prim::TupleIndex" else None
        if not isinstance(parts, tuple) or place is NOT_CONSTANT:
            raise Unsupported(node, "the tuple comes from elsewhere")
        if place is not None:
            if not -len(parts) <= place < len(parts):
                raise Unsupported(node, "the tuple has fewer elements")
            parts = (parts[place],)
        self.w.values.update(zip(node.outputs, parts, strict=True))

    def _operator(self, node: Node) -> None:
        op = op_of(node)
        name = node.kind if op is None else op.qualified_name
        rule = RULES.get(name) or CONTAINER_RULES.get(name)
        if rule is None:
            raise Unsupported(node, "there is no rule for it")
        found = rule(self.w, node, [*map(self.w.number, node.inputs)])
        if isinstance(found, tuple):
            if len(node.outputs) == 1:
                self.w.values[node.output] = found
            else:
                self.w.values.update(zip(node.outputs, found, strict=True))
            return
        self.w.cost += cost_of(found)
        self._define(node.output, self.w.let(found), is_new=node.kind not in _RETURN_THEIR_INPUT)

    def _define(self, value: Value, found: Expression, *, is_new: bool = True) -> None:
        self.w.values[value] = found
        if is_container(value.type) and is_new and self.scopes[-1].is_in_loop:
            self.scopes[-1].owned.append(found)

    def _zero(self, value: Value) -> Expression:
        return constant(0, self._machine_type(value.type, value.node))

    # -- control flow

    def _if(self, node: Node) -> None:
        condition = self.w.number(node.inputs[0])
        if all(block.is_empty() for block in node.blocks) and not any(is_container(v.type) for v in node.outputs):
            for value, one, other in zip(node.outputs, *(block.outputs for block in node.blocks), strict=True):
                self.w.values[value] = self.w.choose(condition, self.w.number(one), self.w.number(other))
            return
        variables = [self.w.declare(self._zero(value)) for value in node.outputs]
        outer = self.w.cost
        branches, costs = [], []
        for block in node.blocks:
            self.w.cost = 0
            branches.append(self._branch(block, variables))
            costs.append(self.w.cost)
        self.w.cost = outer + max(costs)
        self.w.emit(If(condition, *branches))
        for value, variable in zip(node.outputs, variables, strict=True):
            self._define(value, variable)

    def _branch(self, block: Block, variables: Sequence[Name]) -> tuple[Statement, ...]:
        with self.w.block() as statements:
            self.scopes.append(_Scope(self.scopes[-1].is_in_loop))
            self._block(block)
            for variable, value in zip(variables, block.outputs, strict=True):
                self._hold(value)
                self.w.assign(variable, self.w.number(value))
            self._close()
        return tuple(statements)

    def _loop(self, node: Node) -> None:
        self.has_loops = True
        count, first, *initial = node.inputs
        (body,) = node.blocks
        variables = []
        for value in initial:
            self._hold(value, always=True)
            variables.append(self.w.declare(self.w.number(value)))
        self.w.values.update(zip(body.inputs[1:], variables, strict=True))
        outer, self.w.cost = self.w.cost, 2
        counts_only = constant_value(first) is True and constant_value(body.outputs[0]) is True
        if counts_only and constant_value(count) != _ENDLESS:
            self._counting_loop(node, self.w.number(count), variables)
        else:
            self._conditional_loop(node, self.w.number(count), self.w.number(first), variables)
        self.w.cost = outer
        for value, variable in zip(node.outputs, variables, strict=True):
            self._define(value, variable)

    def _counting_loop(self, node: Node, count: Expression, variables: Sequence[Name]) -> None:
        """A loop over chunks of a loop over indices.  See Note [Interrupting kernels]."""
        (body,) = node.blocks
        place = Name(self.w.fresh("i"), "i64")
        self.w.values[body.inputs[0]] = place
        with self.w.block() as iteration:
            self._iteration(body, variables)
        cost = index(self.w.cost)
        begin = self.w.declare(index(0))
        with self.w.block() as chunk:
            most = index(max(1, _FUEL // self.w.cost))
            left = self.w.let(apply("sub", count, begin))
            size = self.w.let(apply("minimum", left, most))
            end = self.w.let(apply("add", begin, size))
            self.w.emit(For(place.name, begin, end, tuple(iteration)))
            self._poll(apply("mul", size, cost))
            self.w.assign(begin, end)
        self.w.emit(While(apply("lt", begin, count), tuple(chunk)))

    def _conditional_loop(self, node: Node, count: Expression, first: Expression, variables: Sequence[Name]) -> None:
        (body,) = node.blocks
        goes_on = self.w.declare(first)
        limited = constant_value(node.inputs[0]) != _ENDLESS
        counted = limited or body.inputs[0].has_uses
        place = self.w.declare(index(0)) if counted else index(0)
        condition: Expression = goes_on
        if limited:
            condition = apply("bitand", goes_on, apply("lt", place, count))
        with self.w.block() as iteration:
            self.w.values[body.inputs[0]] = place
            self._iteration(body, [goes_on, *variables])
            if isinstance(place, Name):
                self.w.assign(place, apply("add", place, index(1)))
            self._poll(index(self.w.cost))
        self.w.emit(While(condition, tuple(iteration)))

    def _iteration(self, body: Block, variables: Sequence[Name]) -> None:
        """The body, and the values for the next iteration in these variables, of which the last are the body's."""
        self.scopes.append(_Scope(True))
        self._block(body)
        given = body.outputs[len(body.outputs) - len(variables) :]
        after = [self._kept(self.w.number(value), variables) for value in given]
        for value in given:
            self._hold(value)
        for variable, value, new in zip(variables, given, after, strict=True):
            if is_container(value.type):
                self.w.help("release", self.w.state, variable)
            self.w.assign(variable, new)
        self._close()

    def _kept(self, value: Expression, variables: Sequence[Name]) -> Expression:
        """The value under a name that outlasts the assignments to come."""
        return self.w.let(value) if value in variables else value

    def _poll(self, cost: Expression) -> None:
        """Let others in from time to time.  See Note [Interrupting kernels]."""
        self.w.emit(Assign(_FUEL_LEFT.name, apply("sub", _FUEL_LEFT, cost)))
        self.w.helpers["poll"] = None
        stop = Name(self.w.fresh("r"), "i64")
        self.w.when(
            apply("lt", _FUEL_LEFT, index(0)),
            Call("poll", (self.w.state,), stop.name, "i64"),
            If(apply("ne", stop, index(0)), (Return(index(INTERRUPTED)),)),
            Assign(_FUEL_LEFT.name, index(_FUEL)),
        )

    # -- ownership

    def _hold(self, value: Value, *, always: bool = False) -> None:
        """Count one more holder of an object.  See Note [Ownership]."""
        if is_container(value.type) and (always or self.scopes[-1].is_in_loop):
            self.w.help("retain", self.w.number(value))

    def _close(self) -> None:
        for each in self.scopes.pop().owned:
            self.w.help("release", self.w.state, each)


_RETURN_THEIR_INPUT: Final = ("aten::append", "aten::_set_item", "prim::unchecked_cast", "aten::add_", "aten::mul_")
"""Kinds of nodes whose result is their first input, changed."""


def _is_writer(node: Node) -> bool:
    return node.kind in WRITERS


def _is_message(node: Node) -> bool:
    """True if the node makes nothing but the message of an error."""
    return bool(node.outputs) and all(_is_told(value) for value in node.outputs)


def _is_told(value: Value) -> bool:
    uses = value.uses
    return bool(uses) and all(use.user.kind == "prim::RaiseException" or _is_message(use.user) for use in uses)


def _elements(value: Any, type: Type) -> list[Expression]:
    """The constants in a list, or the keys and values of a dict in turn."""
    if isinstance(type, DictType):
        pairs: Iterator[Any] = (part for item in value.items() for part in item)
        types = (type.key, type.value)
        return [constant(each, NUMBERS[types[i % 2]]) for i, each in enumerate(pairs)]
    (element,) = type.contained()
    return [constant(each, NUMBERS[element]) for each in value]
