"""`python -m engine.torch script.py ARGS…` (or `-m package ARGS…`): run a program whose `torch` is the engine's."""

from __future__ import annotations

import sys

from engine.torch.running import run_as_torch

if __name__ == "__main__":
    sys.exit(run_as_torch(sys.argv[1:]))
