"""Named views of nodes with a fixed layout: If, Loop.

In: a node of that kind.  Out: its parts by name.  A view holds nothing; it may be made again at will.

    %out : T = prim::If(%condition)            %out : T = prim::Loop(%count, %condition, %initial)
      block0():                                  block0(%i : int, %inner : T):
        -> (%a)                                    -> (%next_condition, %given)
      block1():
        -> (%b)
"""

from __future__ import annotations

from engine.ir.constants import constant_value
from engine.ir.graph import Block, Node, Value
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class IfView:
    """A `prim::If`."""

    node: Node

    @property
    def condition(self) -> Value:
        return self.node.inputs[0]

    @property
    def then_block(self) -> Block:
        return self.node.blocks[0]

    @property
    def else_block(self) -> Block:
        return self.node.blocks[1]

    @property
    def outputs(self) -> list[Value]:
        return self.node.outputs

    @property
    def then_outputs(self) -> list[Value]:
        return self.then_block.outputs

    @property
    def else_outputs(self) -> list[Value]:
        return self.else_block.outputs

    def remove_result(self, offset: int) -> None:
        """Drop an unused output."""
        self.node.erase_output(offset)
        for block in self.node.blocks:
            block.erase_output(offset)

    def reorder_results(self, order: list[int]) -> None:
        """Let the outputs be those of the given offsets, in that order."""
        reorder_outputs(self.node, order)
        for block in self.node.blocks:
            _reorder_inputs(block.return_node, order)


@dataclass(frozen=True, slots=True)
class LoopView:
    """A `prim::Loop` with its condition in the body."""

    node: Node

    @property
    def max_trip_count(self) -> Value:
        return self.node.inputs[0]

    @property
    def initial_condition(self) -> Value:
        return self.node.inputs[1]

    @property
    def carried_inputs(self) -> list[Value]:
        return self.node.inputs[2:]

    @property
    def outputs(self) -> list[Value]:
        return self.node.outputs

    @property
    def body(self) -> Block:
        return self.node.blocks[0]

    @property
    def trip_number(self) -> Value:
        return self.body.inputs[0]

    @property
    def body_carried_inputs(self) -> list[Value]:
        return self.body.inputs[1:]

    @property
    def next_condition(self) -> Value:
        return self.body.outputs[0]

    @property
    def body_carried_outputs(self) -> list[Value]:
        return self.body.outputs[1:]

    def remove_carried(self, offset: int) -> None:
        """Drop a carried value that neither the body nor what follows uses."""
        self.node.erase_output(offset)
        self.node.remove_input(offset + 2)
        self.body.erase_output(offset + 1)
        self.body.erase_input(offset + 1)

    def reorder_carried(self, order: list[int]) -> None:
        """Let the carried values be those of the given offsets, in that order."""
        reorder_outputs(self.node, order)
        reorder_outputs(self.body.param_node, [0, *(offset + 1 for offset in order)])
        _reorder_inputs(self.node, [0, 1, *(offset + 2 for offset in order)])
        _reorder_inputs(self.body.return_node, [0, *(offset + 1 for offset in order)])

    def is_for(self) -> bool:
        """Only the count ends it."""
        return constant_value(self.initial_condition) is True and constant_value(self.next_condition) is True


def reorder_outputs(node: Node, order: list[int]) -> None:
    """Let the node's outputs be those of the given offsets (each once), in that order."""
    node.outputs[:] = [node.outputs[offset] for offset in order]
    for offset, value in enumerate(node.outputs):
        value.offset = offset


def _reorder_inputs(node: Node, order: list[int]) -> None:
    values = [node.inputs[offset] for offset in order]
    node.remove_inputs_from(0)
    for value in values:
        node.add_input(value)
