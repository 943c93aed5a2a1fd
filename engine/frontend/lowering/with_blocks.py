"""`with` as a block, for as long as the exit transform runs.

In: `prim::Enter` … `prim::Exit` pairs around the nodes of a with-statement's body.  Out: a `prim::With`
node behind the Enter whose first block holds the body and whose second holds the Exit; and back again.

    %y : int = prim::Enter(%c)             %y : int = prim::Enter(%c)
    %z : int = aten::add(%x, %y)           = prim::With()
    %e : NoneType = prim::Exit(%c)           block0():
                                   <->         %z : int = aten::add(%x, %y)
                                               -> ()
                                             block1():
                                               %e : NoneType = prim::Exit(%c)
                                               -> ()

Source: "With" in the design overview.
"""

from __future__ import annotations

from engine.ir.graph import Block, Graph, Node


def to_with_blocks(graph: Graph) -> None:
    """Move the body between each Enter and its Exit into a `prim::With`."""
    _fold(graph.block)


def from_with_blocks(graph: Graph) -> None:
    """Put the nodes of every `prim::With` back in its place; its blocks have no outputs."""
    for node in [node for node in graph.all_nodes() if node.kind == "prim::With"]:
        for block in node.blocks:
            for inner in block.nodes():
                inner.move_before(node)
        node.destroy()


def _fold(block: Block) -> None:
    open_enters: list[Node] = []
    for node in block.nodes():
        for inner in node.blocks:
            _fold(inner)
        if node.kind == "prim::Enter":
            open_enters.append(node)
        elif node.kind == "prim::Exit":
            _fold_pair(open_enters.pop(), node)


def _fold_pair(enter: Node, exit: Node) -> None:
    node = enter.graph.create("prim::With", (), 0).insert_after(exit)
    body, leave = node.add_block(), node.add_block()
    while (moved := enter.next) is not None and moved is not exit:
        moved.move_before(body.return_node)
    exit.move_before(leave.return_node)
