"""Programs that are debugged, and the way to them."""

from typing import Any

from engine.executor.calls.call import Boundary
from engine.executor.debugging.debugger import Debugger
from engine.executor.debugging.recording import BOUND, Recording
from engine.frontend.compilation.compile import compile_source
from engine.ir.unit import Function

LOOP = """
def total(a: Tensor):
    a.add_(1)
    return a.sum()

def f(x: Tensor, n: int):
    z = x * 2
    for i in range(n):
        z[0] = float(i)
        s = total(z)
        if bool(s > 20):
            x = x - z
        x = x + s
    return x
"""

FORKS = """
def work(x: Tensor, k: int):
    for i in range(k):
        x = x + 1
    return x

def f(x: Tensor):
    a = torch.jit.fork(work, x, 2)
    b = torch.jit.fork(work, x, 3)
    return torch.jit.wait(b) * torch.jit.wait(a)
"""


def function(text: str, name: str = "f") -> Function:
    return compile_source(text, filename="prog.py").functions[name]


def recording(text: str, *args: Any, bound: int = BOUND) -> Recording:
    made = function(text)
    return Recording(made, Boundary(made.schema).inputs(args, {}), bound)


def debugger(text: str, *args: Any, bound: int = BOUND) -> Debugger:
    made = function(text)
    return Debugger(made, Boundary(made.schema).inputs(args, {}), bound=bound)


def line(of: Debugger) -> int:
    """The line in which the selected frame stands; 0 where the run is over."""
    place = of.frame.place if not of.finished else None
    return place.line if place is not None else 0
