"""The main job, told in one go: open a model that PyTorch wrote, look inside, see what the passes change, debug it.

Run it with `make demo`, or `python examples/demo.py` where tsrepl is installed.  On a terminal it ends at the
debugger's prompt, and the reader goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.rule import Rule

import engine
from engine.lang.types import TENSOR
from tsrepl.render.blocks import Block, FoldBlock, Line
from tsrepl.render.layout import blocks_of
from tsrepl.render.terminal import print_blocks, print_reply
from tsrepl.session.replies import ErrorReply, PassesReply, PassReply, Reply
from tsrepl.session.session import Session
from tsrepl.shell.app import Shell

HERE = Path(__file__).parent
ARCHIVE = HERE / "mlp.pt"
RECORDED = HERE / "mlp.npz"
TOLERANCE = 1e-5


class Story:
    """Commands typed into a session, each under a heading that says what to look at."""

    def __init__(self) -> None:
        self.session = Session()
        self.console = Console(highlight=False)

    def tell(self, heading: str, *entries: str) -> None:
        self.console.print(Rule(heading, align="left"))
        for entry in entries:
            self.console.print(f"ts> {entry}", style="bold cyan", markup=False)
            for reply in self.session.execute(entry):
                self.show(reply)

    def show(self, reply: Reply) -> None:
        if isinstance(reply, (PassesReply, PassReply)):
            print_blocks(map(heading_of, blocks_of(reply)), self.console)
            return
        print_reply(reply, self.console)
        if isinstance(reply, ErrorReply):
            sys.exit(1)


def heading_of(block: Block) -> Block:
    """A block in one line: %passes alone shows the changes themselves."""
    return Line(block.heading) if isinstance(block, FoldBlock) else block


def compare(story: Story, expected: np.ndarray) -> None:
    """Hold `result` of the session against what PyTorch recorded."""
    difference = float(np.abs(story.session.evaluate("result").detach().numpy() - expected).max())
    story.console.print(f"the largest difference from PyTorch's result is {difference:.1e}")
    if difference > TOLERANCE:
        sys.exit("that is too much")


def main() -> None:
    story = Story()
    recorded = np.load(RECORDED)
    story.session.bind("x", engine.tensor(recorded["x"]), TENSOR)
    story.tell("1  Open a model that PyTorch wrote", f"%load {ARCHIVE} as mlp", "mlp")
    story.tell("2  Its code, printed from the graph", "%code mlp")
    story.tell("3  Run it on what PyTorch ran it on", "result = mlp(x)", "result")
    compare(story, recorded["result.0"])
    story.tell("4  What the optimization passes made of it", "%passes mlp")
    last = "5  Go through a call: n next line, s into calls, bs and bn back, h help, q leave"
    if sys.stdin.isatty():
        story.tell(last)
        Shell(session=story.session, console=story.console).run("%debug mlp(x)")
    else:
        story.tell(last, "%debug mlp(x)")


if __name__ == "__main__":
    main()
