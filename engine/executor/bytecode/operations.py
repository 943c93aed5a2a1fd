"""The operation of each node, as a Python function of its inputs' values.

In: a node.  Out: a callable.  Ordinary operators have it in the operator table.  Nodes without a schema, whose
meaning lies in their attributes, types or number of outputs, are the rows of `OPERATIONS` (kind -> maker);
those that call TorchScript functions are the rows of `CALLEES`, whose callables give the function and its arguments.
"""

from __future__ import annotations

import operator
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.awaits import Await
from engine.aten.values.hooks import HOOKS
from engine.aten.values.ivalue import Object
from engine.executor.bytecode.pass_operations import PASS_OPERATIONS
from engine.executor.conversion.from_python import Mismatch, from_python, is_instance
from engine.executor.conversion.to_python import to_python
from engine.ir.graph import Node
from engine.ir.unit import Function
from engine.lang.custom_classes import is_foreign, refuse_to_make
from engine.lang.deferred import deferred
from engine.lang.errors import (
    ArgumentError,
    MissingOperatorError,
    OperatorError,
    OperatorIndexError,
)
from engine.lang.scalars import bool_, int64
from engine.lang.types import (
    BOOL,
    INT,
    ClassType,
    ListType,
    OptionalType,
    TensorType,
    Type,
    UnionType,
    VarType,
    members_of,
    walk,
)  # fmt: skip

if TYPE_CHECKING:
    from engine.lang import missing_operators
else:
    missing_operators = deferred("engine.lang.missing_operators")

Operation = Callable[..., Any]
Callee = Callable[[Sequence[Any]], tuple[Function, Sequence[Any]]]


def operation_of(node: Node) -> Operation:
    """The function that computes the node's outputs (several as a tuple); for an unknown operator it raises."""
    maker = OPERATIONS.get(node.kind)
    if maker is not None:
        return maker(node)
    op = op_of(node)
    return _missing(node) if op is None else op.run


def op_of(node: Node) -> Op | None:
    """The node's operator: the one it was matched with, else the first overload whose schema fits its inputs."""
    if node.op is None:
        node.op = next((op for op in table.overloads(node.kind) if _fits(op, node)), None)
    assert node.op is None or isinstance(node.op, Op)
    return node.op


def _missing(node: Node) -> Operation:
    """An operation that raises with the operator's name when it runs, so that branches never taken may lack theirs."""

    def refuse(*_: Any) -> Any:
        types = ", ".join(str(value.type) for value in node.inputs)
        known = tuple(f"there is {op.text}" for op in table.overloads(node.kind))
        hints = known or (missing_operators.where_missing_ones_are([node.kind]),)
        raise MissingOperatorError(f"there is no operator {node.kind}({types})", hints=hints)

    return refuse


def _fits(op: Op, node: Node) -> bool:
    wanted = op.schema.arguments
    if op.schema.is_vararg:
        return len(node.inputs) >= len(wanted)
    return len(wanted) == len(node.inputs) and all(
        _accepts(argument.type, value.type) for argument, value in zip(wanted, node.inputs, strict=True)
    )


def _accepts(wanted: Type, given: Type) -> bool:
    """Like subtyping; a type variable takes anything."""
    if not any(isinstance(part, VarType) for part in walk(wanted)):
        return given.is_subtype_of(wanted)
    if isinstance(wanted, VarType):
        return True
    if isinstance(given, (OptionalType, UnionType)) or isinstance(wanted, (OptionalType, UnionType)):
        return all(any(_accepts(w, g) for w in members_of(wanted)) for g in members_of(given))
    same_kind = wanted.__class__ is given.__class__ and len(wanted.contained()) == len(given.contained())
    return same_kind and all(map(_accepts, wanted.contained(), given.contained()))


# -- values made and taken apart


def _tuple_index(_: Node) -> Operation:
    def index(values: tuple[Any, ...], at: int) -> Any:
        if not -len(values) <= at < len(values):
            raise OperatorError("Tuple list index out of range", hints=(f"the tuple has {len(values)} elements",))
        return values[at]

    return index


