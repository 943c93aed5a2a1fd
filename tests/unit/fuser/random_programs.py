"""Programs put together at random: operators, shapes, dtypes and layouts in any company."""

from __future__ import annotations

import random
from typing import Any, Final

import engine.torch as torch
from tests.unit.fuser.kernels_of_groups import tensor

STEPS: Final = (
    "torch.tanh({a})", "torch.sigmoid({a}) * {b}", "{a} + {b}", "{a} - {b} * 0.5", "torch.maximum({a}, {b})",
    "torch.where({a} > {b}, {a}, -{b})", "{a}.masked_fill({b} < 0, 0.25)", "torch.clamp({a}, -1.0, 1.5)",
    "torch.nn.functional.gelu({a})", "torch.abs({a}) + torch.sqrt(torch.abs({b}))", "{a} / ({b} * {b} + 1)",
    "{a} - {a}.mean(1, True)", "{a} * {b}.amax(1, keepdim=True)", "{a} + {b}.sum(0) * 0.1", "{a} + {b}.mean()",
    "torch.softmax({a}, -1) + {b}", "torch.log_softmax({a}, 0)", "torch.layer_norm({a}, [6], w, None, 1e-5) + {b}",
    "torch.cat([{a}[:, 3:], {b}[:, :3]], 1)", "torch.cat([{a}[1:], {b}[:1]])", "{a}.t().contiguous().view(-1, 6)",
    "({a}.view(-1, 2, 3) * {b}.reshape(-1, 2, 3)).flatten(1)", "torch.stack([{a}, {b}]).sum(0)",
    "{a}.unsqueeze(1).expand(-1, 2, -1).mean(1)", "{a}.std(1, keepdim=True) + {b}", "{a} * {b}[:, 2:3]",
    "{a}.to(torch.float64).mul(0.5).to(torch.float32) + i", "(i + {a}) * 0.5", "torch.floor({a}) + ({b} > 0)",
    "{a} * s + n", "torch.logsumexp({a}, 1, True) - {b}",
)  # fmt: skip


def program(choose: random.Random, count: int) -> str:
    """A program of so many steps."""
    known, lines = ["x", "y", "z"], []
    for k in range(count):
        step = choose.choice(STEPS)
        lines.append(f"    v{k} = {step.format(a=choose.choice(known), b=choose.choice(known))}")
        known.append(f"v{k}")
        if choose.random() < 0.3:
            known.pop(0)
    results = ", ".join(f"{each}.contiguous()" for each in known[-choose.randint(1, 2) :])
    return "\n".join(["def f(x, y, z, w, i, s: float, n: int):", *lines, f"    return {results}", ""])


def arguments(rows: int, choose: random.Random) -> list[Any]:
    """Tensors of (rows, 6), one of them strided, a weight, whole numbers that broadcast, and numbers."""
    x, y = tensor(rows, 6, seed=1), tensor(6, rows, seed=2).t()
    return [x, y, tensor(rows, 6, seed=3), tensor(6), torch.arange(6), choose.random(), choose.randint(-3, 3)]
