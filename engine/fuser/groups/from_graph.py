"""Fusion groups of graphs as kernels.

In: the graph of a group (`prim::FusionGroup`), and an example of its arguments: tensors, of which dtype, sizes and
strides are looked at, and numbers; with the results for them, of which the strides are.  Out: a `Binding`.  Raises
`NotFused`, with the node that no kernel can hold.

Each value of the graph becomes a description of its elements (`schedule.Value`), from which `schedule` makes loops.
Pointwise operators are their rows' expressions; `_SHAPED` has the operators that only choose elements, `REDUCTIONS`
those that combine them.  Dtypes are those of a run on tensors of one element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from itertools import combinations, pairwise
from math import inf
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.dtype_support import guard_of
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.scalar import numbers_in_range, rounded_names
from engine.aten.kernels.rules import wrap_dim
from engine.aten.values import xp
from engine.aten.values.promotion import converted, result_type, rounded, to_float
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import limits
from engine.fuser.groups.choosing import CHOOSING, JOINING
from engine.fuser.groups.composites import IF, may_be_lowered
from engine.fuser.groups.extents import Extent
from engine.fuser.groups.from_expression import Operand, Unsupported, element
from engine.fuser.groups.fusion_group import DTYPES, TYPES, Group, Handler, Lowered, Operands, elements, stages_of
from engine.fuser.groups.lookups import LOOKUPS
from engine.fuser.groups.numbers import SIZE, is_of_numbers, number
from engine.fuser.groups.products import PRODUCTS
from engine.fuser.groups.rearranging import DROPOUT, FILLED, PARTS, REARRANGING
from engine.fuser.groups.reductions import REDUCTIONS, mapped
from engine.fuser.groups.reshaping import RESHAPING, chunks
from engine.fuser.groups.scans import SCANS
from engine.fuser.groups.schedule import Body, Indices, Scheduler, Stage, Value, Within, needed, offset, spelled
from engine.fuser.groups.strategy import HOST, Strategy
from engine.fuser.groups.tensor_loops import LOOP, is_steady, lower_loop
from engine.fuser.groups.windows import WINDOWS
from engine.fuser.ir.kernel import (
    BOOL,
    HALVES,
    WHOLE,
    Apply,
    Buffer,
    Expression,
    Kernel,
    Load,
    Name,
    Parameter,
    Scalar,
    add,
    apply,
    constant,
    convert,
    index,
    multiply,
    product,
)
from engine.fuser.stubs.binding import (
    Argument,
    Binding,
    NoneArgument,
    NumberArgument,
    Result,
    TensorArgument,
    order_of,
    size,
    stride,
)
from engine.ir.composites import composite_graph
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of
from engine.lang.errors import EngineError
from engine.lang.records import dataclass
from engine.lang.types import NUMBER, ListType, TensorType, Type

_NONE: Final[frozenset[str]] = frozenset()
_NUMBERS: Final = {float: "f64", int: "i64", bool: BOOL}


class NotFused(Exception):
    """The group is no kernel, because of this node."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(why)
        self.node = node


def lower(
    graph: Graph, examples: Sequence[Any], results: Sequence[Any] | None = None, strategy: Strategy = HOST
) -> Binding:
    """A kernel of the graph for arguments like these, in loops for a kind of machine.

    `results`: what comes of them, whose dimensions then lie in memory in the same order; without, each has to have its
    dimensions in order.
    """
    return _Lowering(graph, examples, results, Group(strategy=strategy)).run()


def is_fusible(node: Node, without: frozenset[str] = _NONE) -> bool:
    """True if the node may be part of a kernel `without` operators of these names, as far as can be told without
    arguments."""
    if node.kind in ("prim::ListConstruct", "prim::ConstantChunk"):  # only with those that it is for
        users = [use.user for value in node.outputs for use in value.uses]
        is_inner = all(user.block is node.block and user.kind not in _STRUCTURAL for user in users)
        return is_inner and all(is_fusible(user, without) for user in users)
    if node.kind == LOOP:
        return is_steady(node, partial(is_fusible, without=without))
    if node.kind == "prim::ListUnpack":
        return node.inputs[0].node.kind in PARTS
    op = op_of(node)
    if op is None or (len(node.outputs) != 1 and not op.is_composed):  # statistics of rows, which bodies sum as they do
        return False
    return has_kernel(op, [*map(constant_value, node.inputs)], without)


