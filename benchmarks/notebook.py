"""Views of the notebook on large models: what they cost the kernel, what they save, and how soon they show.

    python benchmarks/notebook.py [--no-browser] [--archive FILE.pt 'randn(1, 512), 16000']

Out: for each model and each view, the seconds of the command, of its output (text, static HTML, widget), and of the
slowest message that the front end sends, in time of the kernel's processor; kilobytes that a saved notebook has of it,
and of its largest message.  Then, in JupyterLab in chromium, the seconds from running a cell to the picture of a graph
of 3,000 nodes, and the frames of a pan over it with all in sight; beside them the seconds of a loop in the kernel, as
the machine may be busy.  Wanted are 2 s for that graph, 2 MB for an output, 1 s for a message.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import engine.torch as torch
from tests.browser.lab import FRONTS, browsing, missing, opened, serving, write_empty
from tsrepl.magics.display import bundle
from tsrepl.session.passing import gathered
from tsrepl.session.replies import ErrorReply
from tsrepl.session.session import Session
from tsrepl.widgets import WIDGETS
from tsrepl.widgets.debug import DebuggerView
from tsrepl.widgets.graph import GraphView
from tsrepl.widgets.kernels import KernelView
from tsrepl.widgets.passes import PassExplorer
from tsrepl.widgets.trace import TracePlayer
from tsrepl.widgets.view import View

nn = torch.nn
COMMANDS: Final = (
    "%graph m", "%passes {}", "%modules m", "%profile {}", "%profile --types {}", "%guards {}", "%kernels {}",
    "%trace {}", "%debug {}",
)  # fmt: skip
SAVED: Final = ["data", "shown", "state", "_esm", "_css"]
LINES: Final = 1000
LONG: Final = "".join(
    (
        "def long(x):\n    a0 = x\n",
        *(f"    a{i} = torch.relu(x + a{max(0, i - 1)}) * a{max(0, i - 7)}\n" for i in range(1, LINES)),
        f"    return a{LINES - 1}\n",
    )
)
LOOP: Final = "print(sum(each * each for each in range(10_000_000)))"
DRAWN: Final = "canvas.tsw-canvas[data-drawn]:not([data-drawn='0'])"
FRAMES: Final = """async (canvas) => {
    const frames = [], press = (key, shiftKey) => canvas.dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey }));
    press('0', false);
    for (let at = 0; at < 60; at++) {
        const last = await new Promise(requestAnimationFrame);
        press(at % 2 ? 'ArrowDown' : 'ArrowRight', true);
        frames.push((await new Promise(requestAnimationFrame)) - last);
    }
    return frames.sort((a, b) => a - b);
}"""


class Bottleneck(nn.Module):
    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or before != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(before, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


def resnet50() -> Any:
    layers, before = [], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        rest = [Bottleneck(4 * width, width, 1) for _ in range(count - 1)]
        layers.append(nn.Sequential(Bottleneck(before, width, stride), *rest))
        before = 4 * width
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000),
    )  # fmt: skip


def transformer() -> Any:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 6)


MODELS: Final[dict[str, tuple[Callable[[], Any], str]]] = {
    "ResNet-50": (resnet50, "randn(1, 3, 64, 64)"),
    "transformer of 6 layers": (transformer, "randn(2, 10, 64)"),
}


def session_with(model: Any) -> Session:
    session = Session()
    with tempfile.TemporaryDirectory() as folder:
        torch.jit.save(model, f"{folder}/m.pt")
        [*session.run_text(f"%load {folder}/m.pt as m")]
    return session


def messages(view: View) -> Iterator[dict[str, Any]]:
    """The messages by which a reader goes through all of a view."""
    match view:
        case GraphView():
            yield {"kind": "fold", "key": "root", "open": True}
            yield from ({"kind": "find", "text": text} for text in ("relu", "not there"))
        case PassExplorer():
            yield from ({"kind": "show", "step": at, "before": False} for at in range(len(view.steps)))
        case KernelView():
            pairs = ((number, text) for number in range(len(view.kernels)) for text in range(len(view.data["texts"])))
            yield from ({"kind": "kernel", "number": number, "text": text} for number, text in pairs)
        case TracePlayer():
            steps = range(0, len(view.data["rows"]), 10)
            yield from ({"kind": "show", "step": at, "before": False} for at in steps)
            yield from ({"kind": "look", "step": at, "slot": 0} for at in steps)
        case DebuggerView():
            yield from ({"kind": "command", "line": line} for line in ("next", "next", "back-next"))


def cost_of(session: Session, command: str) -> str:
    """One line about a command and its view."""
    began = time.thread_time()
    replies = [*gathered(session.run_text(command))]
    ran = time.thread_time() - began
    found = next((each for each in replies if type(each) in WIDGETS), None)
    if found is None:
        return next((each.message for each in replies if isinstance(each, ErrorReply)), "no view")
    began = time.thread_time()
    data, _ = bundle(found)
    shown = time.thread_time() - began
    view = WIDGETS[type(found)](found)
    state = view.get_state(SAVED)
    slowest, largest = 0.0, 0
    for message in messages(view):
        began = time.thread_time()
        length = len(json.dumps(view.answer({"id": 1, **message})))
        slowest, largest = max(slowest, time.thread_time() - began), max(largest, length)
    saved = len(json.dumps(data)) + len(json.dumps(state))
    return f"{ran:8.2f} {shown:8.2f} {slowest:8.2f} {saved / 1000:8.0f} {largest / 1000:8.0f}"


def kernel_rows(archive: tuple[str, str] | None) -> Iterator[str]:
    yield f"{'':32} {'command':>8} {'output':>8} {'message':>8} {'saved':>8} {'message':>8}"
    yield f"{'':32} {'s':>8} {'s':>8} {'s':>8} {'kB':>8} {'kB':>8}"
    session = Session()
    [*session.run_text(LONG)]
    yield f"{3 * LINES} nodes\n  {'%graph long':30} {cost_of(session, '%graph long')}"
    models = {name: (torch.jit.script(make().eval()), given) for name, (make, given) in MODELS.items()}
    if archive is not None:
        models[archive[0]] = torch.jit.load(archive[0]), archive[1]
    for name, (model, given) in models.items():
        session = session_with(model)
        yield name
        for command in COMMANDS:
            text = command.format(f"m({given.replace('randn', 'torch.randn')})")
            yield f"  {command.format('m(x)'):30} {cost_of(session, text)}"


def browser_rows() -> Iterator[str]:
    front = FRONTS["lab"]
    if reason := missing(front):
        yield reason
        return
    with tempfile.TemporaryDirectory() as folder, serving(front, Path(folder)) as address, browsing() as page:
        write_empty(Path(folder, "views.ipynb"))
        notebook = opened(page, front, address, "views.ipynb")
        notebook.run("%load_ext tsrepl")
        notebook.run(f"%%torchscript\n{LONG}")
        for _ in range(3):
            pace = notebook.seconds_until(LOOP, ".jp-OutputArea-output")
            seconds = notebook.seconds_until("%tsjit_graph long", DRAWN)
            frames = page.locator(DRAWN).last.evaluate(FRAMES)
            yield (
                f"{3 * LINES} nodes: {seconds:.2f} s from the cell to the picture; panned, a frame after "
                f"{frames[30]:.0f} ms, the slowest {frames[-1]:.0f} ms; the loop {pace:.2f} s"
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--archive", nargs=2, metavar=("FILE", "ARGUMENTS"))
    arguments = parser.parse_args()
    for row in kernel_rows(arguments.archive and tuple(arguments.archive)):
        print(row, flush=True)
    for row in () if arguments.no_browser else browser_rows():
        print(row, flush=True)


if __name__ == "__main__":
    main()
