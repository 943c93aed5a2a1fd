"""`torch.jit.Graph`, `Node`, `Value`, `Block`, `Use`: graphs under the names that scripts for PyTorch use.

In: graphs of the engine.  Out: thin objects over them, see `engine.torch.compiled.facade`; methods are written
out only where the engine has another name, or none.  Changes go to the graph itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from engine.aten.dispatch.table import names as operator_names
from engine.aten.dispatch.table import overloads
from engine.executor.conversion.to_python import to_python
from engine.frontend.matching.schema_match import Actual, Call, match_schemas
from engine.ir import clone, constants, graph, order
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import ATTRIBUTE_KINDS
from engine.ir.match import must_be_none
from engine.ir.ops import is_nondeterministic, schema_of
from engine.ir.parser import parse_ir as parse_graph
from engine.ir.printer import graph_text
from engine.ir.unit import Function
from engine.ir.verify import verify
from engine.lang.errors import ArgumentError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.schema_parser import parse_schema
from engine.lang.types import TensorType, TupleType
from engine.passes.pipeline import run_pass
from engine.torch.compiled.facade import FACADES, CallableList, Facade, unwrap, wrap


def parse_ir(text: str, parse_tensor_constants: bool = False) -> Graph:
    """The graph parsed from its text, with zeros for tensors that it does not show on request.  Raises IRError."""
    return Graph(parse_graph(text, with_unshown_tensors=parse_tensor_constants))


class _NodeSearch(Facade):
    """The search for nodes that graphs and blocks share."""

    __slots__ = ()

    def nodes(self) -> Iterator[Node]:
        return map(Node, self._ir.nodes())

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """The first node of that kind, or None; with `recurse` in nested blocks, too."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        return [Node(node) for node in self._walk(recurse) if node.kind == kind]

    def _walk(self, recurse: bool) -> Iterator[graph.Node]:
        for block in self._blocks():
            yield from order.walk(block) if recurse else block.nodes()

    def _blocks(self) -> list[graph.Block]:
        return [self._ir]


@dataclass(slots=True)
class _Printing:
    source_ranges: bool = True
    inlined: bool = False
    """True if the graphs of functions are shown with what they call."""
    inlined_graphs: WeakKeyDictionary[Function, graph.Graph] = field(default_factory=WeakKeyDictionary)
    """Those that were shown so: passes that a program runs on one change what it sees next."""


PRINTING: Final = _Printing()


def inline_with_forks(ir: graph.Graph) -> None:
    """Inline the calls, those in the graphs of forks too; these become copies, which are the node's alone."""
    run_pass("inline", ir)
    for node in ir.find_all_nodes("prim::fork"):
        body = clone.copy_graph(node.attr("Subgraph"))
        inline_with_forks(body)
        node.set_attr("Subgraph", body)


_GRAPHS: Final[WeakValueDictionary[int, Graph]] = WeakValueDictionary()


