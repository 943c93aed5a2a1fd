"""Guards: what profiles say of values, to be checked where the program runs.

In: the graph of a `ProfilingRecord`.  Out: its profiles replaced by as few `prim::Guard`s as will do, and a `GuardNote`
for each of them that tells what became of it, and why.

    insert      %1 : Tensor = prim::profile(%x)             →   %1 : Float(2, 3) = prim::Guard(%x)
    move        a guard goes to where its value is defined, in the same block
    merge       a guard of a value that one before it has checked as well is dropped
    eliminate   %y : Tensor = aten::mul(%1, %1)             →   no guard of %y: the shape rule of mul makes it certain
                %2 : Float(2, 3) = prim::Guard(%y)

What no guard is for: strides, which kernels check themselves; whether a tensor requires grad, which the key of a plan
tells of its arguments; memory that the program may resize; what only goes into a result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

from engine.executor.profiling.profiles import ValueProfile
from engine.executor.profiling.record import PROFILE, PROFILED
from engine.executor.profiling.settings import GuardedSizes
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.facts.inference import find_facts, resized_memory
from engine.ir.graph import Block, Graph, Node, Value
from engine.lang.records import dataclass
from engine.lang.scalars import CPU, device
from engine.lang.source import SourceRange
from engine.lang.types import TENSOR, TensorType

GUARD: Final = "prim::Guard"
Fate = Literal["kept", "moved", "merged", "eliminated", "not inserted", "left out"]


@dataclass(frozen=True, slots=True)
class GuardNote:
    """The fate of the guard of one use of a value.  `moved` guards are kept, at another place.

    `name` is the value's name as people write it, `number` that of the guard among those that are left, in their order.
    """

    value: str
    user: str
    range: SourceRange | None
    type: TensorType | None
    fate: Fate
    why: str
    name: str = ""
    number: int | None = None


def place_guards(graph: Graph, sizes: GuardedSizes = "constant", everywhere: device | None = CPU) -> list[GuardNote]:
    """Turn the profiles of the graph into guards, of these sizes; the notes in the order of the uses.

    `everywhere` is the device of all tensors; None: any.
    """
    notes: _Notes = {}
    sites = _insert(graph, sizes, notes)
    _move(sites, notes)
    _merge(graph.block, {}, everywhere, sites, notes)
    _eliminate(graph, graph.find_all_nodes(GUARD), everywhere, sites, notes)
    for number, guard in enumerate(graph.find_all_nodes(GUARD)):
        notes[sites[guard]] = replace(notes[sites[guard]], number=number)
    return list(notes.values())


_Notes = dict[ValueProfile, GuardNote]
_Sites = dict[Node, ValueProfile]


def _note(notes: _Notes, of: ValueProfile, type: TensorType | None, fate: Fate, why: str) -> None:
    notes[of] = GuardNote(of.value, of.user, of.range, type, fate, why, of.name)


# ------------------------------------------------------------------ insertion


def _insert(graph: Graph, sizes: GuardedSizes, notes: _Notes) -> _Sites:
    db = AliasDb(graph)
    resized = resized_memory(graph, db)
    sites: _Sites = {}
    for node in graph.find_all_nodes(PROFILE):
        profile: ValueProfile = node.attr(PROFILED)
        type = _guarded_type(profile, sizes)
        why = "it may be resized" if db.memory_of(node.inputs) & resized else _reason_against(node, profile, type)
        _note(notes, profile, type, "not inserted" if why else "kept", why)
        if why or type is None:
            node.output.replace_all_uses_with(node.input)
        else:
            guard = graph.create(GUARD, [node.input], [type]).insert_before(node)
            guard.range = node.range
            sites[guard] = profile
            node.output.replace_all_uses_with(guard.output)
        node.destroy()
    return sites


def _guarded_type(profile: ValueProfile, sizes: GuardedSizes) -> TensorType | None:
    """The part of the profiled type that guards are for."""
    type = profile.latest if sizes == "latest" else profile.type
    if type is None:
        return None
    open = sizes == "none" and type.sizes is not None
    guarded = (None,) * len(type.sizes or ()) if open else type.sizes
    return replace(type, sizes=guarded, strides=None, requires_grad=None)


def _reason_against(node: Node, profile: ValueProfile, type: TensorType | None) -> str:
    if type is None:
        return "no run came here with a tensor"
    if profile.undefined or not isinstance(node.output.type, TensorType):
        return "it may be undefined"
    if type.dtype is None and type.sizes is None:
        return "neither dtype nor rank stayed the same"
    if profile.user == "prim::Return":
        return "it is only handed on"
    return ""


# ------------------------------------------------------------------ moving and merging


def _move(sites: _Sites, notes: _Notes) -> None:
    """Put guards directly behind the definitions of their values, where these are in the same block."""
    for guard, profile in sites.items():
        value = guard.input
        place = _behind_definition(value)
        if value.node.block is not guard.block or place is guard:
            continue
        if place is not None and guard.is_after(place):
            guard.move_before(place)
            _note(notes, profile, _type(guard), "moved", "to its definition")


def _behind_definition(value: Value) -> Node | None:
    """The node behind the definition of a value and the guards that stand there, which keep their order."""
    node = value.node.next
    while node is not None and node.kind == GUARD and node.input.node is value.node:
        node = node.next
    return node


def _type(guard: Node) -> TensorType:
    found = guard.output.type
    assert isinstance(found, TensorType)
    return found


def _merge(block: Block, known: dict[Value, Node], everywhere: device | None, sites: _Sites, notes: _Notes) -> None:
    """Drop guards that one before them makes unnecessary; what is used behind a guard is what it gives."""
    known = dict(known)
    for node in block.nodes():
        if node.kind == GUARD:
            before = known.get(node.input)
            if before is not None and implies(_type(before), _type(node), everywhere):
                _drop(node, sites, notes, "merged", f"with the guard of {sites[before].user}")
                continue
            _replace_behind(node)
            known[node.input] = known[node.output] = node
        for inner in node.blocks:
            _merge(inner, known, everywhere, sites, notes)


def _replace_behind(guard: Node) -> None:
    """Let what the guard gives stand for its value behind it, in its block and the blocks in there."""
    for user, offset in guard.input.uses:
        if user is not guard and _is_within(user, guard.block) and user.is_after(guard):
            user.replace_input(offset, guard.output)


def _is_within(node: Node, block: Block | None) -> bool:
    at: Node | None = node
    while at is not None and at.block is not block:
        at = at.block.owner if at.block is not None else None
    return at is not None


def _drop(guard: Node, sites: _Sites, notes: _Notes, fate: Fate, why: str) -> None:
    _note(notes, sites[guard], _type(guard), fate, why)
    guard.output.replace_all_uses_with(guard.input)
    guard.destroy()


def implies(fact: TensorType, wanted: TensorType, everywhere: device | None = CPU) -> bool:
    """True if every tensor of the one type is of the other, as far as guards look; all are on the device `everywhere`,
    if there is one."""
    if wanted.device is not None and (fact.device or everywhere) != wanted.device:
        return False
    if wanted.dtype is not None and fact.dtype != wanted.dtype:
        return False
    if wanted.sizes is None:
        return True
    if fact.sizes is None or len(fact.sizes) != len(wanted.sizes):
        return False
    return all(want is None or have == want for have, want in zip(fact.sizes, wanted.sizes, strict=True))


# ------------------------------------------------------------------ elimination


def _eliminate(graph: Graph, guards: list[Node], everywhere: device | None, sites: _Sites, notes: _Notes) -> None:
    """Drop the guards of what is certain from the guards before and the operators' shape rules."""
    certain = _certain(graph, guards, everywhere)
    if not _stays_certain(graph, certain, everywhere):  # a loop may have made two guards each other's reason
        certain = _one_by_one(graph, certain, everywhere)
    for guard in certain:
        _drop(guard, sites, notes, "eliminated", _source_of_certainty(guard.input))


