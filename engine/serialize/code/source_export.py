"""The Python printer: graphs as Python that the compiler reads back into the same graphs.

In: functions with their graphs.  Out: the text PyTorch writes for them, in archives and as `fn.code`:

    graph(%x.1 : Tensor):                           def f(x: Tensor) -> Tensor:
      %2 : int = prim::Constant[value=1]()            y = torch.add(torch.mul(x, x), 1)
      %3 : Tensor = aten::mul(%x.1, %x.1)       ->    return y
      %y.1 : Tensor = aten::add(%3, %2, %2)
      return (%y.1)

One `SourcePrinter` writes everything that goes into one record; what its code needs (classes, functions)
it tells through `depend`, and constants that text cannot hold go into the shared table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final

from engine.ir.constants import constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.ops import op_of
from engine.ir.unit import Function
from engine.lang.errors import ArchiveError, MissingOperatorError
from engine.lang.records import dataclass
from engine.lang.schema import Argument
from engine.lang.source import SourceRange
from engine.lang.types import NUMBERS, FunctionType, OptionalType, Type, UnionType, walk
from engine.serialize.code.call_arguments import whole_default
from engine.serialize.code.expressions import write_expression, write_list
from engine.serialize.code.inline_scan import inlined_nodes
from engine.serialize.code.python_text import (
    FUNCTIONS,
    RESERVED,
    ClassName,
    ConstantTable,
    ConstantWriter,
    annotation,
    identifier_from,
    name_text,
    qualname_of,
)  # fmt: skip
from engine.serialize.code.tagged_text import TaggedText
from engine.serialize.upgrade.versions import version_of

LONG_LINE: Final = 40
"""An inlined expression that reaches this column gets a line of its own."""
_FOREVER: Final = (1 << 63) - 1

Depend = Callable[[Type], None]


def function_code(function: Function) -> str:
    """The text of one function or method (whose `self` shows no type).  Raises CompileError if it does not compile."""
    printer = SourcePrinter(lambda _type, name: name, ConstantTable())
    printer.function(function, typed_self=not function.is_method)
    return str(printer.body)


def _kept_text(function: Function) -> Any:
    """The archive's own text, kept for a function that does not compile here; else None.  Raises CompileError."""
    try:
        function.ensure_defined()
    except MissingOperatorError:
        if function.kept is None:
            raise
    return function.kept


