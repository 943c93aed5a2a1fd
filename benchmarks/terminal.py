"""The terminal with large output: what one waits for.

    python benchmarks/terminal.py

Out: milliseconds, medians of 10 unless told otherwise: to the first screen and to the end of `%passes` on DenseNet-121;
for `m` on a module shaped like ResNet-50, with the lines that it takes at 60, 100 and 200 columns; for keys in the
pager over a graph of 5,000 nodes; and for a key at the prompt with 10,000 entries of history.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import engine.torch as torch
from engine.executor.conversion.from_python import unwrapped
from tsrepl.render.blocks import CodeBlock
from tsrepl.render.layout import blocks_of
from tsrepl.render.outline import outline
from tsrepl.render.terminal import fitting, lines_of
from tsrepl.session.session import Session
from tsrepl.shell.pager import Pager

nn: Any = torch.nn
GROWTH: Final = 32
TIMES: Final = 10


class DenseLayer(nn.Module):  # type: ignore[misc]
    """A layer of DenseNet: what it is given, and 32 channels more."""

    def __init__(self, before: int) -> None:
        super().__init__()
        self.norm1, self.relu1 = nn.BatchNorm2d(before), nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(before, 4 * GROWTH, 1, bias=False)
        self.norm2, self.relu2 = nn.BatchNorm2d(4 * GROWTH), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(4 * GROWTH, GROWTH, 3, 1, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv2(self.relu2(self.norm2(self.conv1(self.relu1(self.norm1(x))))))
        return torch.cat([x, y], 1)


class Bottleneck(nn.Module):  # type: ignore[misc]
    """A block of ResNet-50."""

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, channels, 1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)
        self.conv3, self.bn3 = nn.Conv2d(channels, 4 * channels, 1, bias=False), nn.BatchNorm2d(4 * channels)
        self.relu = nn.ReLU(inplace=True)
        short = (nn.Conv2d(before, 4 * channels, 1, stride, bias=False), nn.BatchNorm2d(4 * channels))
        self.downsample = nn.Sequential(*short) if before != 4 * channels else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(y)))))
        return self.relu(y + self.downsample(x))


class ResNet50(nn.Module):  # type: ignore[misc]
    """The modules of ResNet-50, by their usual names."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        self.layer1, self.layer2 = _stage(64, 64, 3, 1), _stage(256, 128, 4, 2)
        self.layer3, self.layer4 = _stage(512, 256, 6, 2), _stage(1024, 512, 3, 2)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(2048, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def _stage(before: int, channels: int, count: int, stride: int) -> Any:
    rest = [Bottleneck(4 * channels, channels, 1) for _ in range(count - 1)]
    return nn.Sequential(Bottleneck(before, channels, stride), *rest)


def densenet121() -> Any:
    """DenseNet-121 with random weights."""
    parts: list[Any] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    channels = 64
    for layers in (6, 12, 24, 16):
        parts.append(nn.Sequential(*(DenseLayer(channels + i * GROWTH) for i in range(layers))))
        channels += layers * GROWTH
        if layers != 16:
            conv = nn.Conv2d(channels, channels // 2, 1, bias=False)
            parts.append(nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(inplace=True), conv, nn.AvgPool2d(2, 2)))
            channels //= 2
    head = (nn.BatchNorm2d(channels), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(*parts, *head, nn.Linear(channels, 1000)).eval()


def session_with(module: Any) -> Session:
    """A session that knows the compiled module as m."""
    found: Any = unwrapped(torch.jit.script(module))
    session = Session()
    session.bind("m", found, found.type)
    return session


def seconds(act: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def passes(session: Session) -> tuple[float, float]:
    """Seconds to the first screen of the passes, as the pager shows it, and to the last."""
    begin, first = time.perf_counter(), 0.0
    pager = Pager(output=DummyOutput())
    for reply in session.run_text("%passes m"):
        pager.add(outline(blocks_of(reply), 100))
        pager.screen(100, 30)
        first = first or time.perf_counter() - begin
    return first, time.perf_counter() - begin


def module_lines(session: Session, width: int, height: int) -> int:
    (reply,) = session.execute("m")
    return len(lines_of(fitting(blocks_of(reply), width, height), width))


def pager_keys() -> dict[str, float]:
    """Seconds for a key, each the longest of some, in a graph of 5,000 nodes that takes the whole screen."""
    nodes = "\n".join(f"  %{i} : Tensor = aten::batch_norm(%{i - 1}, %{i - 1})" for i in range(1, 5001))
    text = f"graph(%0 : Tensor):\n{nodes}\n  return (%5000)"
    pager = Pager(output=DummyOutput())

    def drawn(act: Callable[[], Any]) -> float:
        return seconds(lambda: (act(), pager.screen(100, 40)))

    found = {"open": drawn(lambda: pager.add(outline([CodeBlock(text, "ir")], 100)))}
    found["down"] = max(drawn(lambda: pager.move(1)) for _ in range(100))
    found["page"] = max(drawn(lambda: pager.page(1)) for _ in range(20))
    found["end"] = drawn(lambda: pager.move(5000))
    pager.pattern = "%4999,"
    found["search"] = max(drawn(lambda: pager.find(1)) for _ in range(5))
    found["fold"] = max(drawn(pager.toggle) for _ in range(5))
    return found


def prompt_key() -> float:
    """Seconds for a key at the prompt with 10,000 entries of history: typing 100 keys, and the prompt itself."""
    history = InMemoryHistory([f"x{i} = torch.ones({i})" for i in range(10_000)])
    with create_pipe_input() as pipe:
        prompt: PromptSession[str] = PromptSession(
            history=history, auto_suggest=AutoSuggestFromHistory(), input=pipe, output=DummyOutput()
        )
        pipe.send_text("q" * 100 + "\r")
        return seconds(prompt.prompt) / 100


def main() -> None:
    session = session_with(densenet121())
    first, whole = zip(*(passes(session) for _ in range(3)), strict=True)
    print(f"%passes on DenseNet-121, first screen   {1e3 * median(first):8.1f} ms (of 3)")
    print(f"%passes on DenseNet-121, all passes     {1e3 * median(whole):8.1f} ms (of 3)")
    session = session_with(ResNet50())
    took = median(seconds(lambda: module_lines(session, 100, 30)) for _ in range(TIMES))
    print(f"m on ResNet-50                          {1e3 * took:8.1f} ms")
    for width in (60, 100, 200):
        lines = ", ".join(f"{module_lines(session, width, height)} of {height}" for height in (27, 37, 47))
        print(f"m on ResNet-50, lines at {width:3} columns      {lines}")
    for key, each in pager_keys().items():
        print(f"pager over 5,000 nodes, {key:<16}{1e3 * each:8.1f} ms (the longest)")
    print(f"prompt with 10,000 entries of history   {1e3 * median(prompt_key() for _ in range(TIMES)):8.1f} ms a key")


if __name__ == "__main__":
    main()
