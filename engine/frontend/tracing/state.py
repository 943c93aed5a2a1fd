"""The state of a trace.

In: tensors, as operators compute them.  Out: the graph values that stand for them.  A traced module gives one graph
for each call of a submodule; a `Scope` is one of these graphs.  A value that is used in another graph than its own
becomes an argument of the calls on the way down and a result of the calls on the way up: the graphs need not be known
to the Python that runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from types import FrameType
from typing import Any, Final

from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Tensor
from engine.frontend.tracing.position import calling_frame, variable_name, warn
from engine.ir.constants import insert_constant, tensor_type_of
from engine.ir.graph import Graph, Node, Value
from engine.lang.errors import CompileError
from engine.lang.records import dataclass
from engine.lang.types import NONE, TENSOR, ClassType, TupleType, Type

NO_DEPENDENCE: Final = (
    "{} did not have observable data dependence with trace inputs; this probably indicates your program cannot be "
    "understood by the tracer."
)
_MISSES: Final = (
    "A tensor is used whose memory the in-place operator {} has modified. This might cause the trace to be incorrect: "
    "with _force_outplace a write gives a new tensor, and views of the one that was written to do not see it. Without "
    "_force_outplace they do."
)


@dataclass(eq=False, slots=True)
class TracedModule:
    """A module under trace: its type and how its owner calls it (the root has no owner)."""

    type: ClassType
    owner: TracedModule | None = None
    name: str = ""

    def path_from(self, outer: TracedModule) -> list[str] | None:
        """The names of attributes that lead from `outer` to this module; None when it is not inside."""
        path: list[str] = []
        module: TracedModule | None = self
        while module is not None and module is not outer:
            path.insert(0, module.name)
            module = module.owner
        return None if module is None else path


@dataclass(eq=False, slots=True)
class Scope:
    """The graph of one call: `call` is the node that calls it, in the graph of `outer`.

    That of a fork (`is_fork`) is the node's subgraph: it has no receiver, and its values are not known outside.
    """

    graph: Graph
    module: TracedModule | None = None
    outer: Scope | None = None
    call: Node | None = None
    method: str = "forward"
    is_fork: bool = False
    imports: dict[Value, Value] = field(default_factory=dict)
    exports: dict[Value, Value] = field(default_factory=dict)
    attributes: dict[tuple[str, ...], Value] = field(default_factory=dict)

    def is_inside(self, other: Scope) -> bool:
        scope: Scope | None = self
        while scope is not None and scope is not other:
            scope = scope.outer
        return scope is not None

    def bring_in(self, value: Value, type: Type) -> Value:
        """Pass a value of the outer graph as an argument; returns the value in this graph."""
        if value not in self.imports:
            assert self.call is not None
            self.call.add_input(value)
            self.imports[value] = self.graph.add_input(value.name, type)
        return self.imports[value]

    def bring_out(self, value: Value) -> Value:
        """Return a value of this graph as a result of its call; returns the value in the outer graph.

        Raises CompileError for a fork, whose results come from its future.
        """
        if self.is_fork:
            raise CompileError(
                NO_DEPENDENCE.format("a tensor that a fork computes and that is used outside"),
                hints=("return it from the function that is forked, and take it from wait(future)",),
            )
        if value not in self.exports:
            assert self.call is not None
            self.graph.register_output(value)
            self.exports[value] = self.call.add_output(TENSOR if value.type.is_subtype_of(TENSOR) else value.type)
        return self.exports[value]

    def attribute(self, path: tuple[str, ...]) -> Value:
        """The attribute of `self` under that path, read at the start of the graph."""
        if path in self.attributes:
            return self.attributes[path]
        assert self.module is not None
        place, value = self.graph.param_node, self.graph.inputs[0]
        type: Any = self.module.type
        for name in path:
            declared = type.attribute(name)
            assert declared is not None, f"{type} has no {name}"
            node = self.graph.create("prim::GetAttr", [value], [declared.type]).set_attr("name", name)
            node.range = None
            place, value, type = node.insert_after(place), node.output, declared.type
            value.set_debug_name(f"_{name}" if name[0].isdigit() else name)
        self.attributes[path] = value
        return value

    # -- after the recording

    def order_arguments(self) -> None:
        """Order the arguments by their first use in the graph; drop unused ones."""
        assert self.call is not None
        outside = {argument: value for value, argument in self.imports.items()}
        used = dict.fromkeys(v for node in self.graph.all_nodes() for v in node.inputs if v in outside)
        used |= dict.fromkeys(v for v in self.graph.outputs if v in outside)
        # Attributes of the outer module come before arguments of the program.
        in_order = sorted(used, key=lambda argument: outside[argument].node.kind != "prim::GetAttr")
        self.imports.clear()
        self.call.remove_inputs_from(0 if self.is_fork else 1)
        for argument in in_order:
            name = argument.name
            argument.set_debug_name("")
            moved = self.imports[outside[argument]] = self.graph.add_input(name, argument.type)
            argument.replace_all_uses_with(moved)
            self.call.add_input(outside[argument])
        for argument in outside:
            self.graph.block.erase_input(argument.offset)

    def give_one_result(self) -> None:
        """Give the call one result: None, the value, or a tuple that the caller unpacks."""
        if self.is_fork:
            return
        call, results = self.call, list(self.graph.outputs)
        assert call is not None
        if not results:
            self.graph.register_output(insert_constant(self.graph, None))
            call.add_output(NONE)
        if len(results) < 2:
            return
        made = self.graph.append("prim::TupleConstruct", results, [TupleType(tuple(r.type for r in results))])
        self.graph.return_node.remove_inputs_from(0)
        self.graph.register_output(made.output)
        types = [output.type for output in call.outputs]
        unpack = call.graph.create("prim::TupleUnpack", (), [r.type for r in results]).insert_after(call)
        call.replace_all_uses_with(unpack)
        for offset in reversed(range(len(types))):
            call.erase_output(offset)
        unpack.add_input(call.add_output(TupleType(tuple(types))))


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """`strict`: the program returns no lists and dicts.  `is_out_of_place`: writes are recorded as new tensors."""

    strict: bool = True
    is_out_of_place: bool = False


@dataclass(eq=False, slots=True)
class TracingState:
    """One trace.  `paused` while operators run that are part of an operator or call that is recorded already."""

    scope: Scope
    options: TraceOptions = field(default_factory=TraceOptions)
    paused: bool = False
    frame: FrameType | None = None
    """The program's frame that called the operator being recorded."""
    values: dict[int, tuple[Any, Value]] = field(default_factory=dict)
    attributes: dict[int, tuple[Any, TracedModule, str]] = field(default_factory=dict)
    modules: dict[int, tuple[Any, TracedModule]] = field(default_factory=dict)
    parameter_names: list[dict[int, str]] = field(default_factory=list)
    """For each running function of the standard library: id of a tensor -> the name of the parameter."""
    scopes: dict[int, Scope] = field(default_factory=dict)
    outdated: dict[int, str] = field(default_factory=dict)
    """The `id` of a tensor whose value misses a write to its memory -> the operator that wrote."""

    def __post_init__(self) -> None:
        self.scopes[id(self.scope.graph)] = self.scope

    @property
    def graph(self) -> Graph:
        return self.scope.graph

    def add_scope(self, scope: Scope) -> Scope:
        self.scopes[id(scope.graph)] = scope
        return scope

    # -- tensors and their values

    def set_value(self, thing: Any, value: Value) -> None:
        """Let the value stand for the tensor from now on."""
        self.values[id(thing)] = (thing, value)
        self.outdated.pop(id(thing), None)

    def knows(self, thing: Any) -> bool:
        return id(thing) in self.values

    def value_of(self, tensor: Tensor) -> Value:
        """The value of the tensor in the current graph; a tensor that the trace does not know becomes a constant."""
        found = self.values.get(id(tensor))
        if found is not None:
            if id(tensor) in self.outdated:
                warn(_MISSES.format(self.outdated.pop(id(tensor))))
            if not found[1].name:
                found[1].set_debug_name(self._name_of(tensor))
            return self.carry(found[1], self.scope)
        attribute = self.attributes.get(id(tensor))
        if attribute is not None:
            return self.attribute_of(self.scope, attribute)
        value = self.constant(tensor)
        self.set_value(tensor, value)
        return value

    def type_of(self, tensor: Tensor) -> Type:
        """The type of the tensor's value; that of a call's result is a plain Tensor to the caller."""
        found = self.values.get(id(tensor))
        return tensor_type_of(tensor) if found is None else found[1].type

    def carry(self, value: Value, scope: Scope, type: Type | None = None) -> Value:
        """The value in the graph of `scope`, passed through calls; `type` is its type in its own graph."""
        home, type = self.scopes[id(value.graph)], type or value.type
        if home is scope:
            return value
        if scope.is_inside(home):
            assert scope.outer is not None
            return scope.bring_in(self.carry(value, scope.outer, type), type)
        return self.carry(home.bring_out(value), scope, type)

    def attribute_of(self, scope: Scope, attribute: tuple[Any, TracedModule, str]) -> Value:
        """A parameter, buffer or submodule, read from the module whose method this is or from one around it."""
        _, owner, name = attribute
        path = None if scope.module is None else owner.path_from(scope.module)
        if path is None:
            assert scope.outer is not None, f"{name} is of no module that is traced"
            outer = self.attribute_of(scope.outer, attribute)
            return scope.bring_in(outer, outer.type)
        return scope.attribute((*path, name))

    def constant(self, tensor: Tensor) -> Value:
        """The tensor as a constant in the same memory: the program may write to it, before and after."""
        if tensor.requires_grad:
            raise CompileError(
                "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or "
                "detaching the gradient",
                self.graph.current_range,
            )
        kept = Tensor(tensor.array, storage=Storage(tensor.memory.owner))
        return insert_constant(self.graph, kept, tensor_type_of(kept))

    def _name_of(self, tensor: Tensor) -> str:
        if self.parameter_names:
            return self.parameter_names[-1].get(id(tensor), "")
        return variable_name(self.frame, tensor)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Record no operators while the context lasts."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def look_around(self) -> None:
        """Find the program's current frame."""
        self.frame = calling_frame()


_thread: Final = threading.local()


def current() -> TracingState | None:
    """The trace of this thread, unless it is paused."""
    state: TracingState | None = getattr(_thread, "state", None)
    return None if state is None or state.paused else state


def has_trace() -> bool:
    """True if this thread is traced, also while its trace is paused."""
    return getattr(_thread, "state", None) is not None


@contextmanager
def active(state: TracingState) -> Iterator[None]:
    """Make it the trace of this thread while the context lasts."""
    before = getattr(_thread, "state", None)
    _thread.state = state
    try:
        yield
    finally:
        _thread.state = before
