"""Writes the casts of mixed precision out, for the blocks of `with torch.autocast("cpu")`.

    %3 : autocast = prim::Enter(%2)                 %3 : autocast = prim::Enter(%2)
    %4 : Tensor = aten::mm(%x, %x)           →      %8 : Tensor = aten::_autocast_to_reduced_precision(%x, …)
    %5 : Tensor = aten::exp(%4)                     %4 : Tensor = aten::mm(%8, %8)
    %6 : Tensor = prim::Exit(%2)                    %9 : Tensor = aten::_autocast_to_full_precision(%4, …)
                                                    %5 : Tensor = aten::exp(%9)
                                                    %6 : Tensor = prim::Exit(%2)

Where there is such a block, calls are inlined first: what they run is cast, too.  Which operators are cast is PyTorch's
choice for programs, which is another one than that for Python; a bias that may be None is cast with the rest.  A block
that casts nothing also switches off what a block of Python around the call asks for.  Raises CompileError where only a
run would tell whether a block casts, and for losses that no cast makes safe.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.insert import insert_op
from engine.ir.ops import op_of
from engine.ir.rewrites import allowed
from engine.lang import scalars
from engine.lang.errors import CompileError
from engine.lang.types import TENSOR, ClassType, OptionalType, TensorType, Type, unwrap_optional
from engine.passes.pipeline import run_pipeline

_REDUCED, _TO_FULL = "aten::_autocast_to_reduced_precision", "aten::_autocast_to_full_precision"
_PAUSE, _RESUME = "aten::_pause_autocast", "aten::_resume_autocast"
_CLASSES: Final = tuple(f"__torch__.torch.{part}amp.autocast_mode.autocast" for part in ("", "cpu.", "cuda."))


class _Casting(NamedTuple):
    """The dtype that the block around a node asks of products on this device; None: it is about another device."""

    fast: scalars.dtype | None


def autocast(graph: Graph) -> bool:
    """Write the casts; calls are inlined where there are any to write."""
    if not any(map(_is_entered, graph.all_nodes())):
        return False
    changed = run_pipeline(("inline", "constant_propagation_immutable_types"), graph)
    return _Caster().visit(graph.block) or bool(changed)


def _is_entered(node: Node) -> bool:
    return node.kind == "prim::Enter" and _is_autocast(node.inputs[0])


def _is_autocast(value: Value) -> bool:
    return isinstance(value.type, ClassType) and str(value.type) in _CLASSES


class _Caster:
    """Visits the nodes in order, with a stack of the autocast blocks that are entered."""

    def __init__(self) -> None:
        self._entered: list[_Casting | None] = []

    def visit(self, block: Block) -> bool:
        changed = False
        for node in block.nodes():
            if _is_entered(node):
                self._enter(node)
                if self._entered[-1] is None:
                    changed |= _insert(_PAUSE, node, after=True)
            elif node.kind == "prim::Exit" and _is_autocast(node.inputs[0]):
                if self._entered.pop() is None:
                    changed |= _insert(_RESUME, node, after=False)
            elif node.blocks:
                for inner in node.blocks:
                    changed |= self.visit(inner)
            elif self._entered and (casting := self._entered[-1]) is not None:
                changed |= casting.fast is not None and _cast_inputs(node, casting.fast)
        return changed

    def _enter(self, node: Node) -> None:
        options = _options(node.inputs[0])
        if options["device"] == "cpu":
            fast = scalars.DTYPE_BY_NUMBER.get(options["fast_dtype"], scalars.bfloat16)
            self._entered.append(_Casting(fast) if options["_enabled"] else None)
        else:
            self._entered.append(self._entered[-1] if self._entered else _Casting(None))


def _options(instance: Value) -> dict[str, Any]:
    """The attribute that the inlined constructor stored into the object."""
    written = {
        use.user.attr("name"): constant_value(use.user.inputs[1])
        for use in instance.uses
        if use.user.kind == "prim::SetAttr" and use.offset == 0
    }
    for name in ("device", "fast_dtype", "_enabled"):
        if written.get(name, NOT_CONSTANT) is NOT_CONSTANT:
            raise CompileError(
                f"Autocast {name} argument must be a constant",
                instance.node.range,
                hints=("write the value there, or let a module have it among its constants",),
            )
    return written


def _insert(name: str, node: Node, *, after: bool) -> bool:
    """Put a call of the operator, which takes nothing, beside the node."""
    made = node.graph.create(name, (), 0)
    (made.insert_after if after else made.insert_before)(node)
    return True


def _is_tensor(type: Type) -> bool:
    return isinstance(unwrap_optional(type), TensorType)


def _cast_inputs(node: Node, fast: scalars.dtype) -> bool:
    op = op_of(node)
    tensors = list(dict.fromkeys(each for each in node.inputs if _is_tensor(each.type)))
    if op is None or not op.jit_autocast or not tensors:
        return False
    rule = op.jit_autocast
    if rule == "unsafe":
        raise CompileError(
            f"{node.kind} is unsafe to autocast",
            node.range,
            hints=("binary_cross_entropy_with_logits, without the sigmoid before it, is safe",),
        )
    if rule == "widest" and not any(_dtype_of(each) in (None, scalars.float32) for each in tensors):
        return False
    if not allowed(node, rule):
        return False
    with node.graph.inserting_at(node, node.range):
        for tensor in tensors:
            _replace(node, tensor, fast if rule == "fast" else None)
    return True


def _dtype_of(value: Value) -> scalars.dtype | None:
    return value.type.dtype if isinstance(value.type, TensorType) else None


def _replace(node: Node, tensor: Value, fast: scalars.dtype | None) -> None:
    if isinstance(tensor.type, OptionalType):
        cast = _cast_if_given(node, tensor, fast)
    else:
        cast = _cast(node.graph, tensor, fast)
    node.replace_input_with(tensor, cast)


def _cast_if_given(node: Node, value: Value, fast: scalars.dtype | None) -> Value:
    """The cast of a tensor that may be None, as the bias of a convolution may."""
    graph = node.graph
    is_given = insert_op(graph, "aten::__isnot__", value, None)
    choice = graph.insert_node(graph.create("prim::If", [is_given], [value.type]))
    given, missing = choice.add_block(), choice.add_block()
    with graph.inserting_at(given):
        tensor = graph.insert_node(graph.create("prim::unchecked_cast", [value], [TENSOR])).output
        given.register_output(_cast(graph, tensor, fast))
    missing.register_output(value)
    return choice.output


def _cast(graph: Graph, tensor: Value, fast: scalars.dtype | None) -> Value:
    if fast is None:
        return insert_op(graph, _TO_FULL, tensor, False, True)
    return insert_op(graph, _REDUCED, tensor, False, True, scalars.float16.number, fast.number)