def _source_of_certainty(value: Value) -> str:
    if value.node.kind != "prim::Param":
        return f"by the shape rule of {value.node.kind}"
    is_argument = value.node.block is None or value.node.block.owner is None
    return "the plan is for such arguments" if is_argument else "every round begins with this"


def _certain(graph: Graph, guards: list[Node], everywhere: device | None) -> list[Node]:
    facts = find_facts(graph)
    return [guard for guard in guards if implies(facts.get(guard.input, TENSOR), _type(guard), everywhere)]


def _stays_certain(graph: Graph, guards: list[Node], everywhere: device | None) -> bool:
    """True if the types of these guards are certain also while none of them tells anything."""
    types = [_type(guard) for guard in guards]
    for guard in guards:
        guard.output.set_type(TENSOR)
    facts = find_facts(graph)
    for guard, type in zip(guards, types, strict=True):
        guard.output.set_type(type)
    pairs = zip(guards, types, strict=True)
    return all(implies(facts.get(guard.input, TENSOR), type, everywhere) for guard, type in pairs)


def _one_by_one(graph: Graph, guards: list[Node], everywhere: device | None) -> list[Node]:
    """As many of the guards as are certain without each other, the first ones first."""
    found: list[Node] = []
    for guard in guards:
        if _stays_certain(graph, [*found, guard], everywhere):
            found.append(guard)
    return found