def _tuple_slice(node: Node) -> Operation:
    return operator.itemgetter(slice(node.attr("beg"), node.attr("end")))


def _unpack_tuple(node: Node) -> Operation:
    return operator.itemgetter(0) if len(node.outputs) == 1 else _identity


def _unpack_list(node: Node) -> Operation:
    wanted = len(node.outputs)

    def unpack(values: list[Any]) -> Any:
        if len(values) != wanted:
            raise OperatorError(f"Expected {wanted} elements in a list but found {len(values)}")
        return values[0] if wanted == 1 else tuple(values)

    return unpack


def _make_dict(*parts: Any) -> dict[Any, Any]:
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _chunk(node: Node) -> Operation:
    chunk = table.find("aten::chunk")
    assert chunk is not None
    run, chunks, dim, unpack = chunk.run, node.attr("chunks"), node.attr("dim"), _unpack_list(node)
    return lambda tensor: unpack(run(tensor, chunks, dim))


# -- objects


def _create_object(node: Node) -> Operation:
    type = _class_of(node.output.type)
    return partial(refuse_to_make, type) if is_foreign(type) else lambda: Object(type)


def _get_attribute(node: Node) -> Operation:
    slot = _slot(node)
    return lambda owner: owner.slots[slot]


def _set_attribute(node: Node) -> Operation:
    slot = _slot(node)

    def set_attribute(owner: Object, value: Any) -> None:
        owner.slots[slot] = value

    return set_attribute


def _slot(node: Node) -> int:
    type, name = _class_of(node.inputs[0].type), node.attr("name")
    slot = type.slot(name)
    assert slot is not None, f"{type.qualname} has no attribute {name}: {node}"
    return slot


def _class_of(type: Type) -> ClassType:
    assert isinstance(type, ClassType), f"{type} is no class"
    return type


def _container_item(_: Node) -> Operation:
    """`layers[i]` with an index known only at run time: modules by number, or by name."""

    def item(owner: Object, index: int | str) -> Any:
        parts = {
            attribute.name: value
            for attribute, value in zip(owner.type.attributes, owner.slots, strict=False)
            if isinstance(value, Object) and value.type.is_module
        }
        if isinstance(index, int):
            if not -len(parts) <= index < len(parts):
                raise OperatorIndexError("list index out of range")
            return list(parts.values())[index]
        if index not in parts:
            raise OperatorError(f"KeyError: {index}")
        return parts[index]

    return item


def _isinstance(node: Node) -> Operation:
    types = node.attr("types")
    return lambda value: any(is_instance(value, type) for type in types)


# -- output


def _print(_: Node) -> Operation:
    to_text = table.find("aten::str")
    assert to_text is not None
    text = to_text.run

    def write_line(*values: Any) -> None:
        sys.stdout.write(" ".join(v if isinstance(v, str) else text(v) for v in values) + "\n")

    return write_line


_WARNED: Final[defaultdict[str, dict[Any, Any]]] = defaultdict(dict)
"""By file, the places that have warned: Python's filters keep them, and say which warn again."""


def _warn(node: Node) -> Operation:
    """Warns at the place in the program where the node stands."""
    operator = op_of(node)
    if node.range is None or operator is None:
        return _missing(node) if operator is None else operator.run
    place = node.range.original()
    name, line = place.source.filename, place.line

    def warn(message: str, stacklevel: int) -> None:
        warnings.warn_explicit(message, UserWarning, name, line, registry=_WARNED[name])

    return warn


# -- calls