def has_kernel(op: Op, given: Sequence[Any] = (), without: frozenset[str] = _NONE) -> bool:
    """True if there may be kernels of the operator `without` operators of these names, for arguments of which some are
    constants, and others, or all, NOT_CONSTANT."""
    if op.is_mutable or op.name in without or (op.nondeterministic and op.name not in DROPOUT):
        return False
    if op.data_dependent and op.name not in LOOKUPS:  # which look at tensors of places only
        return False
    if not all(isinstance(_part(each.type), TensorType) for each in op.schema.returns):
        return op.name == SIZE
    if _text_of(op) is not None or op.name in _SHAPED or op.name in _REDUCTIONS:
        return len(op.schema.returns) == 1
    return op.composite is not None and _may_be_composed(op, (*map(_told, given),), without)


@cache
def _may_be_composed(op: Op, given: tuple[Any, ...], without: frozenset[str]) -> bool:
    """The same of an operator that is made of others; each argument is a type and a value."""
    graph = composite_graph(op)
    assert graph is not None
    arguments = [value for _, value in given] or [NOT_CONSTANT] * len(graph.inputs)
    return may_be_lowered(graph, arguments, _STRUCTURAL, partial(has_kernel, without=without))


def _told(value: Any) -> tuple[type, Any]:
    """A constant that branches may ask about, and which is told from others of another type."""
    is_asked = value is None or isinstance(value, (bool, int, float, str))
    return (type(value), value) if is_asked else (object, NOT_CONSTANT)


def _is_reduction(op: Op) -> bool:
    """True if it takes loops of its own, or may be made of what does."""
    return op.name in _REDUCTIONS or (op.composite is not None and _text_of(op) is None)


def _part(type: Type) -> Type:
    """The type of what a list holds; of anything else that type itself."""
    return type.element if isinstance(type, ListType) else type


def is_pointwise(op: Op) -> bool:
    """True if kernels of the operator are its expression, element by element."""
    return _text_of(op) is not None and op.name not in _SHAPED and op.name not in _REDUCTIONS


def _text_of(op: Op) -> str | None:
    return op.scalar or op.expression


# ------------------------------------------------------------------ lowering


