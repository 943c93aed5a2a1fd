"""Puts the CPU in the place of a GPU, under cupy as it is installed.

In: nothing; the process must have been started with the folder of `build` among those where libraries are looked for.
Out: cupy, whose kernels are compiled for the CPU and run there.  What cupy holds compiled for GPUs (sorting), and what
other libraries do (decompositions, Fourier transforms), numpy does in its place.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tests.gpu.simulator import build

os.environ.setdefault("CUPY_CACHE_DIR", str(build.FOLDER / "cache"))
os.environ["CUPY_ACCELERATORS"] = ""
_LINALG: Final = "cholesky eigh eigvalsh eigvals eig svd qr inv solve lstsq pinv det slogdet matrix_rank"
_FFT: Final = "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn"
_SORTED: Final = "?bBhHiIlLqQefdFD"
FAILED: Final[dict[str, str]] = {}
"""Kernels that could not be run, and why."""
_KERNELS: Final[dict[tuple[str, str], Any]] = {}
_Saver: Final = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)
_Launcher: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)


@_Saver
def _save(name: bytes, source: bytes) -> None:
    path = build.source_of(name.decode())
    if not path.exists():
        path.write_bytes(source)


@_Launcher
def _launch(program: bytes, name: bytes, sizes: int, given: int) -> int:
    key = program.decode(), name.decode()
    try:
        if key not in _KERNELS:
            _KERNELS[key] = build.kernel(*key)
        _KERNELS[key](ctypes.c_void_p(sizes), ctypes.c_void_p(given))
    except Exception as error:  # nothing may leave a function that C calls
        FAILED[key[1]] = str(error)
        print(f"simulator: {key[1]}: {error}", file=sys.stderr)
        return 700
    return 0


def install() -> Any:
    """cupy on the CPU."""
    loaded = {path.name: ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL) for path in build.libraries()}
    import cupy
    import cupy.cuda.cub
    import cupy.cuda.thrust
    import cupy_backends.cuda.api.runtime

    own = loaded[build.OWN[0]]
    own.replace.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    for module in (cupy_backends.cuda.api.runtime, cupy.cuda.thrust, cupy.cuda.cub):
        _redirect(module.__file__, own)
    loaded[build.OWN[1]].set_saver(_save)
    own.set_launcher(_launch)
    thrust: Any = cupy.cuda.thrust
    thrust.sort, thrust.argsort, thrust.lexsort = _sort, _argsort, _lexsort
    for module, original, names in ((cupy.linalg, np.linalg, _LINALG), (cupy.fft, np.fft, _FFT)):
        for name in names.split():
            if hasattr(module, name):
                setattr(module, name, _on_copies(cupy, getattr(original, name)))
    return cupy


def _redirect(path: str, own: Any) -> None:
    """Let the runtime that is linked into a module jump to ours."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        start = min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(path))
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        found = re.fullmatch(r"([0-9a-f]+) [tT] (cuda[A-Z]\w+?)(_ptsz)?", line)
        if found:
            function = getattr(own, f"f_{found[2]}", own.f_zero)
            own.replace(start + int(found[1], 16), ctypes.cast(function, ctypes.c_void_p))


def _on_copies(cupy: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    def back(value: Any) -> Any:
        return tuple(map(back, value)) if isinstance(value, tuple) else cupy.asarray(value)

    def called(*args: Any, **kwargs: Any) -> Any:
        if not isinstance(args[0], cupy.ndarray):
            raise TypeError(f"{function.__name__} of {type(args[0])}")
        return back(function(*(each.get() if isinstance(each, cupy.ndarray) else each for each in args), **kwargs))

    called.__name__ = function.__name__
    return called


def _array(address: int, dtype: Any, shape: Any) -> Any:
    if np.dtype(dtype).char not in _SORTED:
        raise NotImplementedError(f"Sorting arrays with dtype '{dtype}' is not supported")
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype).reshape(tuple(shape))


def _sort(dtype: Any, data: int, keys: int, shape: Any) -> None:
    values = _array(data, dtype, shape)
    values[...] = np.sort(values, -1, kind="stable")


def _argsort(dtype: Any, places: int, data: int, keys: int, shape: Any) -> None:
    values = _array(data, dtype, shape)
    _array(places, np.intp, shape)[...] = np.argsort(values, -1, kind="stable")
    values[...] = np.sort(values, -1)


def _lexsort(dtype: Any, places: int, keys: int, k: int, n: int) -> None:
    _array(places, np.intp, (n,))[...] = np.lexsort(_array(keys, dtype, (k, n)))
