"""Processes of the engine's own, beside the program: which neither waits for them nor ends them.

In: a program of Python, what is to be different in its environment.  Out: a process that is no child of this one, with
nothing of it but the environment, in a session of its own, so that an interrupt of the program is none of its.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[3]
_SHELL: Final = "/bin/sh"
_SCRIPT: Final = '"$@" >/dev/null 2>&1 </dev/null &'
"""The shell ends at once, so that the program has no child that it did not start."""


def start(module: str, environment: Mapping[str, str], *, after: float = 0.0) -> bool:
    """Let the `main` of one of the engine's modules run in a new process; False where none is to be had.

    It compiles for itself alone, and its products take one thread.  `after` so many seconds it begins.
    """
    if not _is_python():
        return False
    wait = f"import time; time.sleep({after}); " if after else ""
    run = f"from {module} import main; main()"
    alone = "from engine.fuser.backend.pace import SESSION; SESSION.is_own = True"
    program = f"{wait}import sys; sys.path.insert(0, sys.argv[1]); import engine.executor; {alone}; {run}"
    command = [_SHELL, "-c", _SCRIPT, "sh", sys.executable, "-P", "-c", program, str(_ROOT)]
    own = {**os.environ, "TSREPL_COMPILE": "off", "OPENBLAS_NUM_THREADS": "1", **environment}
    try:
        return _spawned(command, own)
    except (OSError, NotImplementedError, AttributeError, ValueError):
        return False


def _spawned(command: list[str], environment: Mapping[str, str]) -> bool:
    """True once the shell has started the process."""
    shell = os.posix_spawn(_SHELL, command, environment, setsid=True, setsigdef=[signal.SIGINT, signal.SIGTERM])
    try:
        return os.waitstatus_to_exitcode(os.waitpid(shell, 0)[1]) == 0
    except ChildProcessError:  # the program has its children waited for, or wants to hear of none
        return True


def _is_python() -> bool:
    """True unless Python is part of another program, which would be started a second time."""
    return Path(sys.executable or "").name.startswith("python") and not getattr(sys, "frozen", False)