@dataclass(eq=False, slots=True)
class _Lowering:
    graph: Graph
    examples: Sequence[Any]
    results: Sequence[Any] | None
    group: Group = field(default_factory=Group)
    values: dict[Any, Lowered] = field(default_factory=dict)
    arguments: list[Argument] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    within: str = ""
    """The beginning of names of values that are made inside of a composed operator."""
    left: list[Stage] = field(default_factory=list)
    """The checks there that may end the kernel."""

    def run(self) -> Binding:
        """Describe all values of the graph; then the binding of what its results are."""
        for value, example in zip(self.graph.inputs, self.examples, strict=True):
            self.values[value] = self.argument(value.debug_name, example)
        for node in self.graph.nodes():
            try:
                self.node(node)
            except (Unsupported, EngineError, ArithmeticError) as why:
                raise NotFused(node, str(why)) from why
        return self.binding()

    def argument(self, debug_name: str, example: Any) -> Lowered:
        name = self.fresh(debug_name)
        if type(example) in _NUMBERS:
            self.arguments.append(NumberArgument(name, _NUMBERS[type(example)]))
            number = Name(name, _NUMBERS[type(example)])
            self.group.numbers[number] = example
            return number
        if example is None:
            self.arguments.append(NoneArgument(name))
            return None
        if not isinstance(example, Tensor) or type(example.array) is not np.ndarray:
            raise NotFused(self.graph.return_node, f"an argument is {type(example).__name__}")
        array = example.array
        if array.dtype not in TYPES:
            raise NotFused(self.graph.return_node, f"an argument is of {array.dtype}")
        is_contiguous = array.flags.c_contiguous
        self.arguments.append(
            TensorArgument(name, TYPES[array.dtype], array.ndim, "contiguous" if is_contiguous else "strided")
        )
        shape = tuple(Extent(size(name, d), n) for d, n in enumerate(array.shape))
        self.buffers[name] = Buffer(name, TYPES[array.dtype], None)
        strides = None if is_contiguous else self.strides(name, array)

        def at(body: Body, indices: Indices) -> Expression:
            place = offset(indices, shape, self.group.extents) if strides is None else _strided(indices, strides)
            return Load(name, (place,), TYPES[array.dtype])

        value = Value(f"{name}_", TYPES[array.dtype], shape, at, is_moved=_is_moved(array))
        self.group.samples[value] = _sample(array.dtype, array.ndim)
        return value

    def strides(self, name: str, array: np.ndarray[Any, Any]) -> list[Expression]:
        """The strides, which are guarded to be in the order that they are in; a stride of 0 or 1 element is known."""
        given: list[Expression] = [stride(name, d) for d in range(array.ndim)]
        self.group.extents.guards += _in_order(array, [size(name, d) for d in range(array.ndim)], given)
        for d, (extent, step) in enumerate(zip(array.shape, array.strides, strict=True)):
            if extent > 1 and step in (0, array.itemsize):
                known_step = index(step // array.itemsize)
                self.group.extents.guards.append(apply("eq", given[d], known_step))
                given[d] = known_step
        return given

    def fresh(self, name: str) -> str:
        base = spelled(name)
        while base in self.names:
            base += "_"
        self.names.add(base)
        return base

    def node(self, node: Node) -> None:
        given = [self.given(value) for value in node.inputs]
        if node.kind in _STRUCTURAL:
            results = _STRUCTURAL[node.kind](self.group, node, given)
        elif node.kind == LOOP:
            results = self.rounds(node, given) if self.within else lower_loop(self, node, given)
        elif node.kind == IF:
            results = [*map(self.shared, node.outputs, self.branch(node, given))]
        else:
            op = op_of(node)
            if op is None or not node.outputs:
                raise Unsupported(f"{node.kind} is no operator with a result")
            if is_of_numbers(op):
                results = [number(self.group, op, given)]
            else:
                name = f"{self.within}{node.outputs[0].debug_name}"
                found = self.operator(op, name, dict(zip(_names(op), given, strict=True)))
                results = [*found] if isinstance(found, tuple) else [found]
                if len(results) != len(node.outputs):
                    raise Unsupported(f"{op.qualified_name} has several results")
                results = [*map(self.shared, node.outputs, results)]
        for value, result in zip(node.outputs, results, strict=True):
            self.values[value] = result

    def branch(self, node: Node, given: Sequence[Lowered]) -> Sequence[Lowered]:
        """The results of a branch that is known when compiling."""
        condition = self.constant_of(given[0], (BOOL,))
        if isinstance(condition, Value):
            condition = self.left_if(node, condition)
        if not isinstance(condition, bool):
            raise Unsupported("a branch that is not known")
        block = node.blocks[0 if condition else 1]
        for each in block.nodes():
            self.node(each)
        return [self.given(value) for value in block.outputs]

    def left_if(self, node: Node, condition: Value) -> bool:
        """The condition, as it is where the program has no error; elsewhere the kernel ends."""
        raises = [any(each.kind == "prim::RaiseException" for each in block.nodes()) for block in node.blocks]
        if raises.count(True) != 1 or condition.shape:
            raise Unsupported("a branch that an element decides")
        wrong = mapped(self.group, f"{condition.name}_wrong", lambda x: _is(x, raises[0]), condition)
        self.left.append(self.group.leave_if(f"{condition.name}_left", wrong))
        return not raises[0]

    def rounds(self, node: Node, given: Sequence[Lowered]) -> Sequence[Lowered]:
        """The results of a loop whose rounds are done one by one when compiling, as those of comprehensions are."""
        count, goes_on, *carried = given
        (body,) = node.blocks
        if type(count) is not int:
            raise Unsupported("a number of rounds that is not known")
        for i in range(count):
            if goes_on is not True:
                raise Unsupported("a loop that may end early")
            self.values |= zip(body.inputs, (i, *carried), strict=True)
            for each in body.nodes():
                self.node(each)
            goes_on, *carried = (self.given(value) for value in body.outputs)
        return carried

    def composed(self, graph: Graph, name: str, given: Sequence[Lowered]) -> Lowered:
        """The result of an operator that is made of those of the graph.  See Note [Composites] in `composites.py`."""
        outside = self.within, self.left
        self.within, self.left = f"{name}_", []
        self.values |= zip(graph.inputs, map(self.shared, graph.inputs, given), strict=True)
        for each in graph.nodes():
            self.node(each)
        found = self.given(graph.outputs[0])
        results = [self.after_checks(each) for each in (found if isinstance(found, tuple) else (found,))]
        self.within, self.left = outside
        return (*results,) if isinstance(found, tuple) else results[0]

    def after_checks(self, result: Lowered) -> Lowered:
        """The result, which is there only if no check of its operands has ended the kernel."""
        if not self.left or not isinstance(result, Value):
            return result
        checked = replace(result, stages=(*result.stages, *self.left), stage=None)
        self.group.samples[checked] = self.group.samples[result]
        return checked

    def given(self, value: Any) -> Lowered:
        """A value's description; a tensor that is a constant is taken for no constant."""
        if value not in self.values:
            found = constant_value(value)
            if found is NOT_CONSTANT or isinstance(found, Tensor):
                raise Unsupported("a constant tensor")
            self.values[value] = found
        return self.values[value]

    def operator(self, op: Op, name: str, given: Mapping[str, Lowered]) -> Lowered:
        handler = None if _text_of(op) else _SHAPED.get(op.name) or _REDUCTIONS.get(op.name)
        if handler is not None:
            given = self.fixed(given, (BOOL,))
        if "dtype" in given:
            given = {**given, "dtype": self.constant_of(given["dtype"], ("i64",))}
        if op.checks_numbers:
            given = self.fixed(given, ("f64", "i64"))
        if handler is None and _text_of(op) is None and (graph := composite_graph(op)) is not None:
            guard_of(op)(lambda *_: None)(*map(self.stand_in, given.values()))  # what the operator refuses
            return self.composed(graph, name, [*given.values()])
        sample = self.sample_of(op, given)
        if handler is None:
            result = pointwise(self.group, op, name, given, sample)
        else:
            result = self.handled(op, handler, name, given, sample)
        for each in result if isinstance(result, list) else [result]:
            if isinstance(each, Value):
                self.group.trial(each)
                self.group.samples[each] = _sample(DTYPES[each.type], len(each.shape))
        return result

    def handled(self, op: Op, handler: Handler, name: str, given: Mapping[str, Lowered], sample: Any) -> Lowered:
        """The handler's result; one that has to know whole numbers knows those of the example, which are guarded."""
        stages = len(self.group.stages)
        try:
            return self.looking(op, handler, name, given, sample)
        except Unsupported:
            fixed = self.fixed(given, ("i64",))
            if fixed == given:
                raise
            del self.group.stages[stages:]
            return self.looking(op, handler, name, fixed, sample)

    def looking(self, op: Op, handler: Handler, name: str, given: Mapping[str, Lowered], sample: Any) -> Lowered:
        """The handler's result; raises Unsupported where it did not look at all that was given, see Note [Looked at].

        The dtype that is asked for is that of a sample that the operator itself computed.
        """
        operands = Operands(given, set() if sample is None else {"dtype"})
        result = handler(self.group, name, operands, sample)
        unknown = operands.unknown(op.schema)
        if unknown is not None:
            raise Unsupported(f"no kernel of {op.qualified_name} looks at '{unknown}'")
        return result

    def fixed(self, given: Mapping[str, Lowered], types: Sequence[str]) -> Mapping[str, Lowered]:
        """The operands, where arguments of these types are the constants that they are in the example."""
        return {key: self.constant_of(value, types) for key, value in given.items()}

    def constant_of(self, value: Lowered, types: Sequence[str]) -> Lowered:
        if isinstance(value, list):
            return [self.constant_of(each, types) for each in value]
        if not isinstance(value, Name) or value.type not in types or value not in self.group.numbers:
            return value
        example = self.group.numbers[value]
        type = "f64" if value.type == "f64" else "i64"
        self.group.extents.guard("eq", convert(value, type), constant(example, type))
        return example

    def sample_of(self, op: Op, given: Mapping[str, Lowered]) -> Any:
        """The operator's result for samples of its arguments; None where the handler alone tells the dtype."""
        if op.name in _CHOOSING or op.name in _OF_FLOATS:
            return None
        return _run(op, {key: self.sampled(value) for key, value in given.items()})

    def shared(self, value: Any, result: Lowered) -> Lowered:
        """The description of a value of the graph, kept if it is costly and used by several loops."""
        if not isinstance(result, Value) or len(value.uses) < 2 or not result.shape:
            return result
        users = [use.user for use in value.uses]
        is_reduced = any((op := op_of(user)) is not None and _is_reduction(op) for user in users)
        return self.group.kept_if_costly(result) if is_reduced else result

    def stand_in(self, value: Lowered) -> Any:
        """The value as it is in the example, but for elements."""
        if isinstance(value, Value):
            shape = [self.group.extents.canonical(each).example for each in value.shape]
            return Tensor(np.broadcast_to(np.ones((), DTYPES[value.type]), shape))
        if isinstance(value, list):
            return [self.stand_in(each) for each in value]
        return self.group.numbers[value] if isinstance(value, (Name, Apply)) else value

    def sampled(self, value: Lowered) -> Any:
        if isinstance(value, Value):
            return self.group.samples[value]
        if isinstance(value, list):
            return [self.sampled(each) for each in value]
        return {"f64": 1.0, "i64": 1, BOOL: True}[value.type] if isinstance(value, (Name, Apply)) else value

    # -- the binding

    def binding(self) -> Binding:
        results: list[Result] = []
        for node, value in self.outputs():
            if not isinstance(value, Value):
                raise NotFused(node, "a result is no tensor")
            name, order = self.fresh("out"), self.order(node, value, len(results))
            shape = tuple(self.group.extents.canonical(e).size for e in value.shape)
            results.append(Result(name, value.type, shape, order))
            self.buffers[name] = Buffer(name, value.type, None, access="out")
            self.put(value, name, order)
        stages = needed(self.group.stages)
        types = {name: buffer.type for name, buffer in self.buffers.items()}
        names = {*self.names, *self.buffers}
        scheduler = Scheduler(self.group.extents, stages, names, types, strategy=self.group.strategy)
        body = tuple(scheduler.statements())
        numbers = [Scalar(a.name, a.type) for a in self.arguments if isinstance(a, NumberArgument)]
        sizes = [Scalar(name, "i64") for name in _size_names(self.arguments)]
        parameters: tuple[Parameter, ...] = (*numbers, *sizes, *self.buffers.values())
        kernel = Kernel("group", parameters, body, helpers=scheduler.helpers)
        return Binding(kernel, tuple(self.arguments), tuple(results), tuple(self.group.extents.guards), (), self.work())

    def outputs(self) -> list[tuple[Node, Lowered]]:
        """The results, with the nodes that make them; those of a tuple one by one."""
        found = [(output.node, self.values[output]) for output in self.graph.outputs]
        if len(found) == 1 and isinstance(found[0][1], tuple):
            return [(node, each) for node, values in found for each in values]
        return found

    def order(self, node: Node, value: Value, place: int) -> tuple[int, ...] | None:
        """The dimensions of a result as they lie in memory; None where that is as they are counted."""
        if self.results is not None:
            return order_of(self.results[place].array)
        if value.is_moved and len(value.shape) > 1:
            raise NotFused(node, "the dimensions of the result are not in the order of its strides")
        return None

    def put(self, value: Value, name: str, order: tuple[int, ...] | None) -> None:
        """Have the value written to a result, as it lies in memory."""
        own = value.stage
        if own is not None and own.is_reduction and not own.buffer and order is None:
            own.buffer = name
            return
        order = order or tuple(range(len(value.shape)))
        shape = tuple(value.shape[d] for d in order)
        for piece in value.pieces:
            within = Within(shape, order.index(piece.axis), piece.start)
            self.group.stages.append(_written(name, value.type, piece.value, order, within))
        if not value.pieces:
            self.group.stages.append(_written(name, value.type, value, order))

    def work(self) -> Expression:
        """The nanoseconds of a call, roughly: an element of each stage in each."""
        total: Expression = index(0)
        for stage in self.group.stages:
            total = add(total, product([e.size for e in (*stage.shape, *stage.inner)]))
        return apply("quotient", total, index(2))


def _written(name: str, type: str, value: Value, order: Sequence[int], within: Within | None = None) -> Stage:
    """The stage that writes a value to a result whose dimensions lie in that order."""
    places = [order.index(d) for d in range(len(order))]

    def element(body: Body, at: Indices) -> Expression:
        return convert(body.element(value, tuple(at[place] for place in places)), type)

    shape = tuple(value.shape[d] for d in order)
    return Stage(name, type, shape, value.stages, element=element, buffer=name, within=within)


def _is(value: Expression, wanted: bool) -> Expression:
    found = convert(value, BOOL)
    return found if wanted else apply("bitnot", found)


def _size_names(arguments: Sequence[Argument]) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, TensorArgument):
            for d in range(argument.rank):
                yield size(argument.name, d).name
                if argument.layout == "strided":
                    yield stride(argument.name, d).name


