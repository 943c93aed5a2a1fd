"""What compiles, and does not mean what it seems to.

In: the tree of a function and the graph just emitted from it.  Out: `Caution`s.  The meaning stays TorchScript's; who
shows programs to people shows these with them.  What only the text grammar reads otherwise than Python is told by the
places of the tree: Python's order would have put brackets there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from engine.frontend.tree import BINARY_KINDS, Tree
from engine.frontend.views import DictComp, ListComp
from engine.ir.graph import Graph, Node
from engine.lang.errors import Caution
from engine.lang.source import SourceRange
from engine.lang.types import INT

_COMPARISONS: Final = frozenset(["<", "<=", ">", ">=", "==", "!="])
_TO_NUMBER: Final = ("aten::IntImplicit", "aten::FloatImplicit", "aten::ScalarImplicit", "aten::ComplexImplicit")


def cautions(tree: Tree, graph: Graph) -> tuple[Caution, ...]:
    """What in the function may surprise, in the order of the text, each once."""
    found = [*_of_tree(tree), *_of_graph(graph, tree.range)]
    by_place = {(caution.range.start, caution.message): caution for caution in found}
    return tuple(by_place[key] for key in sorted(by_place))


def _of_tree(tree: Tree) -> Iterator[Caution]:
    todo = [tree]
    while todo:
        inner = todo.pop()
        check = _TREES.get(inner.kind)
        if check is not None:
            yield from check(inner)
        todo += inner.trees


def _of_graph(graph: Graph, place: SourceRange) -> Iterator[Caution]:
    for node in graph.all_nodes():
        check = _NODES.get(node.kind)
        if check is not None and node.range is not None and node.range.source is place.source:
            yield from check(node, node.range)


# --- trees ---


def _comparison(tree: Tree) -> Iterator[Caution]:
    left, right = tree.trees
    if left.kind in _COMPARISONS and not _is_bracketed(tree, left):
        first, middle, last = left.child(0).range.text, left.child(1).range.text, right.range.text
        yield Caution(
            f"`{tree.range.text}` compares the bool `{left.range.text}` with {last}",
            tree.range,
            (f"write `{first} {left.kind} {middle} and {middle} {tree.kind} {last}`",),
        )


def _and(tree: Tree) -> Iterator[Caution]:
    left, right = tree.trees
    if left.kind == "or" and not _is_bracketed(tree, left):
        yield Caution(
            f"`and` binds no tighter than `or`: this means `({left.range.text}) and {right.range.text}`",
            tree.range,
            ("write the brackets",),
        )


def _invert(tree: Tree) -> Iterator[Caution]:
    operand = tree.child(0)
    if operand.kind in BINARY_KINDS and "(" not in _between(tree.range.start, operand):
        yield Caution(f"`~` takes all that follows: this means `~({operand.range.text})`", tree.range)


def _list_comp(tree: Tree) -> Iterator[Caution]:
    if _between(tree.range.start, ListComp(tree).element).count("[") > 1:
        yield Caution("the outer of the two brackets adds no list", tree.range, ("append the list to an empty one",))


def _dict_comp(tree: Tree) -> Iterator[Caution]:
    view = DictComp(tree)
    if "[" in _between(view.key.range.end, view.value):
        yield Caution(
            "this is a dict comprehension, not a dict of one list",
            tree.range,
            ("give the list a name in a statement before",),
        )


def _number(tree: Tree) -> Iterator[Caution]:
    text = tree.range.text
    if len(text) > 1 and text.isdigit() and text[0] == "0" and text.strip("0"):
        yield Caution(f"{text} is octal: {tree.text}", tree.range)


def _parameters(tree: Tree) -> Iterator[Caution]:
    names: set[str] = set()
    for param in tree.child(0).trees:
        name = param.child(0).text
        if name in names:
            yield Caution(f"two parameters are called '{name}'; the last one counts", param.range)
        names.add(name)


def _is_bracketed(tree: Tree, left: Tree) -> bool:
    return left.range.start != tree.range.start


def _between(start: int, tree: Tree) -> str:
    return tree.range.source.text[start : tree.range.start]


# --- nodes ---


def _floor_division(node: Node, range: SourceRange) -> Iterator[Caution]:
    if any(value.node.kind in _TO_NUMBER for value in node.inputs):
        yield Caution(
            "a number `//` a tensor makes a number of the tensor, which must have one element",
            range,
            ("use torch.floor_divide to divide by each element",),
        )


def _power(node: Node, range: SourceRange) -> Iterator[Caution]:
    if [value.type for value in node.inputs] == [INT, INT]:
        yield Caution("int ** int is a float", range, ("convert the result with int(...)",))


_TREES: Final[dict[str, Callable[[Tree], Iterable[Caution]]]] = {
    **dict.fromkeys(_COMPARISONS, _comparison), "and": _and, "~": _invert, "list_comp": _list_comp,
    "dict_comp": _dict_comp, "const": _number, "decl": _parameters,
}  # fmt: skip
_NODES: Final[dict[str, Callable[[Node, SourceRange], Iterable[Caution]]]] = {
    "aten::floordiv": _floor_division, "aten::pow": _power,
}  # fmt: skip
