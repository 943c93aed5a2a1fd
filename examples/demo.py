"""The main job, told in one go: open an archive that PyTorch wrote, look inside, run it, trace it, save it again.

Run it with `make demo`, or `python examples/demo.py` where tsrepl is installed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.rule import Rule

import engine
from engine.lang.types import TENSOR
from tsrepl.render.terminal import print_reply
from tsrepl.session.replies import ErrorReply, Reply, TraceReply
from tsrepl.session.session import Session

HERE = Path(__file__).parent
ARCHIVE = HERE / "lstm_cell.pt"
RECORDED = HERE / "lstm_cell.npz"
FIRST_ROWS = 14
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
        if isinstance(reply, TraceReply):
            left_out = reply.left_out + max(0, len(reply.rows) - FIRST_ROWS)
            reply = replace(reply, rows=reply.rows[:FIRST_ROWS], left_out=left_out)
        print_reply(reply, self.console)
        if isinstance(reply, ErrorReply):
            sys.exit(1)


def compare(story: Story, recorded: Mapping[str, np.ndarray]) -> None:
    """Hold the outputs, `result` in the session, against what PyTorch recorded."""
    for index, output in enumerate(story.session.evaluate("result")):
        difference = float(np.abs(output.detach().numpy() - recorded[f"result.{index}"]).max())
        story.console.print(f"output {index}: largest difference from PyTorch's is {difference:.1e}")
        if difference > TOLERANCE:
            sys.exit("that is too much")


def main() -> None:
    story = Story()
    recorded = np.load(RECORDED)
    inputs = [name for name in recorded if not name.startswith("result.")]
    for name in inputs:
        story.session.bind(name, engine.tensor(recorded[name]), TENSOR)
    call = f"cell({', '.join(inputs)})"
    story.tell("1  Open an archive that PyTorch wrote", f"%load {ARCHIVE} as cell", "cell")
    story.tell("2  The code inside, printed from the graph", "%code cell")
    story.tell("3  The graph", "%graph cell")
    story.tell("4  What each pass changes", "%passes cell")
    story.tell("5  Run it on the inputs that PyTorch ran it on", f"result = {call}", "result")
    compare(story, recorded)
    story.tell("6  Every register, step by step", f"%trace {call}")
    with tempfile.TemporaryDirectory() as folder:
        first, second = (Path(folder) / name / "cell.pt" for name in ("first", "second"))
        for path in (first, second):
            path.parent.mkdir()
        saving = f"%save cell {first}", f"%load {first} as copy", f"%save copy {second}"
        story.tell("7  Save it, load it again, save that", *saving)
        same = first.read_bytes() == second.read_bytes()
        story.console.print(f"the two files are {'equal, byte for byte' if same else 'different'}")
        if not same:
            sys.exit(1)
    story.console.print(Rule("Now it is your turn: tsrepl", align="left"))


if __name__ == "__main__":
    main()