def _is_moved(array: np.ndarray[Any, Any]) -> bool:
    """True if a later dimension has greater strides than an earlier one."""
    return order_of(array) is not None


def _in_order(
    array: np.ndarray[Any, Any], sizes: Sequence[Expression], strides: Sequence[Expression]
) -> Iterator[Expression]:
    """Guards that dimensions lie in memory as they do in the example, but for strides of 0, which are known.

    Those of one element may lie anywhere, as long as they have one.
    """
    order = [d for d in order_of(array) or range(array.ndim) if array.shape[d] <= 1 or array.strides[d] != 0]
    for outer, inner in pairwise(d for d in order if array.shape[d] > 1):
        yield apply("ge", strides[outer], strides[inner])
    for outer, inner in combinations(order, 2):
        alone = next((d for d in (outer, inner) if array.shape[d] <= 1), None)
        if alone is not None:
            is_alone = apply("le", sizes[alone], index(1))
            yield apply("bitor", is_alone, apply("ge", strides[outer], strides[inner]))


def _strided(indices: Indices, strides: Sequence[Expression]) -> Expression:
    total: Expression = index(0)
    for at, step in zip(indices, strides, strict=True):
        total = add(total, multiply(at, step))
    return total


def _sample(dtype: Any, rank: int) -> Tensor:
    return Tensor(np.ones((1,) * rank, dtype))