class Graph(_NodeSearch):
    """The body of a function; the same object for the same body as long as somebody holds it."""

    __slots__ = ("__weakref__",)
    _ir: graph.Graph

    def __new__(cls, ir: graph.Graph | None = None) -> Graph:
        known = _GRAPHS.get(id(ir))
        return super().__new__(cls) if known is None else known

    def __init__(self, ir: graph.Graph | None = None) -> None:
        super().__init__(graph.Graph() if ir is None else ir)
        _GRAPHS[id(self._ir)] = self

    def _blocks(self) -> list[graph.Block]:
        return [self._ir.block]

    def copy(self) -> Graph:
        return Graph(clone.copy_graph(self._ir))

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        return self.copy()

    def __str__(self) -> Any:
        return self.str(PRINTING.source_ranges)

    __repr__ = __str__

    def str(self, print_source_ranges: bool = True) -> Any:
        """The graph as text, with the source lines of nodes unless `print_source_ranges` is False."""
        return graph_text(self._ir, source_comments=print_source_ranges)

    @staticmethod
    def set_global_print_source_ranges(enabled: bool = True) -> bool:
        """Say whether `print(graph)` shows the source lines of nodes; whether it did before."""
        before, PRINTING.source_ranges = PRINTING.source_ranges, enabled
        return before

    # -- building

    def create(self, kind: Any, *rest: Any) -> Node:
        """`create(kind)`, `create(kind, outputs)`, `create(kind, inputs, outputs)`: a node in no block yet."""
        inputs: Sequence[Any] = next((each for each in rest if not isinstance(each, int)), [])
        if any(each is None for each in inputs):
            raise ValueError("cannot pass None in inputs")
        outputs = next((each for each in rest if isinstance(each, int)), 1)
        return Node(self._ir.create(str(kind), unwrap(list(inputs)), int(outputs)))

    def createClone(self, node: Node, value_map: Callable[[Value], Value]) -> Node:
        """A copy of a node of any graph, in no block yet; `value_map` maps its inputs to values of this graph."""
        outside = {value: unwrap(value_map(Value(value))) for value in node._ir.inputs}
        return Node(clone.copy_node(node._ir, self._ir, outside))

    def insert(self, kind: Any, args: Sequence[Any] = (), kwargs: dict[Any, Any] | None = None) -> Any:
        """Insert a call of the operator at the insert point, with constants for plain Python arguments; its result."""
        named = [Actual(self._as_value(each), name=name) for name, each in (kwargs or {}).items()]
        call = Call([Actual(self._as_value(each)) for each in args], named)
        schemas = [op.schema for op in overloads(kind)]
        if not schemas:
            raise ArgumentError(f"there is no operator '{kind}'", hints=did_you_mean(str(kind), operator_names()))
        matched = match_schemas(self._ir, schemas, call)[1]
        outputs = CallableList(map(Value, self._ir.append(str(kind), matched.inputs, matched.return_types).outputs))
        return outputs[0] if len(outputs) == 1 else outputs

    def _as_value(self, given: Any) -> graph.Value:
        value = unwrap(given)
        return value if isinstance(value, graph.Value) else constants.insert_constant(self._ir, value)

    def insertConstant(self, value: Any) -> Value:
        return Value(constants.insert_constant(self._ir, value))

    def insertGraph(self, callee: Graph, inputs: Sequence[Value]) -> CallableList:
        """Insert the nodes of the other graph at the insert point; the values of its outputs."""
        return CallableList(map(Value, clone.inline_graph(self._ir, callee._ir, unwrap(list(inputs)))))

    def appendNode(self, node: Node) -> Node:
        return Node(self._ir.block.append(node._ir))

    def prependNode(self, node: Node) -> Node:
        return Node(self._ir.block.prepend(node._ir))

    # -- inputs and outputs

    def addInput(self, name: Any = "") -> Value:
        return Value(self._ir.add_input(str(name)))

    def eraseInput(self, offset: int) -> None:
        self._ir.block.erase_input(offset)

    def eraseOutput(self, offset: int) -> None:
        self._ir.block.erase_output(offset)

    def permuteInputs(self, new_order: Sequence[int]) -> None:
        """Reorder the inputs: `new_order` has their present offsets."""
        inputs = self._ir.inputs
        if sorted(new_order) != list(range(len(inputs))):
            raise ArgumentError(f"{list(new_order)} is no order of {len(inputs)} inputs")
        inputs[:] = [inputs[at] for at in new_order]
        for offset, value in enumerate(inputs):
            value.offset = offset

    def makeMultiOutputIntoTuple(self) -> None:
        """Replace several outputs by one tuple of them."""
        outputs = list(self._ir.outputs)
        if len(outputs) == 1:
            return
        made = self._ir.create("prim::TupleConstruct", outputs, [TupleType(tuple(v.type for v in outputs))])
        self._ir.block.append(made)
        for offset in reversed(range(len(outputs))):
            self._ir.block.erase_output(offset)
        self._ir.register_output(made.output)

    # -- places

    def insertPoint(self) -> Node:
        return Node(self._ir.insert_point)

    def setInsertPoint(self, place: Node | Block) -> None:
        """New nodes go before that node, or at the end of that block."""
        at = unwrap(place)
        self._ir.insert_point = at.return_node if isinstance(at, graph.Block) else at

    @contextmanager
    def insert_point_guard(self, place: Node | Block) -> Iterator[None]:
        """Set the insert point for the duration of a `with` block: before that node, or at the end of that block."""
        with self._ir.inserting_at(unwrap(place)):
            yield

    # -- checks

    def lint(self) -> None:
        """Check the graph's invariants.  Raises AssertionError."""
        verify(self._ir)

    def alias_db(self, isFrozen: bool = False, descend_function_calls: bool = False) -> AliasDbFacade:
        """The alias relations of the values; with `descend_function_calls` also through the functions that it calls.

        `isFrozen` changes nothing: attributes of modules are anything of their types.
        """
        return AliasDbFacade(AliasDb(self._ir, into_calls=descend_function_calls))

    def dump_alias_db(self) -> None:
        print(AliasDb(self._ir))


