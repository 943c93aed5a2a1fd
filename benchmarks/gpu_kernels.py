"""Kernels of fusion groups on an NVIDIA GPU, one by one, beside the bandwidth of a copy.

    python benchmarks/gpu_kernels.py [PART OF A NAME]

Out: the device and the bandwidth of a copy; for each row the shapes of its launches, microseconds of a call on the
device (between events, of many), bytes that it has to move, and the share of the copy's bandwidth; then the
microseconds that Python takes to begin a call.  Without a GPU it says what is missing and measures nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import engine.torch as torch
from engine.executor.plans.executor import executor_of
from engine.fuser.gpu import compiler, launcher
from engine.fuser.gpu.prepared import numbers_of, prepared
from engine.fuser.stubs.binding import Binding
from engine.ir.clone import copy_graph
from engine.lang.errors import OperatorError

_CALLS: Final = 50
ROWS: Final[dict[str, tuple[str, tuple[tuple[int, ...], ...]]]] = {
    "chain 64M": ("x, y: torch.tanh(x * 2 + y) * 0.5 + x", ((1 << 13, 1 << 13), (1 << 13, 1 << 13))),
    "chain 64M, broadcast": ("x, b: torch.relu(x + b) * 0.5", ((1 << 16, 1 << 10), (1 << 10,))),
    "bias, gelu, layer_norm 16384x1024": (
        "x, b, w: torch.layer_norm(torch.nn.functional.gelu(x + b), [1024], w, b, 1e-5)",
        ((16384, 1024), (1024,), (1024,)),
    ),
    "softmax 16384x1024": ("x: torch.softmax(x * 0.125, -1)", ((16384, 1024),)),
    "softmax 256x65536": ("x: torch.softmax(x, -1)", ((256, 65536),)),
    "sum of 64M": ("x: (x * x).sum()", ((1 << 13, 1 << 13),)),
    "sums of rows 65536x1024": ("x: x.sum(1)", ((1 << 16, 1 << 10),)),
    "sums of columns 65536x1024": ("x: x.sum(0)", ((1 << 16, 1 << 10),)),
    "argmax of rows 65536x1024": ("x: x.argmax(1)", ((1 << 16, 1 << 10),)),
    "transposed 8192x8192": ("x: (x.t() * 2).contiguous()", ((1 << 13, 1 << 13),)),
    "cat 2x(8192x4096)": ("x, y: torch.cat([x, y], 1).relu()", ((1 << 13, 1 << 12), (1 << 13, 1 << 12))),
    "small 64x64": ("x, y: torch.tanh(x) * y + x", ((64, 64), (64, 64))),
}


def binding_of(text: str, args: Sequence[Any]) -> Binding:
    """The kernel of `parameters: expression` for tensors of the CPU like these."""
    names, _, expression = text.partition(":")
    unit = torch.jit.CompilationUnit(f"def f({names}):\n    return {expression}\n")
    plan = executor_of(unit._unit.functions["f"]).plan_for(args)
    result = unit.f(*args)
    return compiler.lower(copy_graph(plan.graph), args, result if isinstance(result, tuple) else (result,))


def microseconds(call: Callable[[], Any]) -> float:
    """Of a call on the device, of many in a row."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    for _ in range(3):
        call()
    events[0].record()
    for _ in range(_CALLS):
        call()
    events[1].record()
    torch.cuda.synchronize()
    return 1000 * float(events[0].elapsed_time(events[1])) / _CALLS


def bandwidth() -> float:
    """Bytes a second that a copy on the device reads and writes."""
    x = torch.empty(1 << 26, device="cuda")
    return 2 * x.numel() * 4 / microseconds(x.clone) * 1e6


def missed(*args: Any) -> Any:
    raise AssertionError("no kernel takes these arguments")


def lines(wanted: str, copied: float) -> Iterator[str]:
    for name, (text, shapes) in ROWS.items():
        if wanted not in name:
            continue
        args = [torch.rand(*shape) for shape in shapes]
        binding = binding_of(text, args)
        run = launcher.bind("f", [binding], missed)
        given = [each.cuda() for each in args]
        result = run(*given)
        results = result if isinstance(result, tuple) else (result,)
        moved = sum(each.numel() * each.element_size() for each in (*given, *results))
        took = microseconds(lambda run=run, given=given: run(*given))
        steps = prepared(binding, numbers_of(binding, [each.array for each in args])).steps
        shown = ", ".join(f"{step.shape.threads}/{step.shape.team}" for step in steps)
        share = moved / took * 1e6 / copied
        yield f"{name:<36}{shown:<24}{took:>10.1f} µs {moved / 1e6:>8.1f} MB {share:>7.1%} of a copy"


def overhead() -> float:
    """Microseconds that Python takes to begin a call of a small kernel."""
    text, shapes = ROWS["small 64x64"]
    args = [torch.rand(*shape) for shape in shapes]
    run = launcher.bind("f", [binding_of(text, args)], missed)
    given = [each.cuda() for each in args]
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(200):
            run(*given)
        best = min(best, (time.perf_counter() - start) / 200)
        torch.cuda.synchronize()
    return 1e6 * best


def main() -> None:
    try:
        torch.cuda.init()
    except OperatorError as error:
        print(error)
        return
    copied = bandwidth()
    print(f"{torch.cuda.get_device_name()}, a copy moves {copied / 1e9:.0f} GB/s; launches as threads/threads of a row")
    with torch.no_grad():
        for line in lines(sys.argv[1] if len(sys.argv) > 1 else "", copied):
            print(line, flush=True)
        print(f"{'Python, to begin a call':<60}{overhead():>10.1f} µs")


if __name__ == "__main__":
    main()
