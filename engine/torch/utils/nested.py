"""`torch.utils._pytree`: functions over the leaves of nested lists, tuples and dicts.

In: nested containers.  Out: their leaves, containers of the same shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """The same containers with `func` of each leaf, and of those at its place in the others."""
    if isinstance(tree, dict):
        return type(tree)((key, tree_map(func, part, *(rest[key] for rest in rests))) for key, part in tree.items())
    if isinstance(tree, (list, tuple)):
        parts = [tree_map(func, *each) for each in zip(tree, *rests, strict=True)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return func(tree, *rests)


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """The same containers with `func` of each leaf of that type."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves in order."""
    return list(_leaves(tree))


def tree_flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves in order, and the containers, from which `tree_unflatten` makes the whole again."""
    numbers = iter(range(len(tree_leaves(tree))))
    return tree_leaves(tree), tree_map(lambda _: next(numbers), tree)


def tree_unflatten(leaves: Sequence[Any], treespec: Any) -> Any:
    """The containers with these leaves."""
    return tree_map(lambda number: leaves[number], treespec)


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, (list, tuple, dict)):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(part)
    else:
        yield tree
