"""Random numbers of all kinds, as expressions over a module `t` that is torch or stands for it.

In: a module.  Out: for each expression, dtype and size the dtype of the result, its first and last number, the sum of
all, and the number that comes next; or None where the call is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("random_numbers.json")
SIZES = (1, 15, 16, 17, 100)
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool")
EXPRESSIONS = (
    "t.rand(n, dtype=d)", "t.randn(n, dtype=d)", "z.normal_(1, 2)", "z.uniform_(-1, 3)", "t.normal(p, 2.0)",
    "t.normal(1.0, p)", "t.normal(p, p)", "z.log_normal_(0.5, 0.7)", "z.exponential_(1.5)", "z.geometric_(0.3)",
    "z.cauchy_(0.5, 2)", "z.random_()", "z.random_(2)", "t.randint(0, 2, (n,), dtype=d)", "t.bernoulli(p)",
    "z.bernoulli_(0.3)", "z.bernoulli_(t.full((n,), 0.4))", "t.nn.functional.dropout(z + 1, 0.4)", "t.poisson(p * 20)",
    "t.poisson(p)", "t.poisson(p * 400)", "t._standard_gamma(p + 0.5)", "t._standard_gamma(p)",
    "t._sample_dirichlet(p.reshape(1, -1))", "t.binomial(z + 5, p)", "t.binomial(z + 100, p)",
    "t.multinomial(p, min(n, 3))", "t.multinomial(p, 20, True)", "t.randperm(n, dtype=d)", "t.rand_like(z)",
    "t.randn_like(z)", "t.rrelu(p - 0.5, 0.1, 0.3, True)", "t.nn.init.trunc_normal_(z)",
)  # fmt: skip
"""`n` is the size, `d` the dtype, `z` zeros, `p` probabilities, both of this dtype."""
Drawn = tuple[str, float, float, float, float] | None


def drawn(t: Any, expression: str, dtype: str, size: int) -> Drawn:
    d = getattr(t, dtype)
    names = {
        "t": t, "n": size, "d": d, "min": min, "z": t.zeros(size, dtype=d), "p": (t.arange(size) % 7 / 8 + 0.1).to(d)
    }  # fmt: skip
    t.manual_seed(7)
    try:
        found = eval(expression, names)
    except (RuntimeError, ValueError):
        return None
    numbers = [float(each) for each in found.reshape(-1).double().tolist()]
    return str(found.dtype).rpartition(".")[2], numbers[0], numbers[-1], sum(numbers), t.rand(1).item()


def cases() -> Iterator[tuple[str, str, int]]:
    for expression in EXPRESSIONS:
        for dtype in DTYPES:
            for size in SIZES:
                yield expression, dtype, size