def _names(op: Op) -> list[str]:
    return [argument.name for argument in op.schema.arguments]


def _run(op: Op, given: Mapping[str, Any]) -> Any:
    """The operator's result for tensors of one element."""
    with np.errstate(all="ignore"):
        return op.compiled.body(*given.values())


# ------------------------------------------------------------------ pointwise operators


def pointwise(group: Group, op: Op, name: str, given: Mapping[str, Lowered], sample: Any) -> Value:
    """An operator with an expression."""
    text = _text_of(op)
    if text is None or not isinstance(sample, Tensor):
        raise Unsupported(f"{op.qualified_name} has no expression")
    tensors = {key: value for key, value in given.items() if isinstance(value, Value)}
    shape = group.extents.broadcast(*(value.shape for value in tensors.values()))
    result, common = _types(op, given, group, sample)
    computed = "f32" if common in HALVES else common
    rounds = rounded_names(op) if common in HALVES else frozenset()
    for key in numbers_in_range(op) & given.keys():
        if isinstance(given[key], (Name, Apply, int, float)):
            _need_place(group, given[key], result)

    def at(body: Body, indices: Indices) -> Expression:
        operands = {
            key: elements(body, value, indices, group.extents) if isinstance(value, Value) else value
            for key, value in given.items()
        }
        for key in rounds & operands.keys():
            operands[key] = _rounded(operands[key], common)
        return convert(element(text, operands, computed), result)

    samples = {key: Name(key, value.type) if isinstance(value, Value) else value for key, value in given.items()}
    operands = Operands(samples, {"dtype"})
    element(text, operands, computed)  # raises here, where the node is known
    unknown = operands.unknown(op.schema)
    if unknown is not None:
        raise Unsupported(f"the expression of {op.qualified_name} does not look at '{unknown}'")
    is_moved = any(value.is_moved for value in tensors.values())
    return Value(name, result, shape, at, stages_of(tensors.values()), None, is_moved)


