"""The engine on an NVIDIA GPU, beside the engine on the CPU and, where it is installed, PyTorch on the same GPU.

    python benchmarks/gpu.py [PART OF A NAME]

Out: the device; for each row the milliseconds of one call, measured after the device was waited for, and how many times
as long PyTorch takes on the GPU as the engine.  The first calls compile kernels: they are told as "first".  Without a
GPU it says what is missing and measures nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import engine.torch as engine_torch
from engine.lang.errors import OperatorError

Call = Callable[[], Any]
Build = Callable[[Any, str], Call]
"""Of a library and a device."""
_SECONDS: Final = 0.3


def _call(call: Callable[..., Any], *shapes: tuple[int, ...], grad: bool = False, dtype: str = "float32") -> Build:
    def build(torch: Any, place: str) -> Call:
        tensors = [torch.randn(*shape).to(place, getattr(torch, dtype)).requires_grad_(grad) for shape in shapes]
        if not grad:
            return lambda: call(torch, *tensors)
        return lambda: call(torch, *tensors).float().sum().backward()

    return build


def _step(make: Callable[[Any], Any], *shape: int) -> Build:
    """Of training: forward, backward, Adam."""

    def build(torch: Any, place: str) -> Call:
        module, x = make(torch.nn).to(place), torch.randn(*shape).to(place)
        optimizer = torch.optim.Adam(module.parameters())

        def step() -> None:
            optimizer.zero_grad()
            module(x).sum().backward()
            optimizer.step()

        return step

    return build


def _scripted(torch: Any, place: str) -> Call:
    source = "def f(x, n: int):\n    for i in range(n):\n        x = (x * 0.5 + i).sigmoid()\n    return x\n"
    function, x = torch.jit.CompilationUnit(source).f, torch.randn(1000, 1000).to(place)
    return lambda: function(x, 20)


def _convolutions(nn: Any) -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def _layers(nn: Any) -> Any:
    return nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))


ROWS: Final[dict[str, Build]] = {
    "add 4x4": _call(lambda torch, x, y: x + y, (4, 4), (4, 4)),
    "add 4096x4096": _call(lambda torch, x, y: x + y, (4096, 4096), (4096, 4096)),
    "gelu 4096x4096": _call(lambda torch, x: torch.nn.functional.gelu(x), (4096, 4096)),
    "sum 4096x4096 by rows": _call(lambda torch, x: x.sum(1), (4096, 4096)),
    "softmax 4096x4096": _call(lambda torch, x: x.softmax(-1), (4096, 4096)),
    "layer_norm 4096x1024": _call(lambda torch, x: torch.nn.functional.layer_norm(x, (1024,)), (4096, 1024)),
    "matmul 4096": _call(lambda torch, x, y: x @ y, (4096, 4096), (4096, 4096)),
    "matmul 4096 float16": _call(lambda torch, x, y: x @ y, (4096, 4096), (4096, 4096), dtype="float16"),
    "matmul 4096 bfloat16": _call(lambda torch, x, y: x @ y, (4096, 4096), (4096, 4096), dtype="bfloat16"),
    "conv2d 32x64x56x56": _call(
        lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=1), (32, 64, 56, 56), (64, 64, 3, 3)
    ),
    "attention 8x16x512x64": _call(
        lambda torch, *qkv: torch.nn.functional.scaled_dot_product_attention(*qkv), *[(8, 16, 512, 64)] * 3
    ),
    "sort 1M": _call(lambda torch, x: x.sort(), (1 << 20,)),
    "softmax backward": _call(lambda torch, x: x.softmax(-1) * x, (4096, 1024), grad=True),
    "linear layers, step of Adam": _step(_layers, 256, 1024),
    "convolutions, step of Adam": _step(_convolutions, 64, 3, 32, 32),
    "script of 60 operators": _scripted,
    "copy of 64 MB to the device": _call(lambda torch, x: x.cpu().cuda(), (4096, 4096)),
}


def timed(torch: Any, place: str, build: Build) -> tuple[float, float]:
    """Milliseconds of the first call, and of one of many."""
    wait = torch.cuda.synchronize if place == "cuda" else lambda: None
    call = build(torch, place)
    start = time.perf_counter()
    call()
    wait()
    first = time.perf_counter() - start
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < _SECONDS:
        call()
        wait()
        count += 1
    return 1000 * first, 1000 * (time.perf_counter() - start) / count


def libraries() -> Mapping[str, tuple[Any, str]]:
    """What is compared: column -> library, device."""
    found = {"GPU": (engine_torch, "cuda"), "CPU": (engine_torch, "cpu")}
    try:
        import torch
    except ImportError:
        return found
    return {**found, "PyTorch GPU": (torch, "cuda")} if torch.cuda.is_available() else found


def lines(wanted: str) -> Iterator[str]:
    columns = libraries()
    yield f"{'':<30}{'GPU first':>12}" + "".join(f"{name:>14}" for name in columns)
    for name, build in ROWS.items():
        if wanted not in name:
            continue
        times = {column: timed(*of, build) for column, of in columns.items() if "copy" not in name or of[1] == "cuda"}
        shown = "".join(f"{times[column][1]:>14.3f}" if column in times else f"{'':>14}" for column in columns)
        more = f"   x{times['PyTorch GPU'][1] / times['GPU'][1]:.2f}" if "PyTorch GPU" in times else ""
        yield f"{name:<30}{times['GPU'][0]:>12.1f}{shown}{more}"


def main() -> None:
    try:
        engine_torch.cuda.init()
    except OperatorError as error:
        print(error)
        return
    cuda = engine_torch.cuda
    free, total = cuda.mem_get_info()
    print(
        f"{cuda.get_device_name()}, {cuda.get_device_capability()}, {free >> 20}/{total >> 20} MiB free; milliseconds"
    )
    for line in lines(sys.argv[1] if len(sys.argv) > 1 else ""):
        print(line, flush=True)
    print(cuda.memory_summary())


if __name__ == "__main__":
    main()
