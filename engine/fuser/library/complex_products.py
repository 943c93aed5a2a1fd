"""Products of matrices of complex elements, as kernel IR.

In: a call of a product (`shaped.CALLS`), and a type of complex elements.  Out: its function, as those of `shaped`:
`i64 FUNCTION(i64 *words, i64 phase)`.

Columns of the second matrix go by panels, as wide as a vector: their parts are laid out apart, and four rows of the
first matrix at a time are multiplied with all rows of the panel, so that all sums stay in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from engine.fuser.backend.target import current
from engine.fuser.ir.kernel import SIZES, Kernel
from engine.fuser.ir.kernel_text import parse
from engine.fuser.library.functions import calling
from engine.fuser.library.words import COMPLEX, SHAPED_WORDS

ROWS: Final = range(4)
_SUMS: Final = """
                br = panel[l * {twice}:{lanes}]
                bi = panel[l * {twice} + {lanes}:{lanes}]"""
_SUM: Final = """
                r{r} = {vector}(source[2 * (at{r} + l)])
                i{r} = {vector}(source[2 * (at{r} + l) + 1])
                n{r} = {vector}(0.0 - source[2 * (at{r} + l) + 1])
                re{r} = muladd(n{r}, bi, muladd(r{r}, br, re{r}))
                im{r} = muladd(i{r}, br, muladd(r{r}, bi, im{r}))"""
_BEFORE: Final = """
            at{r} = (which * m + minimum(row + {r}, m - 1)) * k
            re{r}: {vector} = {vector}(0.0)
            im{r}: {vector} = {vector}(0.0)"""
_AFTER: Final = """
            room[{r} * {twice}:{lanes}] = re{r}
            room[{r} * {twice} + {lanes}:{lanes}] = im{r}"""
_PRODUCT: Final = """
def product(batch: i64, m: i64, k: i64, n: i64, is_turned: i64, a_: i64, b_: i64, bias_: i64, out_: i64):
    source = view({part}[...], a_)
    other = view({part}[...], b_)
    out = view({part}[...], out_)
    panels = quotient(n + {lanes} - 1, {lanes})
    for p in parallel(batch * panels):
        which = quotient(p, panels)
        first = (p - which * panels) * {lanes}
        width = minimum({lanes}, n - first)
        panel = allocate({part}[k * {twice}])
        room = allocate({part}[{rows} * {twice}])
        biases = allocate({part}[{twice}])
        for j in range({twice}):
            biases[j] = 0.0
        if bias_ != 0:
            bias = view({part}[...], bias_)
            for j in range(width):
                biases[j] = bias[2 * (first + j)]
                biases[{lanes} + j] = bias[2 * (first + j) + 1]
        for l in range(k):
            for j in range(width, {lanes}):
                panel[l * {twice} + j] = 0.0
                panel[l * {twice} + {lanes} + j] = 0.0
            for j in range(width):
                place = 2 * select(is_turned != 0, (which * n + first + j) * k + l, (which * k + l) * n + first + j)
                panel[l * {twice} + j] = other[place]
                panel[l * {twice} + {lanes} + j] = other[place + 1]
        for row in range(0, m, {rows}):{before}
            for l in range(k):{sums}{after}
            for r in range(minimum({rows}, m - row)):
                for j in range(width):
                    place = 2 * ((which * m + row + r) * n + first + j)
                    out[place] = room[r * {twice} + j] + biases[j]
                    out[place + 1] = room[r * {twice} + {lanes} + j] + biases[{lanes} + j]
    return 0
"""


@cache
def _product(type: str) -> Kernel:
    part = COMPLEX[type]
    lanes = current().vector // SIZES[part]
    names = {"part": part, "lanes": lanes, "twice": 2 * lanes, "vector": f"{part}x{lanes}", "rows": len(ROWS)}
    several = {
        "before": "".join(_BEFORE.format(r=r, **names) for r in ROWS),
        "sums": _SUMS.format(**names) + "".join(_SUM.format(r=r, **names) for r in ROWS),
        "after": "".join(_AFTER.format(r=r, **names) for r in ROWS),
    }
    return parse(_PRODUCT.format(**names, **several))


def _word(tensor: int, d: int, name: str = "EXTENTS") -> str:
    return f"words[{SHAPED_WORDS[name] + 5 * tensor + d}]"


def _gaps(tensor: int, order: Sequence[int]) -> Iterator[str]:
    """Tests for gaps in a tensor whose dimensions lie in that order."""
    for place, d in enumerate(order):
        inner = " * ".join(["1", *(_word(tensor, each) for each in order[place + 1 :])])
        yield f"bitand({_word(tensor, d)} != 1, {_word(tensor, d, 'STRIDES')} != {inner})"


def function(type: str, ranks: Sequence[int], places: Sequence[int], kinds: Sequence[str], *, is_row: bool) -> Kernel:
    """The function of a product of two tensors, with a third one that is added, perhaps, of so many dimensions and of
    that kind each, at these places among the operator's tensors.  It is for tensors without gaps.

    `is_row`: the second has the sizes of the result's columns first, as weights of layers.
    """
    rank, first, second = ranks[0], places[0], places[1]
    leading = range(rank - 2)
    inner, outer = (1, 0) if is_row else (ranks[1] - 2, ranks[1] - 1)
    tests = [f"{_word(first, d)} != {_word(second, d)}" for d in leading]
    tests += [f"k != {_word(second, inner)}"]
    tests += [f"{_word(places[2], 0)} != n"] if len(places) > 2 else []
    for count, place, kind in zip(ranks, places, kinds, strict=True):
        order = {"STEPPED": [*range(count)], "TURNED": [*range(count - 2), count - 1, count - 2]}
        tests += _gaps(place, order.get(kind, ()))
    sizes = [*(_word(first, d) for d in leading), "m", "n"]
    lines = [
        "words = view(i64[...], words_)",
        f"batch = {' * '.join(['1', *(_word(first, d) for d in leading)])}",
        f"m = {_word(first, rank - 2)}",
        f"k = {_word(first, rank - 1)}",
        f"n = {_word(second, outer)}",
        *(f"if {test}:\n        return -2" for test in tests),
        "if phase == 0:",
        f"    words[{SHAPED_WORDS['RANK']}] = {rank}",
        *(f"    words[{SHAPED_WORDS['SIZES'] + d}] = {size}" for d, size in enumerate(sizes)),
        f"    words[{SHAPED_WORDS['WORK']}] = quotient(batch * m * n * k, 4)",
        "    return 0",
        f"is_turned = {int(is_row or 'TURNED' in kinds)}",
        *(
            f"{name} = words[{SHAPED_WORDS['PLACES'] + place}]"
            for name, place in zip(("a_", "b_", "bias_"), places, strict=False)
        ),
        *(["bias_ = 0"] if len(places) < 3 else []),
        f"out_ = words[{SHAPED_WORDS['PLACES'] + len(places)}]",
    ]
    before = parse("def shaped(words_: i64, phase: i64):\n" + "".join(f"    {line}\n" for line in lines)).body
    return calling(_product(type), "shaped", ["words_", "phase"], before)