@dataclass(slots=True, eq=False)
class SourcePrinter:
    """Writes the text of one record; `version` is the least archive version that may hold its operators."""

    class_name: ClassName
    table: ConstantTable
    depend: Depend = lambda _type: None
    function_namer: Callable[[FunctionType], str] = lambda type: type.function.qualname  # type: ignore[attr-defined]
    level: int = 0
    version: int = 0
    ranges: list[SourceRange | None] = field(default_factory=lambda: [None])
    body: TaggedText = field(init=False)
    _counters: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _used_names: set[str] = field(default_factory=set)
    _texts: dict[Value, str | TaggedText] = field(default_factory=dict)
    _inlined: set[Node] = field(default_factory=set)
    _split: dict[Node, int] = field(default_factory=dict)
    _annotated: set[Value] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.body = TaggedText(self.ranges)

    # -- functions

    def function(self, function: Function, *, name: str = "", typed_self: bool = True) -> None:
        """Write a function or method, by its own name or that given.

        `typed_self` says whether the first parameter shows its type.
        """
        kept = _kept_text(function)
        if kept is not None:
            kept.write(self)
            return
        graph, schema = function.graph, function.schema
        self._used_names.clear()
        with self._at(graph.param_node):
            self.line(f"def {name_text(name or function.name, 'a method')}(")
            required = max((i for i, each in enumerate(schema.arguments) if not _has_written_default(each)), default=-1)
            for index, (argument, value) in enumerate(zip(schema.arguments, graph.inputs, strict=True)):
                self._parameter(index, argument, value, typed_self, with_default=index > required)
            returned = schema.returns[0].type
            self.need(returned)
            self.body.write(f") -> {self.annotation(returned)}:\n")
            self._graph_body(graph)

    def _parameter(self, index: int, argument: Argument, value: Value, typed_self: bool, *, with_default: bool) -> None:
        """Write a parameter.  One before another that has to be given has no default: calls write both by position."""
        self.need(argument.type)
        name = self._new_name(argument.name)
        shown = f"{name}: {self.annotation(argument.type)}" if index or typed_self else name
        self.body.write(",\n    " if index else "", shown)
        if with_default:
            self.body.write("=", self.constant(whole_default(argument), argument.type))
        self._texts[value] = name

    def _graph_body(self, graph: Graph) -> None:
        constants: dict[Node, None] = {}
        _constants_of(graph.block, constants)
        inlined_nodes(graph.block, self._inlined)
        with self.indented():
            for node in constants:
                with self._at(node):
                    self._expression_statement(node)
            self._block(graph.block, bool(graph.outputs))
            self._return(graph.return_node)

    # -- text

    def line(self, *pieces: str | TaggedText) -> None:
        """Begin a line."""
        self.body.write("  " * self.level, *pieces)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.level += 1
        yield
        self.level -= 1

    @contextmanager
    def _at(self, node: Node) -> Iterator[None]:
        """Mark the text written inside this block with the node's source range.

        Inlined lists, tuples, dicts and casts get no range: a reader of the code would take it for that of
        the whole line, and save that.  Nor do constants that are no numbers: one of them stands for all that are equal,
        written out or defaults, and which of them that is depends on where the lines begin.
        """
        self.ranges.append(self._place(node))
        yield
        self.ranges.pop()

    def _place(self, node: Node) -> SourceRange | None:
        is_packed = node.kind in _PACKED and node in self._inlined
        is_shared = node.kind == "prim::Constant" and node.output.type not in NUMBERS
        return None if is_packed or is_shared else node.range

    def use(self, value: Value) -> str | TaggedText:
        """The text by which later text refers to the value."""
        assert value in self._texts, f"{value!r} is used before it is written"
        return self._texts[value]

    def annotation(self, type: Type) -> str:
        return annotation(type, self.class_name)

    def constant(self, value: Any, type: Type) -> str:
        return ConstantWriter(self.class_name, self.table).text(value, type)

    def function_name(self, type: FunctionType) -> str:
        self.depend(type)
        return self.function_namer(type)

    def need(self, type: Type) -> None:
        for part in walk(type):
            if qualname_of(part) is not None:
                self.depend(part)

    # -- names

    def _new_name(self, wanted: str) -> str:
        """A name nothing in this function has; the counters go on from function to function."""
        name = wanted
        while name in self._used_names or name in RESERVED:
            count = self._counters[name]
            self._counters[name] += 1
            name = f"{wanted}{count}"
        self._used_names.add(name)
        return name

    def _name(self, values: Sequence[Value]) -> None:
        for value in values:
            name = identifier_from(_base_name(value)) if value.has_debug_name else "_"
            self._texts[value] = self._new_name(f"{name}_" if name in FUNCTIONS else name)

    # -- statements

    def _block(self, block: Block, has_other_statements: bool) -> None:
        if not has_other_statements and block.is_empty():
            self.line("pass\n")
        for node in block.nodes():
            self._node(node)

    def _node(self, node: Node) -> None:
        with self._at(node):
            for value in (*node.inputs, *node.outputs):
                self.need(value.type)
            for attribute in node.attributes.values():
                for type in {"ty": [attribute.value], "tys": attribute.value}.get(attribute.kind, ()):
                    self.need(type)
            if node.kind != "prim::Constant":
                _STATEMENTS.get(node.kind, SourcePrinter._expression_statement)(self, node)

    def _return(self, node: Node) -> None:
        if node.inputs:
            with self._at(node):
                self.line("return ")
                write_list(self, self.body, node.inputs, "", "\n")

    def _expression_statement(self, node: Node) -> None:
        """Assign the node's expression, or keep it for the one expression that uses it."""
        self._count_version(node)
        text = TaggedText(self.ranges)
        write_expression(self, text, node)
        is_long = text.size + self.level * 2 >= LONG_LINE
        if node not in self._inlined or (node.kind == "prim::Constant" and is_long):
            self._define(node, text)
            return
        self._texts[node.output] = text
        if is_long and node.kind != "prim::Constant":
            self._split_inlined(node.output)

    def _count_version(self, node: Node) -> None:
        if node.namespace == "aten":
            op = op_of(node)
            if op is not None:
                self.version = max(self.version, version_of(op.qualified_name))

    def _define(self, node: Node, text: str | TaggedText) -> None:
        self._name(node.outputs)
        self.line()
        if node.outputs:
            write_list(self, self.body, node.outputs, "", " = ")
        self.body.write(text, "\n")

    def _split_inlined(self, value: Value) -> None:
        """Give a long expression its own line, and, so that nothing changes its turn, all that run before it."""
        (use,) = value.uses
        to_split: list[Value] = []
        self._find_to_split(use.user, use.offset, to_split)
        for each in reversed(to_split):
            text = self.use(each)
            with self._at(each.node):
                self._define(each.node, text)

    def _find_to_split(self, user: Node, offset: int, found: list[Value]) -> None:
        known = user in self._split
        first = self._split[user] + 1 if known else 0
        for index in range(offset, first - 1, -1):
            node = user.inputs[index].node
            if node.kind != "prim::Constant" and node in self._inlined:
                found.append(user.inputs[index])
        self._split[user] = offset
        if not known and user in self._inlined:
            (use,) = user.output.uses
            # The user itself is still being written, and so cannot be given a line.
            self._find_to_split(use.user, use.offset - 1, found)

    def _assign(self, targets: Sequence[Value], values: Sequence[Value]) -> None:
        """`a, b = x, y`; a single Optional or Union shows its type the first time."""
        if not targets:
            return
        self.line()
        write_list(self, self.body, targets)
        first = targets[0]
        if len(targets) == 1 and first not in self._annotated and isinstance(first.type, (UnionType, OptionalType)):
            self._annotated.add(first)
            self.body.write(" : ", self.annotation(first.type))
        write_list(self, self.body, values, " = ", "\n")

    def _start(self, target: Value, value: Value) -> None:
        """`x = 0` before a loop."""
        self.line(self.use(target))
        if isinstance(target.type, (UnionType, OptionalType)):
            self._annotated.add(target)
            self.body.write(": ", self.annotation(target.type))
        self.body.write(" = ", self.use(value), "\n")

    def _if(self, node: Node) -> None:
        self._name(node.outputs)
        for word, block in zip((("if ", self.use(node.input), ":\n"), ("else:\n",)), node.blocks, strict=True):
            self.line(*word)
            with self.indented():
                self._block(block, bool(node.outputs))
                self._assign(node.outputs, block.outputs)

    def _loop(self, node: Node) -> None:
        is_for = _is_for_loop(node)
        (body,) = node.blocks
        counter, carried = body.inputs[0], body.inputs[1:]
        self._name(node.outputs)
        for inner, outer in zip(carried, node.outputs, strict=True):
            self._texts[inner] = self.use(outer)
            self._annotated.add(inner)
        for target, start in zip(node.outputs, node.inputs[2:], strict=True):
            self._start(target, start)
        self._name([counter])
        if is_for:
            self.line("for ", self.use(counter), " in range(", self.use(node.inputs[0]), "):\n")
        else:
            # No one uses a while loop's counter, so its name serves for the condition.
            self._assign([counter], [node.inputs[1]])
            self.line("while ", self.use(counter), ":\n")
        targets, values = (carried, body.outputs[1:]) if is_for else (body.inputs, body.outputs)
        with self.indented():
            self._block(body, bool(targets))
            self._assign(targets, values)

    def _unpack(self, node: Node) -> None:
        self._name(node.outputs)
        self.line()
        if node.outputs:
            write_list(self, self.body, node.outputs, "", ", = ")
        self.body.write(self.use(node.input), "\n")

    def _set_attr(self, node: Node) -> None:
        target, value = node.inputs
        name = name_text(node.attr("name"), "an attribute")
        self.line(self.use(target), ".", name, " = ", self.use(value), "\n")

    def _fork(self, node: Node) -> None:
        name, graph = self._new_name("__forked_function"), node.attr("Subgraph")
        self.line(f"def {name}():\n")
        for inner, outer in zip(graph.inputs, node.inputs, strict=True):
            self._texts[inner] = self.use(outer)
        self._graph_body(graph)
        self._define(node, f"{'fork' if node.kind == 'prim::fork' else 'awaitable'}({name})")

    def _enter(self, node: Node) -> None:
        self.line("with ", self.use(node.input))
        if node.output.has_uses:
            self._name(node.outputs)
            self.body.write(" as ", self.use(node.output))
        self.body.write(":\n")
        self.level += 1

    def _exit(self, node: Node) -> None:
        if node.prev is not None and node.prev.kind == "prim::Enter":
            self.line("pass\n")
        self.level -= 1

    def _container_index(self, node: Node) -> None:
        container, key = node.inputs
        self._name(node.outputs)
        shown = self.annotation(node.output.type)
        self.line(self.use(node.output), f" : {shown} = ", self.use(container), "[", self.use(key), "]\n")

    def _closure(self, node: Node) -> None:
        raise ArchiveError("a closure cannot be written as code")


