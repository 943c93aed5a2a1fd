"""`torch.jit.fork(f, *args)`, `torch.jit._awaitable(f, *args)`, and functions inside functions, which only these call.

In: the call.  Out: a `prim::fork` or `prim::awaitable` node that holds, as a subgraph, the call to make.  Values
from outside that the call uses are the subgraph's inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from engine.frontend.emit.arguments import actuals_of, keywords_of
from engine.frontend.emit.body import compile_body, finish
from engine.frontend.emit.emitter import Emitter
from engine.frontend.emit.environment import Environment, Variable
from engine.frontend.matching.schema_match import Actual
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import SimpleValue, SpecialForm
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Apply, Def, Param
from engine.ir.clone import copy_graph, copy_nodes
from engine.ir.graph import Block, Graph, Node, Value
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import TENSOR, AwaitType, FutureType, LaterType, Type
from engine.passes.pipeline import find_pass


class Closure(SugaredValue):
    """A function that is defined inside another: its graph, and the values of the other's variables that it reads."""

    __slots__ = ("body", "captured", "definition", "result")
    kind = "closure"

    def __init__(self, definition: Def, body: Graph, captured: list[Value], result: Type) -> None:
        self.definition, self.body, self.captured, self.result = definition, body, captured, result


def closure(e: Emitter, tree: Tree) -> None:
    """A `def` inside a function: compiled where it stands, whether or not it is forked."""
    view = Def(tree)
    e.assign(view.name, Closure(view, *_closure_body(e, view)), tree.range)


def fork(e: Emitter, view: Apply, form: SpecialForm, hint: Type | None) -> SugaredValue:
    if not view.inputs:
        raise CompileError(
            f"Expected at least one argument to {form.form}()",
            view.range,
            hints=(f"write {view.callee.range.text}(f, x)",),
        )
    callee = e.sugared(view.inputs[0])
    args = actuals_of(e, view.inputs[1:])
    kwargs = keywords_of(e, view.attributes)
    if isinstance(callee, Closure):
        if callee.definition.decl.params:
            hints = ("define it outside of this function",)
            raise CompileError(f"Cannot {form.form} lambda with parameters", view.range, hints=hints)
        body, captured, result = copy_graph(callee.body), callee.captured, callee.result
    else:
        body, captured, result = _call_body(e, callee, args, kwargs, view.range)
    node = e.node(f"prim::{form.form}", captured, [LATER[form.form](result)], view.range).set_attr("Subgraph", body)
    return SimpleValue(node.output)


LATER: Final[Mapping[str, type[LaterType]]] = {"fork": FutureType, "awaitable": AwaitType}
"""The forms whose call is made elsewhere or later -> the type that they give of its result."""


def _call_body(
    e: Emitter, callee: SugaredValue, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange
) -> tuple[Graph, list[Value], Type]:
    """The call as a graph, the values that it takes from outside, and the type of its result."""
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
    _pool(body)
    _pool(body)
    return body, captured, values[result].type


def _pool(body: Graph) -> None:
    """Move constants to the start.  Once puts them in reverse order; done twice, as in PyTorch, in order."""
    find_pass("constant_pooling")(body)


def _captured(block: Block) -> list[Value]:
    """Values from outside, in the order they are first used."""
    inside: set[Value] = set()

    def visit(nodes: Iterable[Node]) -> None:
        for node in nodes:
            inside.update(node.outputs)
            for inner in node.blocks:
                inside.update(inner.inputs)
                visit(inner.nodes())

    visit(block.nodes())
    return [value for value in _used(block) if value not in inside]


def _used(block: Block) -> dict[Value, None]:
    """Everything that the block's nodes and outputs use, in the order of the first use."""
    used: dict[Value, None] = {}

    def visit(nodes: Iterable[Node]) -> None:
        for node in nodes:
            used.update(dict.fromkeys(node.inputs))
            for inner in node.blocks:
                visit(inner.nodes())
                used.update(dict.fromkeys(inner.outputs))

    visit(block.nodes())
    used.update(dict.fromkeys(block.outputs))
    return used


def _closure_body(e: Emitter, definition: Def) -> tuple[Graph, list[Value], Type]:
    """The closure's body as a graph whose inputs are its parameters and the variables it reads."""
    outside = _Outside(e, e.environment)
    inner = Emitter(e.unit, e.written, e.library, resolver=outside, rules=e.rules, around=outside.literal)
    for param in definition.decl.params:
        _define_parameter(inner, param, e)
    returns = definition.decl.returns
    inner.declared = None if returns is None else e.types.read(returns)
    compile_body(inner, definition.body)
    result = finish(inner, definition.range, outside.hand_in)
    _pool(inner.graph)
    return inner.graph, outside.captured, result


def _define_parameter(inner: Emitter, param: Param, e: Emitter) -> None:
    """Define a parameter as a variable of the closure; a variable of that name around it must have its type."""
    if param.default is not None and param.annotation is None:
        text = "Keyword arguments with defaults need to be type-hinted (TorchScript C++ frontend)"
        raise CompileError(text, param.range, hints=(f"write `{param.name}: int = …`",))
    type = TENSOR if param.annotation is None else e.types.read(param.annotation)
    around = e.environment.find(param.name)
    if isinstance(around, Variable) and not type.is_subtype_of(around.type):
        text = (
            f"Variable '{param.name}' previously had type {around.type.annotation_str} but is now being assigned to a "
            f"value of type {type.annotation_str}"
        )
        raise CompileError(text, param.range, hints=("give the parameter another name",))
    inner.store(param.name, inner.graph.add_input(param.name, type), type, param.range)


class _Outside:
    """The names around a closure: a variable becomes an input of the closure's graph."""

    def __init__(self, e: Emitter, environment: Environment) -> None:
        self.e, self.environment = e, environment
        self.captured: list[Value] = []
        self._inputs: dict[str, Value] = {}
        self._literals: dict[Value, Value] = {}

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        self.e.check_known(name, range)
        if name in self._inputs:
            return SimpleValue(self._inputs[name])
        found = self.environment.find(name) or self.e.resolver.resolve_value(self.e, name, range)
        if isinstance(found, Variable):
            found = SimpleValue(self.e.load(name, found, range))
        if not isinstance(found, SimpleValue):
            return found
        self.captured.append(found.value)
        self._inputs[name] = b.graph.add_input(name, found.type)
        return SimpleValue(self._inputs[name])

    def literal(self, inner: Value, value: float | complex, range: SourceRange) -> None:
        """Put a number at the start of the outer function; it is captured like a variable."""
        self._literals[inner] = self.e.literal(value, range)

    def hand_in(self, graph: Graph) -> None:
        """Make inputs of the literals, and order the captured values by their first use."""
        parameters = len(graph.inputs) - len(self.captured)
        outer = dict(zip(graph.inputs[parameters:], self.captured, strict=True)) | self._literals
        used = [value for value in _used(graph.block) if value in outer]
        for inner in used:
            inner.replace_all_uses_with(graph.add_input(type=inner.type).copy_metadata(inner))
        for inner in outer:
            if inner in self._literals:
                inner.node.destroy()
            else:
                graph.block.erase_input(graph.inputs.index(inner))
        self.captured = [outer[inner] for inner in used]

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return self.e.resolver.resolve_type(name, range)

    def names(self) -> Iterable[str]:
        return [*self.environment.names(), *self.e.resolver.names()]
