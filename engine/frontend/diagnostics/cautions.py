"""Cautions: code that compiles, and does not mean what it seems to.

In: the tree of a function and the graph just emitted from it.  Out: `Caution`s, which are shown beside the program; its
meaning stays TorchScript's.  Code that only the text grammar reads otherwise than Python is found by the ranges in the
tree: in Python's order there would have to be brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from engine.frontend.syntax.tree import BINARY_KINDS, Tree
from engine.frontend.syntax.views import Apply, DictComp, For, ListComp, Var
from engine.ir.constants import constant_value
from engine.ir.graph import Graph, Node
from engine.lang.deferred import pattern_of
from engine.lang.errors import Caution
from engine.lang.source import SourceRange
from engine.lang.types import FLOAT, INT

_GROWING: Final = ("append", "insert", "pop", "remove", "clear", "extend")
"""Methods that change the length of a list."""
_COMPARISONS: Final = frozenset(["<", "<=", ">", ">=", "==", "!="])
_TO_NUMBER: Final = ("aten::IntImplicit", "aten::FloatImplicit", "aten::ScalarImplicit", "aten::ComplexImplicit")


def cautions(tree: Tree, graph: Graph) -> tuple[Caution, ...]:
    """The cautions of a function in the order of its text, each once."""
    found = [*_of_tree(tree), *_of_graph(graph, tree.range)]
    by_place = {(caution.range.start, caution.message): caution for caution in found}
    return tuple(by_place[key] for key in sorted(by_place))


def of_lost_write(node: Node, range: SourceRange) -> Caution:
    """The caution for a write that the compiler removes.

    It assumes that a loop before the write runs, or that `+=` gives another list.
    """
    if node.inputs[0].node.kind == "aten::add_":
        return Caution(
            "this write is removed: TorchScript takes what `+=` gives for another list",
            range,
            ("call extend() instead of `+=`, or write to the list by its other name",),
        )
    return Caution(
        "this write is removed: the loop that assigns the variable is taken to run at least once",
        range,
        ("give what the loop assigns another name",),
    )


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


def _apply(tree: Tree) -> Iterator[Caution]:
    """Caution for a slice that goes backwards from or to a place that is left out."""
    view = Apply(tree)
    parts = view.inputs
    if view.callee.range.text != "slice" or len(parts) != 3 or not parts[2].range.text.startswith("-"):
        return
    if parts[0].kind == "None":
        yield Caution(f"`{tree.range.text}` starts at the first element", tree.range, ("write x[::-1]",))


def _for(tree: Tree) -> Iterator[Caution]:
    """Caution for a list that changes while a loop goes through it."""
    view = For(tree)
    if len(view.iterables) != 1 or view.iterables[0].kind != "variable":
        return
    name = Var(view.iterables[0]).name
    todo = list(view.body)
    while todo:
        inner = todo.pop()
        if inner.kind == "apply" and inner.child(0).range.text in {f"{name}.{method}" for method in _GROWING}:
            yield Caution(f"the loop ends after as many items as {name} had when it began", inner.range)
        todo += inner.trees


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


def _rounding(node: Node, range: SourceRange) -> Iterator[Caution]:
    if len(node.inputs) == 1 and node.inputs[0].type in (INT, FLOAT):
        yield Caution("round gives a float", range, ("convert the result with int(...)",))


def _length(node: Node, range: SourceRange) -> Iterator[Caution]:
    text = constant_value(node.inputs[0])
    if isinstance(text, str) and not text.isascii():
        yield Caution(f"strings are bytes: this one has {len(text.encode('utf-8', 'replace'))}", range)
    if node.inputs[0].node.kind == "prim::ListConstruct" and "[" not in range.text:
        yield Caution("len of what has no length is 1", range)


def _text_of_float(node: Node, range: SourceRange) -> Iterator[Caution]:
    if node.inputs[0].type is FLOAT:
        yield Caution("floats are written as C++ does it: 1.0 as '1.', 0.1 as '0.10000000000000001'", range)


def _format(node: Node, range: SourceRange) -> Iterator[Caution]:
    text = constant_value(node.inputs[0])
    if not isinstance(text, str):
        return
    found = _FIELD.search(text)
    if found is not None:
        yield Caution(f"only {{}} is replaced: '{found[0]}' stays as it is", range)
    elif text.count("{}") < len(node.inputs) - 1:
        places, values = text.count("{}"), len(node.inputs) - 1
        yield Caution(f"there are {values} values for {places} places; the rest is left out", range)


def _percent(node: Node, range: SourceRange) -> Iterator[Caution]:
    text = constant_value(node.inputs[0])
    found = _SPECIFIER.search(text.replace("%%", "")) if isinstance(text, str) else None
    if found is not None:
        yield Caution(f"'{found[0]}' will raise when it runs", range, ("there are %s, %d, %i, %f, %e and %c",))


def _extreme(node: Node, range: SourceRange) -> Iterator[Caution]:
    name = node.kind.rpartition("::")[2]
    if any(value.node.kind in _TO_NUMBER for value in node.inputs):
        yield Caution(
            f"{name} compares numbers: each tensor must have one element, and becomes an int",
            range,
            (f"use torch.{name}imum for each element",),
        )


def _dtype(node: Node, range: SourceRange) -> Iterator[Caution]:
    if any(use.user.kind in _SHOWING for use in node.output.uses):
        yield Caution(_DTYPE_IS_A_NUMBER, range, ("compare it with torch.float32 and the like",))


_DTYPE_IS_A_NUMBER: Final = "a dtype is a number here: torch.float32 is 6, torch.int64 is 4"
_FIELD: Final = pattern_of(r"\{[^{}]+\}")
_SPECIFIER: Final = pattern_of(r"%[^sdifec]")
_SHOWING: Final = frozenset(["prim::ReturnStmt", "prim::Print", "aten::str", "aten::format"])
_TREES: Final[dict[str, Callable[[Tree], Iterable[Caution]]]] = {
    **dict.fromkeys(_COMPARISONS, _comparison), "and": _and, "~": _invert, "list_comp": _list_comp,
    "dict_comp": _dict_comp, "const": _number, "decl": _parameters, "for": _for, "apply": _apply,
}  # fmt: skip
_NODES: Final[dict[str, Callable[[Node, SourceRange], Iterable[Caution]]]] = {
    "aten::floordiv": _floor_division, "aten::pow": _power, "aten::round": _rounding, "aten::len": _length,
    "aten::str": _text_of_float, "aten::format": _format, "aten::percentFormat": _percent, "prim::min": _extreme,
    "prim::max": _extreme, "prim::dtype": _dtype,
}  # fmt: skip
