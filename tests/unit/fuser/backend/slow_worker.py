"""A worker whose jobs take as long as they say, for tests of those who wait for it."""

from __future__ import annotations

import time

from engine.fuser.backend import worker


def main() -> None:
    worker.IDLE = 3.0
    worker.serve({"sleep": time.sleep})