def _need_place(group: Group, number: Lowered, type: str) -> None:
    """Guard that the type holds the number, which else is an error of the program."""
    if not isinstance(number, (Name, Apply)):
        converted(number, DTYPES[type])
    elif type in WHOLE:
        if number.type == "f64":
            raise Unsupported("a float among whole numbers")
        group.extents.guard("eq", convert(convert(number, type), "i64"), convert(number, "i64"))
    elif type != BOOL:
        size = apply("abs", convert(number, "f64"))
        is_small = apply("le", size, constant(float(limits(DTYPES[type]).max), "f64"))
        group.extents.guard("bitor", is_small, apply("eq", size, constant(inf, "f64")))


def _rounded(value: Operand, half: str) -> Operand:
    """An operand beside halves: one of them, whatever it was."""
    if isinstance(value, (int, float)):
        return float(rounded(value, DTYPES[half]))
    return value if value is None or isinstance(value, str) else convert(value, half)


def _types(op: Op, given: Mapping[str, Lowered], group: Group, sample: Tensor) -> tuple[str, str]:
    """The types of the result and of the operands together: the operator's dtype rule."""
    if sample.array.dtype not in TYPES:
        raise Unsupported(f"no kernels of {sample.array.dtype}")
    result = TYPES[sample.array.dtype]
    if op.scalar is None and result != BOOL:
        return result, result
    rule, _, named = str(op.dtype or "promote").partition(":")
    operands = [name.strip() for name in named.split(",")] if named else _promoted(op)
    chosen = [_operand_of(given[name], group) for name in operands if given[name] is not None]
    d = result_type(tuple(chosen))
    d = to_float(d) if rule == "float" else np.dtype(np.int64) if rule == "number" and d == xp.BOOL else d
    if d not in TYPES:
        raise Unsupported(f"no kernels of {d}")
    return result, TYPES[d]