def _call_python(node: Node) -> Operation:
    """`prim::PythonOp`: a call of the Python function that the node holds, as `@torch.jit.ignore` makes them."""
    if not node.has_attribute("function"):
        return _missing(node)
    function, name = node.attr("function"), node.attr("name")
    out = [to_python(value.type) for value in node.inputs]
    back, declared = from_python(node.output.type), node.output.type

    def call(*values: Any) -> Any:
        result = function(*(convert(v) if convert else v for convert, v in zip(out, values, strict=True)))
        try:
            return back(result)
        except Mismatch:
            raise ArgumentError(
                f"'{name}': expected value of type {declared.annotation_str} for return value but instead got value of "
                f"type {type(result).__name__}",
                hints=("the annotations of a Python function tell what it returns",),
            ) from None

    return call


def _awaitable(node: Node) -> Operation:
    """A call that is made when its result is first needed; in tracebacks it goes by the name of its kind."""
    function = Function(node.kind, _graph=node.attr("Subgraph"))
    call = HOOKS.call
    assert call is not None
    return lambda *captured: Await(lambda: call(function, captured), captured)


def _call_function(_: Node) -> Callee:
    return lambda inputs: (inputs[0], inputs[1:])


def _call_method(node: Node) -> Callee:
    name = node.attr("name")
    return lambda inputs: (inputs[0].type.methods[name], inputs)


def _enter(_: Node) -> Callee:
    return lambda inputs: (inputs[0].type.methods["__enter__"], inputs)


def _exit(_: Node) -> Callee:
    return lambda inputs: (inputs[0].type.methods["__exit__"], (inputs[0], None, None, None))


def _identity(value: Any) -> Any:
    return value


def _tensor_of_data(node: Node) -> Operation:
    """`torch.tensor(data)`; an empty list takes its dtype from the list's type, and lists of tensors are refused."""
    element = node.inputs[0].type
    op = op_of(node)
    if op is None:
        return _missing(node)
    if not isinstance(element, ListType):
        return op.run
    while isinstance(element, ListType):
        element = element.element
    if isinstance(element, TensorType):
        return _refuse_tensors
    run, number = op.run, _NUMBER_OF_EMPTY.get(element)
    if number is None:
        return run
    return lambda data, dtype, *more: run(data, number if dtype is None and _is_empty(data) else dtype, *more)


_NUMBER_OF_EMPTY: Final[dict[Type, int]] = {INT: int64.number, BOOL: bool_.number}
"""Element types -> the dtype of a tensor made of an empty list of them, if it is not the floating default."""


def _is_empty(data: Any) -> bool:
    return all(_is_empty(each) if isinstance(each, list) else False for each in data)


def _refuse_tensors(*values: Any) -> Any:
    raise OperatorError(
        "Input must be of ints, floats, or bools, got Tensor. Empty lists default to List[Tensor]",
        hints=("annotate it to make an empty list of another type: torch.jit.annotate(List[float], [])",),
    )


OPERATIONS: Final[dict[str, Callable[[Node], Operation]]] = {
    "aten::tensor": _tensor_of_data,
    "aten::as_tensor": _tensor_of_data,
    "prim::TupleConstruct": lambda _: lambda *values: values,
    "prim::NamedTupleConstruct": lambda _: lambda *values: values,
    "prim::TupleUnpack": _unpack_tuple,
    "prim::TupleIndex": _tuple_index,
    "prim::TupleSlice": _tuple_slice,
    "prim::ListConstruct": lambda _: lambda *values: list(values),
    "prim::ListUnpack": _unpack_list,
    "prim::DictConstruct": lambda _: _make_dict,
    "prim::ConstantChunk": _chunk,
    "prim::CreateObject": _create_object,
    "prim::GetAttr": _get_attribute,
    "prim::SetAttr": _set_attribute,
    "prim::ModuleContainerIndex": _container_item,
    "prim::isinstance": _isinstance,
    "prim::Print": _print,
    "aten::warn": _warn,
    "prim::PythonOp": _call_python,
    "prim::awaitable": _awaitable,
    **PASS_OPERATIONS,
}

CALLEES: Final[dict[str, Callable[[Node], Callee]]] = {
    "prim::CallFunction": _call_function,
    "prim::CallMethod": _call_method,
    "prim::Enter": _enter,
    "prim::Exit": _exit,
}
