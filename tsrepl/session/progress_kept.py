"""Progress of loops and branches: the names that an entry has bound, whether it ends or not.

In: the statement of an entry.  Out: the same with a store behind each assignment inside it, into a dictionary that the
entry gets as an argument; and after the run the names in that dictionary, with the static types of their values.  Each
loop has a number in a list, too, which is 0 while it does not run: a `while` loop counts its iterations there, since
nothing else tells how many there were.

    for i in range(9):          for i in range(9):          while c:          while c:
        x = f(x)          ->        $kept["i"] = i              x = f(x)  ->      $rounds[0] += 1
        for j in x:                 x = f(x)                                      x = f(x)
            y = j                   $kept["x"] = x                                $kept["x"] = x
                                    $rounds[1] = 1
                                    for j in x:
                                        ...
                                    $rounds[1] = 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from engine.frontend.syntax.name_uses import names_of
from engine.frontend.syntax.tree import Tree, variables
from engine.frontend.syntax.views import Assign, AugAssign, Const, For, If, StringLiteral, Subscript, Var, While, With
from engine.ir.constants import constant_value, type_of
from engine.ir.graph import Graph, Node
from engine.ir.unit import Function
from engine.lang.source import SourceRange
from engine.lang.types import ANY, INT, STR, DictType, ListType, Type
from tsrepl.session.values import summary

KEPT: Final = "$kept"
"""The name of the dictionary, which no program can write."""
KEPT_TYPE: Final = DictType(STR, ANY)
ROUNDS: Final = "$rounds"
"""The name of the list that counts."""
ROUNDS_TYPE: Final = ListType(INT)


class Keeping:
    """A statement that keeps what it binds.  `tree` is the statement itself if it is neither a loop nor a branch.

    `loops` are the loops in it, in the order of their numbers.
    """

    def __init__(self, statement: Tree, without: Iterable[str] = ()) -> None:
        self.loops: list[Tree] = []
        self._statement, self._without = statement, frozenset(without)
        self.tree = self._storing(statement)

    def progress(self, kept: Mapping[str, Any], rounds: Sequence[int]) -> str:
        """Where the loops that run stand: "the iteration where i = 3, j = 7", "iteration 4"; "" where there is none."""
        said: list[str] = []
        running = [loop for number, loop in enumerate(self.loops) if rounds[number] or loop is self._statement]
        for is_while, loops in groupby(running, lambda loop: loop.kind == While.kind):
            if is_while:
                said += [f"iteration {rounds[self.loops.index(loop)]:,}" for loop in loops]
                continue
            names = [name for loop in loops for name in loop_counters(loop) if name in kept]
            counters = ", ".join(f"{name} = {summary(kept[name])}" for name in names)
            said += [f"the iteration where {counters}"] if counters else []
        return ", in it ".join(said)

    def _storing(self, statement: Tree) -> Tree:
        rule = _RULES.get(statement.kind)
        return statement if rule is None else rule(self, statement)

    def _body(self, statements: Iterable[Tree]) -> list[Tree]:
        return [each for statement in statements for each in self._inner(statement)]

    def _inner(self, statement: Tree) -> list[Tree]:
        if statement.kind in (For.kind, While.kind):
            number, range = len(self.loops), statement.child(0).range
            begins = [_set_rounds(number, "1", range)] if statement.kind == For.kind else []
            return [*begins, self._storing(statement), _set_rounds(number, "0", range)]
        if statement.kind in _RULES:
            return [self._storing(statement)]  # its own statements have their stores
        return [statement, *self._store(names_of([statement]).assigned, statement.range)]

    def _store(self, names: Iterable[str], range: SourceRange) -> list[Tree]:
        wanted = [name for name in names if name not in self._without]
        return [
            Assign.make(range, [_item(KEPT, StringLiteral, name, range)], Var.make(range, name), None)
            for name in wanted
        ]

    def _for(self, tree: Tree) -> Tree:
        self.loops.append(tree)
        loop = For(tree)
        counters = self._store(loop_counters(tree), tree.child(0).range)
        return For.make(tree.range, loop.targets, loop.iterables, [*counters, *self._body(loop.body)])

    def _while(self, tree: Tree) -> Tree:
        loop, range = While(tree), While(tree).condition.range
        count = _item(ROUNDS, Const, str(len(self.loops)), range)
        self.loops.append(tree)
        step = AugAssign.make(range, count, "+", Const.make(range, "1"))
        return While.make(tree.range, loop.condition, [step, *self._body(loop.body)])

    def _if(self, tree: Tree) -> Tree:
        branches = If(tree)
        bodies = self._body(branches.true_branch), self._body(branches.false_branch)
        return If.make(tree.range, branches.condition, *bodies)

    def _with(self, tree: Tree) -> Tree:
        return With.make(tree.range, tree.child(0).trees, self._body(With(tree).body))


_RULES: Final[dict[str, Callable[[Keeping, Tree], Tree]]] = {
    For.kind: Keeping._for, While.kind: Keeping._while, If.kind: Keeping._if, With.kind: Keeping._with,
}  # fmt: skip


def loop_counters(loop: Tree) -> list[str]:
    """The names that a loop goes through, which tell its iteration."""
    return [name for target in For(loop).targets for name in variables(target)] if loop.kind == For.kind else []


def _set_rounds(number: int, text: str, range: SourceRange) -> Tree:
    return Assign.make(range, [_item(ROUNDS, Const, str(number), range)], Const.make(range, text), None)


def _item(name: str, kind: type[Const | StringLiteral], key: str, range: SourceRange) -> Tree:
    return Subscript.make(range, Var.make(range, name), [kind.make(range, key)])


def types_kept(function: Function, values: Mapping[str, Any]) -> dict[str, Type]:
    """The types of the values that were stored, by name."""
    stored: dict[str, set[Type]] = {}
    for node in _stores(function.graph):
        stored.setdefault(constant_value(node.inputs[1]), set()).add(node.inputs[2].type)
    return {name: _only(stored.get(name, set())) or type_of(value) for name, value in values.items()}


def _only(types: set[Type]) -> Type | None:
    return next(iter(types)) if len(types) == 1 else None


def _stores(graph: Graph) -> Iterator[Node]:
    kept = next((each for each in graph.inputs if each.type == KEPT_TYPE and each.debug_name.startswith(KEPT)), None)
    return (use.user for use in (() if kept is None else kept.uses) if use.user.kind == "aten::_set_item")
