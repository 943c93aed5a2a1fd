"""`if`, and the variables after it.

In: a condition and two branches.  Out: a `prim::If` whose blocks store the variables; of a condition
known while compiling only the branch that is taken.  A variable can be used afterwards if every path
there sets it, to types that unify.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.frontend.emit.conditions import condition, refine
from engine.frontend.emit.emitter import Emitter
from engine.frontend.emit.environment import Environment, Variable
from engine.frontend.emit.refine import Condition, Types
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import If
from engine.ir.graph import Block
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import ANY, OptionalType, Type, UnionType, unify


def if_statement(e: Emitter, tree: Tree) -> None:
    view = If(tree)
    branch(e, condition(e, view.condition), view.true_branch, view.false_branch, tree.range)


def branch(e: Emitter, test: Condition, true: Sequence[Tree], false: Sequence[Tree], range: SourceRange) -> None:
    """Compile `if test: true else: false`."""
    if test.static is not None:
        refine(e, test.refinements.true if test.static else test.refinements.false, range)
        e.statements(true if test.static else false)
        return
    node = e.node("prim::If", [test.value], (), range)
    blocks = [node.add_block(), node.add_block()]
    frames = [
        _compile(e, blocks[0], true, test.refinements.true, range),
        _compile(e, blocks[1], false, test.refinements.false, range),
    ]
    exits = [block in e.exits for block in blocks]
    if all(exits):
        e.exits.add(e.environment.block)
        return
    _merge(e, frames, exits, range)
    for frame, leaves in zip(frames, exits, strict=True):
        if not leaves:
            e.environment.remove_with(frame)


def _compile(e: Emitter, block: Block, trees: Sequence[Tree], types: Types, range: SourceRange) -> Environment:
    with e.inside(block) as frame:
        refine(e, types, range)
        e.statements(trees)
    return frame


def _merge(e: Emitter, frames: Sequence[Environment], exits: Sequence[bool], range: SourceRange) -> None:
    """Define the variables that both branches (or the only one that goes on) set."""
    sides = ("true", "false")
    names: set[str] = set()
    for frame, other, other_exits, side in zip(frames, frames[::-1], exits[::-1], sides[::-1], strict=True):
        for name in frame.types:
            opposite = other.find(name)
            if other_exits or isinstance(opposite, Variable):
                names.add(name)
                continue
            missing = "is not defined" if opposite is None else "does not stand for a value"
            e.environment.errors[name] = (f"{name} {missing} in the {side} branch", range)
    for name in sorted(names):
        found = [None if leaves else _type_of(frame, name) for frame, leaves in zip(frames, exits, strict=True)]
        types = [type for type in found if type is not None]
        if not types:
            continue
        joined = types[0] if len(types) == 1 else _joined(e, name, types, range)
        if joined is not None:
            e.environment.define(name, joined)
            _store_never(
                e, name, types[0], [frame.block for frame, leaves in zip(frames, exits, strict=True) if leaves]
            )


def _store_never(e: Emitter, name: str, type: Type, blocks: Sequence[Block]) -> None:
    """Give the variable an uninitialised value at the end of a branch that exits early."""
    for block in blocks:
        with e.graph.inserting_at(block):
            never = e.value("prim::Uninitialized", [], type)
            e.node("prim::Store", [never], ()).set_attr("name", name + e.environment.suffix)


def _type_of(frame: Environment, name: str) -> Type | None:
    variable = frame.find(name)
    return variable.type if isinstance(variable, Variable) else None


def _joined(e: Emitter, name: str, types: Sequence[Type], range: SourceRange) -> Type | None:
    before = e.environment.find(name)
    known = before.type if isinstance(before, Variable) else None
    joined = unify(*types, default_to_union=known is ANY or isinstance(known, (OptionalType, UnionType)))
    if joined is not None:
        return joined
    text = (
        f"Type mismatch: {name} is set to type {types[0].annotation_str} in the true branch and type "
        f"{types[1].annotation_str} in the false branch"
    )
    if before is not None:
        raise CompileError(text, range)
    e.environment.errors[name] = (text, range)
    return None