_PACKED: Final = ("prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct", "prim::unchecked_cast")
_STATEMENTS: Final[dict[str, Callable[[SourcePrinter, Node], None]]] = {
    "prim::If": SourcePrinter._if, "prim::Loop": SourcePrinter._loop,
    "prim::TupleUnpack": SourcePrinter._unpack, "prim::ListUnpack": SourcePrinter._unpack,
    "prim::SetAttr": SourcePrinter._set_attr, "prim::fork": SourcePrinter._fork, "prim::awaitable": SourcePrinter._fork,
    "prim::Enter": SourcePrinter._enter, "prim::Exit": SourcePrinter._exit,
    "prim::ModuleContainerIndex": SourcePrinter._container_index, "prim::Closure": SourcePrinter._closure,
}  # fmt: skip


def _has_written_default(argument: Argument) -> bool:
    return argument.has_default and not argument.is_undefined_by_default


def _base_name(value: Value) -> str:
    """The name without the number that told it from others."""
    stem, dot, number = value.name.rpartition(".")
    return stem if dot and number.isdigit() else value.name


def _constants_of(block: Block, found: dict[Node, None]) -> None:
    """The constants that the block uses, in the order they are used."""
    for node in (*block.nodes(), block.return_node):
        found.update((v.node, None) for v in node.inputs if v.node.kind == "prim::Constant")
        for inner in node.blocks:
            _constants_of(inner, found)


def _is_for_loop(node: Node) -> bool:
    """A `for`, or a `while`?  Raises ArchiveError for a loop that is both, which only passes make."""
    trips, condition = constant_value(node.inputs[0]), constant_value(node.inputs[1])
    (body,) = node.blocks
    always = _is_true(condition) and _is_true(constant_value(body.outputs[0]))
    counted = trips != _FOREVER or body.inputs[0].has_uses
    if counted and not always:
        raise ArchiveError("a loop that is both a while and a for loop cannot be written as code")
    return counted


def _is_true(value: Any) -> bool:
    """A graph may hold a bool as 0 or 1."""
    return isinstance(value, int) and bool(value)
