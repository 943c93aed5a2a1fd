"""Comparison of the sweep's answers, and the table of what differs.

    python -m tests.peer.sweep.compare [--peer PYTHON] [--seed N] [--most eager=40,scripted=8,traced=4] [--only TEXT]

In: cases, and facts of either side (`answers`).  Out: differences, grouped by expression and by what they are about.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np

import engine.torch
from tests.peer.sweep.answers import answers
from tests.peer.sweep.cases import Case, chosen_cases

INEXACT: Final = frozenset(
    "exp expm1 exp2 log log2 log10 log1p rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "erf erfc sigmoid pow atan2 elu selu celu gelu silu mish softplus softmax log_softmax glu log_sigmoid "
    "logsigmoid logspace add sub rsub addcmul addcdiv lerp sum mean prod var std var_mean std_mean norm "
    "vector_norm logsumexp cumsum cumprod".split()
)
"""Functions of mathematical libraries, and sums, whose order is nobody's promise: `ULPS` are allowed."""
ULPS: Final = 4
Difference = tuple[Case, str, Any, Any]


def peer_answers(peer: str, cases: list[Case]) -> list[Any]:
    """PyTorch's facts, from a process of its own."""
    script = Path(__file__).with_name("answers.py")
    done = subprocess.run([peer, str(script), "torch"], input=json.dumps(cases), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{peer} ended with {done.returncode}: {done.stderr[-2000:]}")
    found: list[Any] = json.loads(done.stdout)
    return found


@dataclass(frozen=True)
class Known:
    """A difference that `docs/differences.md` tells of: what it says, and where it is met."""

    reason: str
    expression: str = ""
    """A regular expression."""
    arguments: str = ""
    theirs: str = ""

    def covers(self, each: Difference) -> bool:
        (_, expression, args), _, _, theirs = each
        texts = {self.expression: expression, self.arguments: ", ".join(args), self.theirs: json.dumps(theirs)}
        return all(re.search(pattern, text) for pattern, text in texts.items() if pattern)


KNOWN: Final = (
    Known("operators of complex32 are missing there", theirs="ComplexHalf|complex32"),
    Known("`arange` of bfloat16 rounds where vectors begin there", r"arange\(.*bfloat16"),
    Known("products that overflow depend on the order of factors", r"prod\("),
    Known("its graph of a traced `view` with a dtype cannot be read", r"\.view\(torch", theirs="alias_analysis"),
    Known("norms of small orders raise the error of a sum to a high power", r"norm\(", r"0\.1"),
    Known("factors at the ends of their dtype, whose sign is turned first", r"\b(r?sub)", r"2\*\*(31|63)"),
    Known("half types are compared with limits in float32", "threshold", r"float16.*(2\*\*|1e)"),
    Known("norms of orders that no power has room for", r"norm\(", r"300|2\*\*|nan|1e30"),
    Known("functions of torch.nn.functional take floats, no complex numbers", r"nn\.functional", r"j\)|j$"),
    Known("programs have more names here", r"^a\.bfloat16\(\)|^torch\.__", theirs="has no attribute"),
    Known(
        "traces may return numbers, and fill with large ones", "numel|size|stride|fill", theirs="Only tensors|full_like"
    ),
    Known("a list of lists takes numbers of two kinds", r"^torch\.tensor\(\[\[a\], \[1.5\]\]\)"),
    Known("kernels do not look at the numbers of functions of torch.nn", r"nn\.functional", "1e300|1e30"),
    Known(
        "its graph of a traced quotient with a bool cannot be read", r"/|div", "True|False", "INTERNAL|alias_analysis"
    ),
    Known("its graph of a traced shift of a truth value cannot be read", "<<|>>", "True|False", "shift"),
    Known("infinite complex numbers to the power 0 or 1", r"\*\*|pow", r"300j|1e30"),
    Known("`copy_` takes no complex number, and programs' looks at none", r"\.copy_\(", r"j\)|j$|math|1e|2\*\*|300"),
    Known("the last digits of complex powers", r"\*\*|pow", r"complex|j\)|j$"),
    Known("`gelu` below -2 is a difference of nearly equal numbers, whose last digits it shows", "gelu"),
)


def is_known(each: Difference) -> bool:
    """True if the difference stands in `docs/differences.md`."""
    return any(row.covers(each) for row in KNOWN)


def differences(cases: list[Case], mine: list[Any], theirs: list[Any]) -> list[Difference]:
    """The cases whose facts differ, with what they differ in."""
    found = []
    for case, here, there in zip(cases, mine, theirs, strict=True):
        about = difference(here, there, is_inexact(case))
        if about:
            found.append((case, about, here, there))
    return [each for each in found if not is_known(each)]


def is_inexact(case: Case) -> bool:
    """True if the result may differ in its last digits."""
    _, expression, args = case
    if "alpha=" not in expression and re.search(r"\b(add|sub|rsub)_?\(", expression):
        return any("complex" in a or a.endswith("j") for a in args)
    if "**" in expression or INEXACT & {name.strip("_") for name in re.findall(r"[a-z_0-9]+(?=\()", expression)}:
        return True
    return any("complex" in a or a.endswith(("j)", "j")) for a in args)


def difference(mine: Any, theirs: Any, inexact: bool) -> str:
    """What two facts differ in; empty if in nothing."""
    if mine[0] == "error" or theirs[0] == "error":
        if mine[0] != theirs[0]:
            return "refused there" if theirs[0] == "error" else "refused here"
        return "" if theirs[1][0] in mine[1] else "kind of error"
    if mine[0] != theirs[0]:
        return "type"
    if mine[0] == "list":
        if len(mine[1]) != len(theirs[1]):
            return "length"
        return next(filter(None, (difference(a, b, inexact) for a, b in zip(mine[1], theirs[1], strict=True))), "")
    if mine[0] == "value":
        return "" if _same_value(mine, theirs, inexact) else "value"
    for name, a, b in zip(("dtype", "sizes", "strides"), mine[1:4], theirs[1:4], strict=True):
        if a != b:
            return name
    return _apart(mine, theirs, inexact)


def _same_value(mine: Any, theirs: Any, inexact: bool) -> bool:
    if mine == theirs or not inexact or mine[1] != theirs[1] or mine[1] not in ("float", "complex"):
        return bool(mine == theirs)
    a, b = (np.asarray(eval(v[2], {"inf": np.inf, "nan": np.nan, "nanj": np.nan})) for v in (mine, theirs))
    return bool(np.isclose(a, b, rtol=1e-15, atol=0, equal_nan=True))


def values_of(fact: Any) -> np.ndarray[Any, Any]:
    """A tensor's elements, without their repetitions."""
    dtype = np.dtype(ml_dtypes.bfloat16) if fact[1] == "bfloat16" else np.dtype(fact[1])
    return np.frombuffer(bytes.fromhex(fact[4]), dtype)


def _apart(mine: Any, theirs: Any, inexact: bool) -> str:
    if mine[4] == theirs[4]:
        return ""
    a, b = values_of(mine), values_of(theirs)
    a, b = np.resize(a, max(a.size, b.size)), np.resize(b, max(a.size, b.size))
    if a.dtype.kind in "iub":
        return "value"
    if a.dtype.kind == "c":
        wide, step = np.complex128, np.finfo(a.dtype).eps
    else:
        wide, step = np.float64, float(ml_dtypes.finfo(a.dtype).eps)
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        if a.dtype.kind == "c":  # which part is infinite and which is none, nothing defines
            same |= ~np.isfinite(x) & ~np.isfinite(y)
        if not inexact:
            return "" if same.all() and _same_signs(x, y) else "value"
        count = 1 if a.dtype.itemsize == 2 else 4 * ULPS if a.dtype.kind == "c" else ULPS
        allowed = count * step * np.abs(y)
        return "" if (same | (np.abs(x - y) <= allowed)).all() else "value"


def _same_signs(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """True if zeros have equal signs."""
    if x.dtype.kind == "c":
        return True
    return bool((np.signbit(x) == np.signbit(y))[x == 0].all())


def _shown(fact: Any) -> str:
    if fact[0] == "tensor":
        return f"{fact[1]}{fact[2]}{'' if len(fact[2]) < 2 else fact[3]} {values_of(fact).tolist()}"
    if fact[0] == "list":
        return f"[{', '.join(map(_shown, fact[1]))}]"
    return " ".join(map(str, fact[1:]))


def table(found: list[Difference], examples: int = 1) -> str:
    """Rows of form, expression, what differs, how often, and examples."""
    groups: dict[tuple[str, str, str], list[Difference]] = collections.defaultdict(list)
    for each in found:
        (form, expression, _), about, _, _ = each
        groups[expression, about, form].append(each)
    lines = []
    for (expression, about, form), members in sorted(groups.items()):
        lines.append(f"{len(members):5}  {form:8}  {about:14}  {expression}")
        for (_, _, args), _, mine, theirs in members[:examples]:
            lines.append(f"       {', '.join(args)}\n         here   {_shown(mine)}\n         there  {_shown(theirs)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", default="python", help="an interpreter that has PyTorch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", default="eager=40,scripted=8,traced=4", help="cases of each expression, by form")
    parser.add_argument("--only", default="", help="expressions that contain this text")
    parser.add_argument("--examples", type=int, default=1)
    options = parser.parse_args()
    most = {form: int(count) for form, count in (part.split("=") for part in options.most.split(","))}
    cases = [case for case in chosen_cases(most, options.seed) if options.only in case[1]]
    found = differences(cases, answers(engine.torch, cases), peer_answers(options.peer, cases))
    print(table(found, options.examples))
    print(f"{len(cases)} cases, {len(found)} differ")


if __name__ == "__main__":
    main()
