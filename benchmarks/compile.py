"""How long compiling takes: generated TorchScript of 250 to 4,000 lines, beside PyTorch where it is installed.

    python benchmarks/compile.py [LINES ...]

In: line counts.  Out: for each a row: seconds and microseconds per line, of many functions and of one long function.
The programs hold arithmetic, tensors, containers, loops with early exits, Optionals and calls; the time is that from
text to the cleaned-up graphs of all functions.  Where PyTorch is installed there is a column for it, on the same text.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from engine.frontend.compilation.compile import compile_source

TORCH: Final[Any] = import_module("torch") if find_spec("torch") else None

_FUNCTION: Final = """\
def helper{n}(x: Tensor, scale: float = 2.0, sizes: Optional[List[int]] = None) -> Tensor:
    y = torch.relu(x * scale + 1.0)
    if sizes is not None and len(sizes) > 0:
        y = y.reshape(sizes)
    return torch.cat([y.sum(dim=0, keepdim=True), y], 0)[1:, ...]

def work{n}(x: Tensor, names: Dict[str, int], n: int, flag: bool):
    total = 0
    found: List[int] = []
    for i, name in enumerate(names.keys()):
        if name == 'skip' or i % 7 == {n}:
            continue
        found.append(names[name] * i)
        if len(found) > n:
            break
    while total < n:
        total += len(found) + 1
        if flag and total > 1000:
            return x, total, found
    z = helper{n}(x, scale=float(total) / {n}.5)
    pairs = [(a, a + 1) for a in found]
    for a, b in pairs:
        z = z.add(a, alpha=b) if a < b else z - b
    z[0] += z.mean() * -1.5
    assert total >= n, 'too few: {{}}'.format(total)
    text = '%s has %d' % (str(flag), total)
    print(text)
    return z.matmul(z.t()).softmax(-1), total, found

"""
_STATEMENTS: Final = """\
    a = torch.tanh(x * {n}.25 + w) - b
    total = (total * 31 + {n}) % 65521
    if total > {n}:
        b = a.clamp(min=0.0).to(torch.float32)
        found.append(total // 3)
    else:
        w = w + b.mean(dim=-1, keepdim=True)
    for i in range(len(found)):
        total += found[i] * i
"""


def many_functions(lines: int) -> str:
    """A program of that many lines, some 35 for each pair of functions."""
    parts: list[str] = []
    count = 0
    while count < lines:
        parts.append(_FUNCTION.format(n=len(parts)))
        count += parts[-1].count("\n")
    return "".join(parts)


def one_function(lines: int) -> str:
    """A program of that many lines that is one function."""
    head = "def long(x: Tensor, w: Tensor):\n    a, b, total = x, w, 0\n    found: List[int] = []\n"
    body = "".join(_STATEMENTS.format(n=n) for n in range(lines // _STATEMENTS.count("\n")))
    return f"{head}{body}    return a, b, total\n"


def seconds_of(compile: Callable[[str], Any], text: str) -> float:
    start = time.perf_counter()
    compile(text)
    return time.perf_counter() - start


def by_engine(text: str) -> None:
    compile_source(text)


def by_torch(text: str) -> None:
    torch = TORCH  # the names of a program are looked up in the frame that compiles it
    torch.jit.CompilationUnit(text)


def main(counts: list[int]) -> None:
    columns = {"engine": by_engine, "torch": by_torch if TORCH is not None else None}
    for compile in columns.values():
        if compile is not None:
            compile(many_functions(60))
    print(f"{'program':<16}{'lines':>6}" + "".join(f"{name + ' s':>11}{'us/line':>9}" for name in columns))
    for kind, generate in (("many functions", many_functions), ("one function", one_function)):
        for count in counts:
            text = generate(count)
            cells = "".join(_cells(text, compile) for compile in columns.values())
            print(f"{kind:<16}{text.count(chr(10)):>6}{cells}")


def _cells(text: str, compile: Callable[[str], Any] | None) -> str:
    if compile is None:
        return f"{'-':>11}{'-':>9}"
    seconds = seconds_of(compile, text)
    return f"{seconds:>11.3f}{1e6 * seconds / text.count(chr(10)):>9.0f}"


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [250, 500, 1000, 2000, 4000])
