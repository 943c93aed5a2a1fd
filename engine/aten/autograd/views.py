"""Writes to tensors that gradients flow through, and views of them.

In: the tensor that an in-place operator writes.  Out: its new history.  A write to a view is a write to its base: the
base's new node (`CopySlices`) sends the gradient of the part that was written through the operator, the rest past
it.  Other views of that memory find their new node, a part of the base, when they are next asked for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.aten.autograd.node import Edge, Form, Gradient, Node, edge_of
from engine.aten.dispatch.compose import run
from engine.aten.values.hooks import HOOKS
from engine.aten.values.storage import address
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import COMPLEX, FLOATING, PART_OF, Array, as_strided
from engine.lang.errors import OperatorError


class Placement(NamedTuple):
    """Placement of a view in its base, both as shapes and byte strides.

    Of a view of real numbers in a complex base (`as_parts`), the base's are those of its real and imaginary parts.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    base_shape: tuple[int, ...]
    base_strides: tuple[int, ...]
    itemsize: int
    as_parts: bool = False

    def indices(self) -> Tensor:
        """For each element of the view, its flat index in the base."""
        numbers = np.arange(int(np.prod(self.base_shape))).reshape(self.base_shape)
        span = 1 + sum((n - 1) * s for n, s in zip(self.base_shape, self.base_strides, strict=True)) // self.itemsize
        memory = np.zeros(max(span, 1), np.int64)
        as_strided(memory, self.base_shape, self._scaled(self.base_strides))[...] = numbers
        shown = as_strided(memory[self.offset // self.itemsize :], self.shape, self._scaled(self.strides))
        return Tensor(np.array(shown).reshape(-1))

    def _scaled(self, strides: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(8 * s // self.itemsize for s in strides)


def place_of(tensor: Tensor) -> Placement | None:
    """Placement of a view in its base; None for a tensor that is no view."""
    if tensor._base is None:
        return None
    view, base = tensor.array, tensor._base.array
    as_parts = base.dtype in COMPLEX and view.dtype in FLOATING and base.itemsize == 2 * view.itemsize
    if as_parts:
        base = np.ndarray((*base.shape, 2), view.dtype, base, strides=(*base.strides, view.itemsize))
    if view.itemsize != base.itemsize:
        raise OperatorError("gradients through views of another element size are not supported")
    offset = address(view) - address(base) if view.size and base.size else 0
    return Placement(view.shape, view.strides, offset, base.shape, base.strides, base.itemsize, as_parts)


class CopySlices(Node):
    """A write to a part of a tensor: the first edge is that of the tensor before it, the others the operator's."""

    def __init__(
        self, base: Tensor, operator: Node, of_target: int | None, before: Placement, after: Placement
    ) -> None:
        others = [e for i, e in enumerate(operator.edges) if i != of_target]
        super().__init__([edge_of(base), *others])
        self.operator, self.of_target = operator, of_target
        self.before, self.after = before, after

    def apply(self, gradients: list[Gradient]) -> Sequence[Gradient]:
        assert gradients[0] is not None
        whole = run("view_as_real", gradients[0]) if self.after.as_parts else gradients[0]
        flat = run("reshape", whole, [-1])
        written = self.after.indices()
        part = run("index_select", flat, 0, written).reshape(list(self.after.shape))
        found = list(self.operator.apply([part]))
        to_target = None if self.of_target is None else found.pop(self.of_target)
        rest = run("index_fill.int_Scalar", flat, 0, written, 0)
        if to_target is not None:
            rest = run("index_add", rest, 0, self.before.indices(), to_target.reshape([-1]), 1)
        return [_joined(rest, self.before) if self.edges[0] is not None else None, *found]

    def release(self) -> None:
        self.operator.release()


def _joined(flat: Tensor, place: Placement) -> Tensor:
    """The gradient of a base, from one number for each of its elements."""
    shaped: Tensor = flat.reshape(list(place.base_shape))
    return run("view_as_complex", shaped) if place.as_parts else shaped


class AsStridedBackward0(Node):
    """A view of a base that was written to: a part of it."""

    def __init__(self, base: Tensor, place: Placement) -> None:
        super().__init__([edge_of(base)])
        self.place = place
        self.dtype = PART_OF[base.array.dtype] if place.as_parts else base.array.dtype

    def apply(self, gradients: list[Gradient]) -> Sequence[Gradient]:
        assert gradients[0] is not None
        zeros = Tensor(np.zeros(int(np.prod(self.place.base_shape)), self.dtype))
        spread = run("index_add", zeros, 0, self.place.indices(), gradients[0].reshape([-1]), 1)
        return [_joined(spread, self.place)]


def history(view: Tensor) -> Node | None:
    """The node of a view: a new one if its memory was written to since, and its base has a history."""
    base = view._base
    assert base is not None
    version = view._version
    if view._seen != version and base._grad_fn is not None:
        place = place_of(view)
        assert place is not None
        move_retained(view, AsStridedBackward0(base, place))
        view._seen = version
    node: Node | None = view._grad_fn
    return node


def rebase(target: Tensor, node: Node, of_target: int | None, before: Placement | None, is_moved: bool = True) -> None:
    """The target was written to by the operator of `node`; its own gradient is that of edge `of_target`.

    `is_moved`: it may show another part of its base than before.
    """
    after = place_of(target) if is_moved else before
    if before is None or after is None:
        _become(target, node)
        return
    base = target._base
    assert base is not None
    _become(base, CopySlices(base, node, of_target, before, after))
    target._seen = -1  # its own node is made when it is asked for


def _become(tensor: Tensor, node: Node) -> None:
    if not tensor._requires_grad:
        watch(tensor)
    move_retained(tensor, node)


def watch(tensor: Tensor) -> None:
    """Let operators be asked about gradients, whatever they are given, while this tensor lives."""
    HOOKS.rebased += 1
    weakref.finalize(tensor, _forget_one).atexit = False


def _forget_one() -> None:
    HOOKS.rebased -= 1


def move_retained(tensor: Tensor, node: Node) -> None:
    """Make the tensor the result of another node, to which its `retain_grad` goes along."""
    old = tensor._grad_fn
    retained = None if old is None or old.retained is None else old.retained.pop(tensor.output_nr, None)
    tensor.attach(node, 0)
    if retained is not None:
        node.retained = {0: retained}


def check_write(target: Tensor) -> None:
    """Raise OperatorError where gradients cannot follow a write."""
    if target._base is not None and target._view_kind:
        if target._view_kind == "no_grad" and not target._base.requires_grad:
            return
        raise OperatorError(_refused_view(target), hints=("use an operator that returns a new tensor",))
    if not target.requires_grad:
        return
    if target._base is not None and target._base.is_leaf:
        raise OperatorError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
            hints=("write to it under torch.no_grad()",),
        )
    if target.is_leaf:
        raise OperatorError(
            "a leaf Variable that requires grad is being used in an in-place operation.",
            hints=("write to it under torch.no_grad()",),
        )


def _refused_view(target: Tensor) -> str:
    node = target.grad_fn
    if node is None or target._view_kind == "no_grad":
        what = (
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Move both the "
            "view and the inplace operation either inside the no_grad block or out of it."
        )
    else:
        name = node.name().partition("Backward")[0]
        what = f"Output {target.output_nr} of {name} is a view and is being modified inplace."
        if target._view_kind == "function":
            return (
                f"{what} This view was created inside a custom Function (or because an input was returned as-is) and "
                "the gradient of that Function would be lost."
            )
    if target._view_kind == "no_grad":
        return what
    return (
        f"{what} This view is the output of a function that returns multiple views. Such functions do not allow the "
        "output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
    )


def copy_with_history(tensor: Tensor) -> Tensor:
    """A copy of the values, for a formula that reads a tensor which its operator overwrites."""
    copy = Tensor(_copied(tensor.array))
    if tensor.grad_fn is not None:
        copy.attach(tensor.grad_fn, tensor.output_nr)
    return copy


def _copied(array: Array) -> Array:
    return np.array(array, order="K")


def form_of(tensor: Tensor) -> Form:
    return Form(tensor.array.shape, tensor.array.dtype)


def edges_of(values: Sequence[object]) -> list[Edge | None]:
    """An edge for each value; None for values that are not tensors or do not require grad."""
    return [edge_of(v) if isinstance(v, Tensor) else None for v in values]