def _promoted(op: Op) -> list[str]:
    """The operands whose dtypes decide: tensors, and numbers that are not given by name only."""
    return [
        a.name for a in op.schema.arguments
        if isinstance(a.type, TensorType) or (a.type is NUMBER and not a.kwarg_only)
    ]  # fmt: skip


def _operand_of(value: Lowered, group: Group) -> Any:
    if isinstance(value, Value):
        return group.samples[value].array
    return {"f64": 1.0, "i64": 1, BOOL: True}[value.type] if isinstance(value, (Name, Apply)) else value


# ------------------------------------------------------------------ the tables

_REDUCTIONS: Final[dict[str, Handler]] = {
    **REDUCTIONS, **PRODUCTS, **WINDOWS, **SCANS,
}  # fmt: skip
_OF_FLOATS: Final = WINDOWS.keys()
"""Those of which samples of one element tell nothing: their result is of float32."""
_CHOOSING: Final[dict[str, Handler]] = {**CHOOSING, **RESHAPING, **REARRANGING, **LOOKUPS}
"""Those whose elements are elements of their first argument."""
_SHAPED: Final[dict[str, Handler]] = {**_CHOOSING, **JOINING, **FILLED}

# ------------------------------------------------------------------ nodes that are no operators


def _constant(group: Group, node: Node, given: Sequence[Lowered]) -> list[Lowered]:
    found = constant_value(node.output)
    if isinstance(found, Tensor):
        raise Unsupported("a constant tensor")
    return [found]


def _list(group: Group, node: Node, given: Sequence[Lowered]) -> list[Lowered]:
    return [[*given]]


def _tuple(group: Group, node: Node, given: Sequence[Lowered]) -> list[Lowered]:
    return [(*given,)]


def _unpacked(group: Group, node: Node, given: Sequence[Lowered]) -> list[Lowered]:
    (values,) = given
    if not isinstance(values, list) or len(values) != len(node.outputs):
        raise Unsupported("a list of another length")
    return values


def _same(group: Group, node: Node, given: Sequence[Lowered]) -> Sequence[Lowered]:
    return given


def _constant_chunk(group: Group, node: Node, given: Sequence[Lowered]) -> list[Lowered]:
    (value,) = given
    axis = wrap_dim(node.attr("dim"), len(value.shape))
    return list(chunks(group, value, node.attr("chunks"), axis, node.outputs[0].debug_name))


_STRUCTURAL: Final[dict[str, Callable[[Group, Node, Sequence[Lowered]], Sequence[Lowered]]]] = {
    "prim::Constant": _constant, "prim::ListConstruct": _list, "prim::ListUnpack": _unpacked,
    "prim::TupleConstruct": _tuple, "prim::ConstantChunk": _constant_chunk,
    "prim::unchecked_cast": _same, "prim::unchecked_unwrap_optional": _same,
}  # fmt: skip
