"""What PyTorch writes where masks are set, written to `tests/table/mask_writes.json`, which the law of masks reads.

    python -m tests.peer.mask_writes

Runs where PyTorch is installed.
"""

from __future__ import annotations

import json
from importlib import import_module

from tests.table.mask_calls import CALLS, DTYPES, RECORDED, outcome


def main() -> None:
    torch = import_module("torch")
    lines = [
        f"{json.dumps(' | '.join(call))}: {json.dumps([outcome(torch, *call, dtype) for dtype in DTYPES])}"
        for call in CALLS
    ]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(len(lines), "calls")


if __name__ == "__main__":
    main()
