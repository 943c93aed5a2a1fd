"""PyTorch's random numbers, written to `tests/table/random_numbers.json`, which the law of random numbers reads.

    python -m tests.peer.random_numbers

Runs where PyTorch is installed.
"""

from __future__ import annotations

import json
from importlib import import_module

from tests.table.random_calls import RECORDED, cases, drawn


def main() -> None:
    torch = import_module("torch")
    found = {"|".join(map(str, case)): drawn(torch, *case) for case in cases()}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(len(found), "calls")


if __name__ == "__main__":
    main()