class Block(_NodeSearch):
    """Nodes in the order they run."""

    __slots__ = ()
    _ir: graph.Block

    def __repr__(self) -> str:
        return f"<Block of {sum(1 for _ in self._ir.nodes())} nodes>"

    __str__ = __repr__

    def addInputToBlock(self) -> Value:
        return Value(self._ir.add_input())

    def addNode(self, kind: Any, inputs: Sequence[Value]) -> Node:
        """Append a node with one output to the block."""
        return Node(self._ir.append(self._ir.graph.create(str(kind), unwrap(list(inputs)))))

    def owningNode(self) -> Node | None:
        return None if self._ir.owner is None else Node(self._ir.owner)


class Node(_NodeSearch):
    """One operation.  `node.i(name)`, `node.i_(name, value)` and so on read and write attributes."""

    __slots__ = ()
    _ir: graph.Node

    def _blocks(self) -> list[graph.Block]:
        return self._ir.blocks

    def prev(self) -> Node:
        return Node(self._ir.prev)

    def next(self) -> Node:
        return Node(self._ir.next)

    # -- inputs and outputs

    def inputsAt(self, offset: int) -> Value:
        return Value(self._ir.inputs[offset])

    def outputsAt(self, offset: int) -> Value:
        return Value(self._ir.outputs[offset])

    def inputsSize(self) -> int:
        return len(self._ir.inputs)

    def outputsSize(self) -> int:
        return len(self._ir.outputs)

    def hasMultipleOutputs(self) -> bool:
        return len(self._ir.outputs) > 1

    def hasUses(self) -> bool:
        return any(value.has_uses for value in self._ir.outputs)

    def namedInput(self, name: str) -> Value:
        """The input for the argument of that name.  Raises ArgumentError."""
        schema = schema_of(self._ir)
        offset = schema.index_of(name) if schema else None
        if offset is None:
            raise ArgumentError(f"{self._ir.kind} has no argument '{name}'")
        return Value(self._ir.inputs[offset])

    def removeAllInputs(self) -> None:
        self._ir.remove_inputs_from(0)

    # -- attributes

    def attributeNames(self) -> list[str]:
        return list(self._ir.attributes)

    def hasAttributes(self) -> bool:
        return bool(self._ir.attributes)

    def kindOf(self, name: str) -> str:
        return self._ir.attributes[name].kind

    def removeAttribute(self, name: str) -> Node:
        self._ir.remove_attr(name)
        return self

    def copyMetadata(self, other: Node) -> Node:
        """Copy the source range of another node."""
        self._ir.range, self._ir.inlined_from = other._ir.range, other._ir.inlined_from
        return self

    # -- what it is

    def schema(self) -> str:
        """The operator's schema as text, or "(no schema)"."""
        schema = schema_of(self._ir)
        return "(no schema)" if schema is None else str(schema)

    def matches(self, schema: str) -> bool:
        """True if the node is a call of the operator with that schema."""
        mine, wanted = schema_of(self._ir), parse_schema(schema)
        return mine is not None and str(mine) == str(wanted)

    def isNondeterministic(self) -> bool:
        return is_nondeterministic(self._ir)

    def mustBeNone(self) -> bool:
        return len(self._ir.outputs) == 1 and must_be_none(self._ir.output)

    def owningBlock(self) -> Block:
        return Block(self._ir.block)

    def sourceRange(self) -> str:
        """The node's source range as text, with its line."""
        range = self._ir.range.original() if self._ir.range else None
        return f"{range.filename}:{range.line}:{range.column}: {range.text}" if range else ""

    def scopeName(self) -> str:
        """The empty string: scopes are not recorded."""
        return ""

    def getModuleHierarchy(self) -> str:
        """The chain of inlined calls that lead to the node."""
        return "".join(f"{call.function}." for call in self._ir.inlined_from).rstrip(".")


