"""The tests for GPUs on machines without one: cupy itself, with the CPU in the place of the GPU.

    python -m tests.gpu.simulator [arguments of pytest]

It needs cupy-cuda12x (any machine can install it), gcc, g++ and nm, on Linux on x86-64.  Kernels are compiled when they
are first needed, which takes a while the first time; all that was built is kept in a folder for temporary files
(`CUDA_SIMULATOR_FOLDER`).  Without arguments, all tests of `tests/gpu` run.
"""

from __future__ import annotations

import os
import sys

import pytest

from tests.gpu.simulator import build

_USUAL = ["-m", "gpu", "tests/gpu"]


def main() -> int:
    folder = str(build.FOLDER)
    if folder not in os.environ.get("LD_LIBRARY_PATH", "").split(":"):  # which is read when a process starts
        paths = ":".join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))
        command = [sys.executable, "-m", "tests.gpu.simulator", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "LD_LIBRARY_PATH": paths})
    from tests.gpu.simulator.install import install

    install()
    return pytest.main(["-q", *(sys.argv[1:] or _USUAL)])


sys.exit(main())
