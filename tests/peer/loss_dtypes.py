"""The dtypes of PyTorch's losses, written to `tests/table/loss_dtypes.json`, which the law of losses reads.

    python -m tests.peer.loss_dtypes

Runs where PyTorch is installed.
"""

from __future__ import annotations

import json
from importlib import import_module

from tests.table.loss_calls import DTYPES, EXPRESSIONS, RECORDED, evaluated, operands, outcome


def main() -> None:
    torch, functional = import_module("torch"), import_module("torch.nn.functional")
    lines = []
    for expression in EXPRESSIONS:
        call = evaluated(functional, expression)
        found = [[outcome(call, operands(torch, a, b)) for b in DTYPES] for a in DTYPES]
        lines.append(f"{json.dumps(expression)}: {json.dumps(found)}")
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(len(lines), "expressions")


if __name__ == "__main__":
    main()
