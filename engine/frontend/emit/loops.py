"""Loops and comprehensions.

In: `for`, `while`, `[f(x) for x in y]`, `{k: v for x in y}`, `break`, `continue`.  Out: `prim::Loop` with a
block for the body and one for the condition; a loop over a tuple or a module list is unrolled.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.frontend.emit.assignments import assign_targets, check_targets
from engine.frontend.emit.conditions import to_bool
from engine.frontend.emit.emitter import Emitter, LoopKind
from engine.frontend.emit.literals import as_hinted, check_key, common_type, wanted_container, wrong_elements
from engine.frontend.sugared.sugared_value import SugaredIterable, SugaredValue
from engine.frontend.sugared.values import SimpleValue
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import DictComp, For, ListComp, TupleLiteral, While
from engine.ir.graph import Node
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import INT, STR, TENSOR, DictType, ListType, Type, unify

FOREVER: Final = 2**63 - 1
"""The trip count of a `while`."""

Body = Callable[[], None]


def while_statement(e: Emitter, tree: Tree) -> None:
    view = While(tree)
    node = e.node("prim::Loop", [e.literal(FOREVER, tree.range)], (), tree.range)
    body, test = node.add_block(), node.add_block()
    with e.inside(test):
        test.register_output(to_bool(e, e.expression(view.condition), view.condition.range))
    body.add_input(INT)
    e.loops.append(LoopKind.RUNNING)
    with e.inside(body) as frame:
        e.statements(view.body)
    e.environment.remove_with(frame)
    e.loops.pop()


def for_statement(e: Emitter, tree: Tree) -> None:
    view = For(tree)
    if len(view.iterables) != 1:
        raise CompileError("List of iterables is not supported currently", tree.range, hints=("loop over zip(xs, ys)",))
    loop_over(e, view.targets, view.iterables[0], lambda: e.statements(view.body), tree.range)


def loop_over(e: Emitter, targets: Sequence[Tree], itr: Tree, body: Body, range: SourceRange) -> None:
    """Run `body` for every item of `itr`, assigned to `targets`."""
    iterable = e.sugared(itr).iterate(e, itr.range.if_beside(range))
    check_targets(targets, range)
    if iterable.static_length is not None:
        _unrolled(e, targets, iterable, iterable.static_length, body, range)
        return
    node = e.node("prim::Loop", [iterable.length(e, range)], (), range)
    _running(e, node, targets, iterable, body, range)


def _running(
    e: Emitter, node: Node, targets: Sequence[Tree], iterable: SugaredIterable, body: Body, range: SourceRange
) -> None:
    block, test = node.add_block(), node.add_block()
    with e.graph.inserting_at(node):
        test.register_output(e.constant(True, range))
    index = block.add_input(INT)
    e.loops.append(LoopKind.RUNNING)
    with e.inside(block) as frame:
        item = iterable.element(e, index, range)
        assign_targets(e, _as_one_target(targets, range), [item], range)
        body()
    e.environment.remove_with(frame)
    e.loops.pop()


def _unrolled(
    e: Emitter, targets: Sequence[Tree], iterable: SugaredIterable, length: int, body: Body, range: SourceRange
) -> None:
    e.loops.append(LoopKind.UNROLLED)
    for index in builtins.range(length):
        e.literal(index, range)
        item = iterable.static_element(e, index, range)
        assign_targets(e, _as_one_target(targets, range), [item], range)
        body()
    e.loops.pop()


def _as_one_target(targets: Sequence[Tree], range: SourceRange) -> Sequence[Tree]:
    """`for a, b in …` assigns every item to the tuple `(a, b)`."""
    return targets if len(targets) == 1 else [TupleLiteral.make(range, targets)]


def break_statement(e: Emitter, tree: Tree) -> None:
    _leave(e, tree, "prim::BreakStmt")


def continue_statement(e: Emitter, tree: Tree) -> None:
    _leave(e, tree, "prim::ContinueStmt")


def _leave(e: Emitter, tree: Tree, kind: str) -> None:
    if not e.loops:
        raise CompileError(
            f"SyntaxError: '{tree.kind}' outside loop", tree.range, hints=("it belongs inside `for` or `while`",)
        )
    if e.loops[-1] is LoopKind.UNROLLED:
        raise CompileError(
            "Because we emit iteration over modulelists or tuples as unrolled loops, we do not support break or "
            "continue inside the body of these loops",
            tree.range,
            hints=("loop over a list, or let an `if` skip what is not wanted",),
        )
    e.node(kind, [], (), tree.range)


# -- comprehensions


def list_comprehension(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    view = ListComp(tree)
    wanted = wanted_container(hint, ListType, tree)
    result = e.value("prim::ListConstruct", [], wanted or ListType(TENSOR), tree.range)
    known = [wanted] if wanted is not None else []

    def body() -> None:
        value = e.expression(view.element)
        if known:
            _check_element(known[0].contained()[0], value.type, tree, annotated=wanted is not None)
            e.retype(value, known[0].contained()[0])
        else:
            known.append(ListType(value.type))
            result.set_type(known[0])
        e.insert("aten::append", [result, value], tree.range)

    _in_own_scope(e, [view.target], view.iterable, body, tree)
    return SimpleValue(result)


def dict_comprehension(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    view = DictComp(tree)
    wanted = wanted_container(hint, DictType, tree)
    result = e.value("prim::DictConstruct", [], wanted or DictType(STR, TENSOR), tree.range)
    known = [wanted] if wanted is not None else []

    def body() -> None:
        key, value = e.expression(view.key), e.expression(view.value)
        check_key(key.type, tree)
        if known:
            _check_pair(known[0], {"key": key.type, "value": value.type}, tree)
            e.retype(value, known[0].contained()[1])
        else:
            known.append(DictType(key.type, value.type))
            result.set_type(known[0])
        e.insert("aten::_set_item", [result, key, value], tree.range)

    _in_own_scope(e, [view.target], view.iterable, body, tree)
    return SimpleValue(as_hinted(e, result, hint))


def _check_element(element: Type, found: Type, tree: Tree, *, annotated: bool) -> None:
    """Raises CompileError unless each iteration of an unrolled comprehension gives the type of the first."""
    if not found.is_subtype_of(element) and unify(element, found) != element:
        raise wrong_elements(element, found if annotated else common_type([element, found]), tree)


def _check_pair(wanted: Type, found: Mapping[str, Type], tree: Tree) -> None:
    for part, (what, given) in zip(wanted.contained(), found.items(), strict=True):
        if not given.is_subtype_of(part) and unify(part, given) != part:
            raise CompileError(
                f"Dict type annotation `{wanted.annotation_str}` did not match the type of an actual {what} type "
                f"`{given.annotation_str}`",
                tree.range,
            )


def _in_own_scope(e: Emitter, targets: Sequence[Tree], itr: Tree, body: Body, tree: Tree) -> None:
    """Run in a scope of its own: a comprehension's variables are stored under names that nothing else uses."""
    with e.inside(e.environment.block, suffix=e.temporary()):
        loop_over(e, targets, itr, body, tree.range)