class Value(Facade):
    """A value in a graph: an output of a node, or an input of a block."""

    __slots__ = ()
    _ir: graph.Value

    def __str__(self) -> str:
        return f"{self._ir.debug_name} defined in ({self._ir.node})"

    __repr__ = __str__

    def uses(self) -> list[Use]:
        return [Use(each) for each in self._ir.uses]

    def setTypeAs(self, other: Value) -> Value:
        self._ir.set_type(other._ir.type)
        return self

    def inferTypeFrom(self, example: Any) -> None:
        """Set the type from an example value."""
        self._ir.set_type(constants.type_of(example))

    def isCompleteTensor(self) -> bool:
        """True if sizes, strides, dtype and device are all known."""
        type = self._ir.type
        if not isinstance(type, TensorType) or None in (type.dtype, type.device, type.sizes, type.strides):
            return False
        return None not in (*(type.sizes or ()), *(type.strides or ()))

    def requires_grad(self) -> bool:
        """True for a tensor unless it is known not to require gradients."""
        return isinstance(self._ir.type, TensorType) and self._ir.type.requires_grad is not False

    def requiresGrad(self) -> bool | None:
        """True or False where it is known of the tensor, else None."""
        return self._ir.type.requires_grad if isinstance(self._ir.type, TensorType) else None

    def toIValue(self) -> Any:
        """The Python value of a constant; None for any other value."""
        found = constants.constant_value(self._ir)
        if found is constants.NOT_CONSTANT:
            return None
        convert = to_python(self._ir.type)
        return convert(found) if convert else found

    def replaceAllUsesAfterNodeWith(self, node: Node, other: Value) -> None:
        self._ir.replace_all_uses_after(node._ir, other._ir)


class Use(Facade):
    """One use of a value: it is input number `use.offset` of the node `use.user`."""

    __slots__ = ()
    _ir: graph.Use

    def isAfter(self, other: Use) -> bool:
        return self._ir.user.is_after(other._ir.user)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Use) and self._ir == other._ir

    def __hash__(self) -> int:
        return hash(self._ir)


class AliasDbFacade(Facade):
    """The alias database (`AliasDb`) under PyTorch's names."""

    __slots__ = ()

    def has_writers(self, what: Node | Value) -> bool:
        found: bool = self._ir.has_writers(unwrap(what))
        return found

    def to_graphviz_str(self) -> str:
        return str(self._ir)


FACADES.update({
    graph.Graph: Graph, graph.Node: Node, graph.Value: Value, graph.Block: Block, graph.Use: Use,
    AliasDb: AliasDbFacade,
})  # fmt: skip


# -- attributes by kind: n.i("value"), n.i_("value", 1)

_ALIASES: Final = {"z": "t", "zs": "ts"}


def _attribute_reader(kind: str) -> Callable[[Node, str], Any]:
    def read(self: Node, name: str) -> Any:
        if name not in self._ir.attributes:
            raise ArgumentError(f"required keyword attribute '{name}' is undefined")
        value = self._ir.attr(name)
        return wrap(value) if kind in ("g", "gs", "ty", "tys") else value

    read.__doc__ = f"The attribute of kind '{kind}'.  Raises ArgumentError for an unknown name."
    return read


def _attribute_writer(kind: str) -> Callable[[Node, str, Any], Node]:
    def write(self: Node, name: str, value: Any) -> Node:
        plain = unwrap(value)
        self._ir.set_attr(name, list(plain) if kind != "is" and isinstance(plain, tuple) else plain, kind)
        return self

    write.__doc__ = f"Set an attribute of kind '{kind}', and return the node."
    return write


for _name in (*ATTRIBUTE_KINDS, *_ALIASES):
    setattr(Node, _name, _attribute_reader(_ALIASES.get(_name, _name)))
    setattr(Node, f"{_name}_", _attribute_writer(_ALIASES.get(_name, _name)))
