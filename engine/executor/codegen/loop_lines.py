"""Lines of generated Python for loops.

In: the writer of a function, a `prim::Loop`, and what its condition is made of, if that can stand at the head.  Out:
lines: `for` where the rounds are limited, else `while`; what the loop carries is assigned at the end of a round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.executor.codegen.loop_conditions import carried_place
from engine.ir.constants import constant_value
from engine.ir.graph import Block, Node

if TYPE_CHECKING:
    from engine.executor.codegen.source import Writer

MAX_TRIP_COUNT: Final = 2**63 - 1


def write_loop(writer: Writer, node: Node, condition: tuple[Node, Node] | None) -> None:
    (body,) = node.blocks
    index, *carried = body.inputs
    first, given = node.inputs[1], body.outputs[0]
    targets = [writer.define(value) for value in carried]
    writer.assign(targets, [writer.value(value) for value in node.inputs[2:]], node)
    writer.forget(writer.deaths.on_entry.get(node, ()))
    limited = constant_value(node.inputs[0]) != MAX_TRIP_COUNT
    counter = writer.define(index)
    test = _test_of(writer, body, condition) if condition else ""
    ends_late = not test and constant_value(first) is True and constant_value(given) is not True
    flag = ""
    if not test and constant_value(first) is not True:
        test = flag = f"c{counter[1:]}"
        writer.line(f"{flag} = {writer.value(first)}", node)
    _loop_head(writer, node, counter, test, limited)
    if limited and test:
        writer.line(f"    if not {test}: break", node)
    writer.indent += 1
    writer.block(body)
    going_on = writer.value(given) if flag or ends_late else ""
    if ends_late and given in writer.moved:
        going_on = f"c{counter[1:]}"
        writer.line(f"{going_on} = {writer.moved[given]}", node)
    ends, sources = [*targets], [writer.value(value) for value in body.outputs[1:]]
    if flag:
        ends, sources = [flag, *ends], [going_on, *sources]
    writer.assign(ends, sources, node)
    writer.forget(writer.deaths.after.get(body.return_node, ()), targets)
    if ends_late:
        writer.line(f"if not {going_on}: break", node)
    if not limited and index.has_uses:
        writer.line(f"{counter} += 1", node)
    writer.indent -= 1
    for output, target in zip(node.outputs, targets, strict=True):
        writer.names[output] = target


def _loop_head(writer: Writer, node: Node, counter: str, test: str, limited: bool) -> None:
    if limited:
        writer.line(f"for {counter} in range({writer.value(node.inputs[0])}):", node)
        return
    if node.blocks[0].inputs[0].has_uses:
        writer.line(f"{counter} = 0", node)
    writer.line(f"while {test or 'True'}:", node)


def _test_of(writer: Writer, body: Block, condition: tuple[Node, Node]) -> str:
    """The condition in terms of what is carried."""
    first, again = condition
    loop = body.owner
    assert loop is not None
    texts: list[str] = []
    for a, b in zip(first.inputs, again.inputs, strict=True):
        place = carried_place(loop, a, b)
        texts.append(writer.value(b) if place is None else writer.names[body.inputs[place]])
    row = writer.row(again)
    assert row is not None
    return row.text.format(*texts)
