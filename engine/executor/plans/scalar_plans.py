"""Plans of numbers, lists and dicts that run as machine code.

In: a plan's graph and its Python function.  Out: the plan's function at each time: the Python function until compiling
pays, then one that calls the kernel.  Where the kernel fails, the node's own operator raises the error; what the kernel
leaves, the Python function does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.executor.bytecode.operations import operation_of
from engine.executor.bytecode.traceback import CallSite, execution_error
from engine.executor.plans import verifying
from engine.executor.plans.tiers import FOLLOWERS, Run, Tiered
from engine.fuser.backend import code, tiering
from engine.ir.graph import Graph, Node
from engine.lang.deferred import deferred
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.fuser.backend import cpython_abi, machine
    from engine.fuser.scalars import from_scalar, scalar_call, scalar_writer
    from engine.fuser.stubs import binding as bindings
else:
    cpython_abi = deferred("engine.fuser.backend.cpython_abi")
    machine = deferred("engine.fuser.backend.machine")
    from_scalar = deferred("engine.fuser.scalars.from_scalar")
    scalar_call = deferred("engine.fuser.scalars.scalar_call")
    scalar_writer = deferred("engine.fuser.scalars.scalar_writer")
    bindings = deferred("engine.fuser.stubs.binding")


def is_scalar(graph: Graph) -> bool:
    """True if the graph may be worth a kernel: it loops, and takes numbers, lists and dicts."""
    return graph.find_node("prim::Loop") is not None and all(
        scalar_writer.machine_type(value.type) for value in graph.inputs
    )


@dataclass(eq=False, slots=True, weakref_slot=True)
class ScalarPlan(Tiered):
    """The state of one plan on its way to machine code.  `reason` says why there is no kernel."""

    name: str
    graph: Graph
    run: Run
    entry: Callable[[], Run]
    enter_by: Callable[[Run], None]
    doubt: Callable[[Callable[[], object]], None] = lambda remove: None
    """Has the plan compared with the interpreter, and what is of its code on disk removed where it differs."""
    offer: Callable[[Callable[[Run], Run] | None], None] = lambda bind: None
    """Takes a way to the kernel of a plan that is given numbers alone: of the whole call of the function, a builtin
    that does it by the kernel, where that takes the arguments and does not fail; None where there is no such way."""
    program: from_scalar.ScalarProgram | None = None
    binding: bindings.Binding | None = None
    native: Run | None = None
    reason: str = ""

    prepares = False

    def __post_init__(self) -> None:
        FOLLOWERS.add(self)

    @property
    def why(self) -> str:
        """The reason why the plan has no groups of nodes."""
        if self.native is not None:
            return "it is one kernel of numbers, lists and dicts"
        return self.reason or "it has not run for long enough"

    @property
    def mode(self) -> tiering.Mode:
        """The compile mode; "off" where there is no kernel to be had."""
        return "off" if self.reason else tiering.mode()

    @property
    def is_made(self) -> bool:
        return self.native is not None

    def follow_mode(self) -> None:
        """Enter the other tier at once: all functions are there."""
        self.start()

    def run_plainly(self) -> None:
        self.offer(None)
        self.enter_by(self.run)

    def run_by(self, wrapped: Callable[[Run], Run]) -> None:
        self.enter_by(wrapped(self.run))

    def run_made(self) -> None:
        assert self.native is not None
        assert self.binding is not None
        self.enter_by(self.native)
        takes_numbers = all(isinstance(each, bindings.NumberArgument) for each in self.binding.arguments)
        if takes_numbers and not verifying.is_wanted():
            self.offer(self._directly)

    def make(self) -> None:
        """Make the kernel, or say why there is none."""
        try:
            self._compile()
        except (scalar_writer.Unsupported, machine.MachineError, cpython_abi.AbiError) as why:
            self.reason = str(why)

    def _compile(self) -> None:
        self.program = from_scalar.lower(self.graph, self.name)
        self.binding = scalar_call.binding_of(self.program)
        failure = _failure(self.name, self.program)
        self.native = scalar_call.function_of(self.name, self.program, self.binding, self.run, failure)
        for stub in self.binding.stub:
            if stub.code.is_kept:
                self.doubt(partial(code.forget, stub.key))

    def _directly(self, whole_call: Run) -> Run:
        assert self.program is not None
        assert self.binding is not None
        return scalar_call.function_of(self.name, self.program, self.binding, whole_call, lambda node, inputs: None)


def _failure(name: str, program: from_scalar.ScalarProgram) -> scalar_call.Failure:
    """The errors of a plan of this name; none where the kernel may have changed what a node was given."""

    def failure(node: Node, inputs: list[Any] | None) -> Exception | None:
        if inputs is None or program.writes:
            return None
        try:
            operation_of(node)(*inputs)
        except Exception as error:
            found = execution_error(error, [CallSite(name, node)])
            found.__cause__ = error
            return found
        return None

    return failure
