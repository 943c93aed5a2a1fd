"""The operator that a node stands for, and what may be done with such nodes.

In: a node.  Out: its `Op`: the one the emitter chose, else the first overload whose arguments accept the
types of the inputs (nodes have an input for every argument, defaults included); None for nodes that are no
operators (`prim::If`) or that no entry of the table fits.
"""

from __future__ import annotations

from typing import Final

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import overloads
from engine.ir.constants import constant_value
from engine.ir.graph import Node, Value
from engine.lang.schema import FunctionSchema
from engine.lang.types import (
    BOOL,
    NONE,
    NUMBER,
    DictType,
    LaterType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    VarType,
    members_of,
    unwrap_optional,
)

_SIDE_EFFECTS = (
    "aten::warn aten::save aten::manual_seed aten::wait prim::RaiseException prim::SetAttr prim::Print prim::TimePoint "
    "prim::AddStatValue prim::CallFunction prim::CallMethod prim::BailOut prim::BailoutTemplate prim::Enter prim::Exit "
    "prim::profile prim::profile_ivalue prim::Guard prim::Store prim::BreakStmt prim::ContinueStmt prim::ReturnStmt "
    "prim::awaitable_wait prim::PythonOp prim::IgnoredPythonOp"
)
SIDE_EFFECTS: Final = frozenset(_SIDE_EFFECTS.split())
"""Kinds of nodes that must run, and in their order, whether or not their results are used."""


SWITCHES_GRADIENTS: Final = frozenset(
    ("prim::Enter", "prim::Exit", "aten::set_grad_enabled", "prim::CallFunction", "prim::CallMethod")
)
"""Kinds of nodes after which gradients may be recorded where they were not before, or the other way round."""


def op_of(node: Node) -> Op | None:
    """The node's operator; remembered in `node.op` until the inputs change."""
    if node.op is None:
        node.op = match_op(node)
    found: Op | None = node.op
    return found


def schema_of(node: Node) -> FunctionSchema | None:
    """The schema of the node's operator."""
    found = op_of(node)
    return None if found is None else found.schema


def match_op(node: Node) -> Op | None:
    """The first overload of `node.kind` that accepts the types of the inputs; else one to which bools are numbers, too,
    as they are once they are known."""
    candidates = overloads(node.kind)
    found = next((op for op in candidates if accepts(op.schema, node)), None)
    if found is None and candidates and any(value.type == BOOL for value in node.inputs):
        found = next((op for op in candidates if accepts(op.schema, node, bools_count=True)), None)
    return found


def accepts(schema: FunctionSchema, node: Node, *, bools_count: bool = False) -> bool:
    """True if the inputs fit the schema's arguments, all of them given; with `bools_count` bools are numbers."""
    few, many = len(schema.arguments), len(node.inputs)
    if many < few or (many > few and not schema.is_vararg):
        return False
    if not schema.is_varret and len(schema.returns) != len(node.outputs):
        return False
    variables: dict[str, Type] = {}
    given = [value.type for value in node.inputs[:few]]
    if bools_count:
        wanted = [unwrap_optional(a.type) for a in schema.arguments]
        given = [w if w is NUMBER and t == BOOL else t for w, t in zip(wanted, given, strict=True)]
    return all(_fits(a.type, t, variables) for a, t in zip(schema.arguments, given, strict=True))


def is_nondeterministic(node: Node) -> bool:
    """True if two such nodes may not be merged, nor one be computed when compiling."""
    op = op_of(node)
    candidates = overloads(node.kind) if op is None else (op,)
    return any(each.nondeterministic for each in candidates)


def has_side_effects(node: Node) -> bool:
    """Does the node itself do more than compute results and write to its inputs?  (Blocks are not looked into.)"""
    kind = node.kind
    if kind in SIDE_EFFECTS:
        return True
    if kind.startswith("prim::") and not overloads(kind):
        return False
    op = op_of(node)
    return op.side_effects if op is not None else node.namespace not in ("prim", "aten", "cuda")


def hidden_writes(node: Node) -> list[Value]:
    """The inputs that the node may write to, though its operator's schema does not say so (`Op.also_writes`)."""
    op = op_of(node)
    if op is None or not op.also_writes:
        return []
    given = dict(zip((a.name for a in op.schema.arguments), node.inputs, strict=False))
    if op.writes_if and constant_value(given[op.writes_if]) is False:
        return []
    return [given[name] for name in op.also_writes if constant_value(given[name]) is not None]


def writes(node: Node) -> bool:
    """True if the node's operator may write to an input, whether or not its schema says so; a group does what its
    nodes do."""
    if "Subgraph" in node.attributes:
        return any(map(writes, node.attr("Subgraph").all_nodes()))
    op = op_of(node)
    return (op is not None and op.is_mutable) or bool(hidden_writes(node))


def is_activation(node: Node) -> bool:
    """True if passes may exchange the functional and the in-place form of the node."""
    op = op_of(node)
    return op is not None and op.activation


def is_pure_pointwise(node: Node) -> bool:
    """True if each element of the output depends on exactly one element of each tensor input."""
    op = op_of(node)
    if op is None or op.scalar is None or op.side_effects or op.nondeterministic:
        return False
    takes = any(isinstance(value.type, TensorType) for value in node.inputs)
    return takes and all(isinstance(value.type, TensorType) for value in node.outputs)


def _fits(formal: Type, given: Type, variables: dict[str, Type]) -> bool:
    """Does a value of type `given` stand for an argument of type `formal`?  `variables` learns type variables."""
    if isinstance(formal, VarType):
        return variables.setdefault(formal.name, given) == given or given.is_subtype_of(variables[formal.name])
    if isinstance(formal, OptionalType):
        return all(m == NONE or _fits(formal.element, m, variables) for m in members_of(given))
    if isinstance(formal, TensorType):
        return isinstance(given, TensorType)
    if type(formal) is type(given) and isinstance(formal, (ListType, DictType, TupleType, LaterType)):
        mine, theirs = formal.contained(), given.contained()
        return len(mine) == len(theirs) and all(_fits(a, b, variables) for a, b in zip(mine, theirs, strict=True))
    return given.is_subtype_of(formal)
