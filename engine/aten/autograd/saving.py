"""Tensors saved by nodes, and hooks that save something else in their place.

In: a tensor that a backward pass will need.  Out: a `Saved`; inside `saved_tensors_hooks`, one that holds what the
program's `pack` made of the tensor (a file's name, fewer bits), and gives what its `unpack` makes of that.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from engine.aten.autograd.node import Node, Saved
from engine.aten.dispatch.grad_mode import MODE, Result, with_recording
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorTypeError

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]


def save(tensor: Tensor, output: int = -1) -> Saved:
    """Save the tensor for a node; `output` is its index among the node's results (-1: it is not a result)."""
    hooks = MODE.packing
    return Saved(tensor, output) if hooks is None else Packed(tensor, output, *hooks)


class Packed(Saved):
    """A tensor that a program's hooks keep."""

    __slots__ = ("unpacker",)

    def __init__(self, tensor: Tensor, output: int, pack: Pack, unpack: Unpack) -> None:
        self.output, self.version, self.storage, self.unpacker = output, 0, None, unpack
        self.held = _apart(pack, Tensor(tensor.array, storage=tensor.memory) if output >= 0 else tensor)

    def unpack(self, node: Node) -> Tensor:
        """Raises OperatorTypeError when the program's hook gives no tensor."""
        tensor = _apart(self.unpacker, self.held)
        if not isinstance(tensor, Tensor):
            raise OperatorTypeError(f"the unpack hook must give a tensor, not {type(tensor).__name__}")
        if self.output >= 0 and MODE.enabled:
            tensor = Tensor(tensor.array, storage=tensor.memory)
            tensor.attach(node, self.output)
        return tensor


def _apart(hook: Callable[[Any], Result], value: Any) -> Result:
    """The result of a hook, without recording and without packing."""
    before = MODE.packing
    try:
        MODE.packing = None
        return with_recording(False, hook, value)
    finally:
        MODE.packing = before


class saved_tensors_hooks:
    """Context in which nodes save `pack(tensor)`, from which `unpack` restores the tensor."""

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self._hooks = pack_hook, unpack_hook
        self._before: list[Any] = []

    def __enter__(self) -> None:
        self._before.append(MODE.packing)
        MODE.packing = self._hooks
        HOOKS.rebased += 1  # no quick recording: it keeps tensors without asking

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        MODE.packing = self._before.pop()
        HOOKS.rebased -= 1


class save_on_cpu(saved_tensors_hooks):
    """Tensors are on the CPU already: they are kept as copies."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: tensor.detach().clone(), lambda kept: kept)
