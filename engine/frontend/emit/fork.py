"""`torch.jit.fork(f, *args)`, and functions defined inside functions, which only fork can call.

In: the call.  Out: a `prim::fork` node that holds, as a subgraph of its own, the call to run beside the
rest.  Values from outside that the call uses are the subgraph's inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.frontend.builder import Builder
from engine.frontend.emit.arguments import actuals_of, keywords_of
from engine.frontend.emit.emitter import Emitter
from engine.frontend.emit.recovery import compile_body
from engine.frontend.environment import Environment, Variable
from engine.frontend.lower import finish
from engine.frontend.schema_match import Actual
from engine.frontend.sugar import SugaredValue
from engine.frontend.tree import Tree
from engine.frontend.values import SimpleValue, SpecialForm
from engine.frontend.views import Apply, Def
from engine.ir.clone import copy_nodes
from engine.ir.graph import Block, Graph, Node, Value
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import FutureType, Type


class Closure(SugaredValue):
    """A function without parameters, defined inside another; it sees the other's variables."""

    __slots__ = ("definition", "environment")
    kind = "closure"

    def __init__(self, definition: Def, environment: Environment) -> None:
        self.definition, self.environment = definition, environment


def closure(e: Emitter, tree: Tree) -> None:
    """A `def` inside a function."""
    view = Def(tree)
    if view.decl.params:
        hints = ("define it outside of this function",)
        raise CompileError("functions defined inside functions cannot have parameters", view.decl.range, hints=hints)
    e.assign(view.name, Closure(view, e.environment), tree.range)


def fork(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    if not view.inputs:
        raise CompileError(
            "Expected at least one argument to fork()", view.range, hints=("write torch.jit.fork(f, x)",)
        )
    callee = e.sugared(view.inputs[0])
    args = actuals_of(e, view.inputs[1:])
    kwargs = keywords_of(e, view.attributes)
    if isinstance(callee, Closure):
        body, captured, result = _closure_body(e, callee)
    else:
        body, captured, result = _call_body(e, callee, args, kwargs, view.range)
    node = e.node("prim::fork", captured, [FutureType(result)], view.range).set_attr("Subgraph", body)
    return SimpleValue(node.output)


def _call_body(
    e: Emitter, callee: SugaredValue, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange
) -> tuple[Graph, list[Value], Type]:
    """The call as a graph; the values that it takes from outside; the type it gives."""
    scratch = e.node("prim::fork", [], (), range)
    block = scratch.add_block()
    with e.graph.inserting_at(block):
        result = callee.call(e, args, kwargs, range).as_value(e, range)
    body = Graph()
    captured = _captured(block)
    values = {value: body.add_input(type=value.type).copy_metadata(value) for value in captured}
    copy_nodes(block.nodes(), body.block, values)
    body.register_output(values[result])
    scratch.destroy()
    return body, captured, values[result].type


def _captured(block: Block) -> list[Value]:
    """Values from outside, in the order they are first used."""
    inside: set[Value] = set()
    captured: dict[Value, None] = {}

    def visit(nodes: Iterable[Node]) -> None:
        for node in nodes:
            captured.update(dict.fromkeys(value for value in node.inputs if value not in inside))
            inside.update(node.outputs)
            for inner in node.blocks:
                inside.update(inner.inputs)
                visit(inner.nodes())
                captured.update(dict.fromkeys(value for value in inner.outputs if value not in inside))

    visit(block.nodes())
    return list(captured)


def _closure_body(e: Emitter, callee: Closure) -> tuple[Graph, list[Value], Type]:
    """The closure's body as a graph whose inputs are the variables it reads."""
    outside = _Outside(e, callee.environment)
    inner = Emitter(e.unit, e.written, e.library, resolver=outside, rules=e.rules)
    returns = callee.definition.decl.returns
    inner.declared = None if returns is None else e.types.read(returns)
    compile_body(inner, callee.definition.body)
    result = finish(inner, callee.definition.range)
    return inner.graph, outside.captured, result


class _Outside:
    """The names around a closure: a variable becomes an input of the closure's graph."""

    def __init__(self, e: Emitter, environment: Environment) -> None:
        self.e, self.environment = e, environment
        self.captured: list[Value] = []
        self._inputs: dict[str, Value] = {}

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        self.e.check_known(name, range)
        found = self.environment.find(name)
        if found is None:
            return self.e.resolver.resolve_value(b, name, range)
        if not isinstance(found, Variable):
            return found
        if name not in self._inputs:
            self.captured.append(self.e.load(name, found, range))
            self._inputs[name] = b.graph.add_input(name, found.type)
        return SimpleValue(self._inputs[name])

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return self.e.resolver.resolve_type(name, range)

    def names(self) -> Iterable[str]:
        return [*self.environment.names(), *self.e.resolver.names()]
