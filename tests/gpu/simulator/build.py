"""Makes the libraries that cupy loads, and kernels, with the compiler of the CPU.

In: cupy as it is installed.  Out: files in a folder of their own, which are kept: what was built is not built again.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
FOLDER: Final = Path(os.environ.get("CUDA_SIMULATOR_FOLDER", Path(tempfile.gettempdir()) / "cuda-simulator"))
SITE: Final = Path(sysconfig.get_paths()["purelib"])
CUPY: Final = SITE / "cupy" / "_core" / "include"
OWN: Final = ("libcuda.so.1", "libnvrtc.so.12", "libcudart.so.12")
OTHERS: Final = {
    "cublas": "libcublas.so.12", "cusolver": "libcusolver.so.11", "cusparse": "libcusparse.so.12",
    "curand": "libcurand.so.10",
}  # fmt: skip
_INCLUDES: Final = [
    f"-I{path}"
    for path in (
        FOLDER / "include", HERE, CUPY, *(CUPY / "cupy" / "_cccl" / part for part in ("thrust", "libcudacxx", "cub")),
    )
]  # fmt: skip
_CPP: Final = [
    "g++", "-std=c++17", "-w", "-fpermissive", "-shared", "-fPIC", "-fwrapv", "-fno-gnu-unique", *_INCLUDES,
]  # fmt: skip


_KERNEL: Final = re.compile(r'extern "C"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)')


def compiled(command: list[str], target: Path) -> None:
    """Raises RuntimeError with what the compiler says.  Another process may be making the same file."""
    own = target.with_suffix(f".{os.getpid()}")
    done = subprocess.run([*command, "-o", str(own)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{target.name}: {done.stderr[:2000]}")
    own.rename(target)


def libraries() -> list[Path]:
    """All that cupy loads, made if need be."""
    include = FOLDER / "include" / "cupy"
    include.mkdir(parents=True, exist_ok=True)
    for name in ("cuda_bf16.h", "cuda_fp16.h", "cuda_runtime.h", "cuComplex.h"):
        (FOLDER / "include" / name).touch()
    halves = (CUPY / "cupy" / "float16.cuh").read_text(encoding="utf-8")
    halves = halves.replace("#ifdef __HIPCC_RTC__", '#if 1\n#include "half.h"\n#elif defined(__HIPCC_RTC__)', 1)
    halves = halves.replace("#elif __CUDACC_VER_MAJOR__ >= 9", "#elif 0", 1)
    (include / "float16.cuh").write_text(halves, encoding="utf-8")
    found = [FOLDER / name for name in OWN]
    for path in found:
        if not path.exists():
            command = ["gcc", "-w", "-O1", "-shared", "-fPIC", str(HERE / "runtime.c"), f"-Wl,-soname,{path.name}"]
            compiled(command, path)
    found += [_standing_in(*row) for row in OTHERS.items()]
    light = FOLDER / "libcublasLt.so.12"  # which is only looked for
    if not light.exists():
        shutil.copy(FOLDER / OTHERS["cublas"], light)
    return [*found, light]


def _standing_in(name: str, file: str) -> Path:
    """A library with every function that cupy asks of it: those of blas.h, others only fail."""
    path = FOLDER / file
    if path.exists():
        return path
    (extension,) = (SITE / "cupy_backends" / "cuda" / "libs").glob(f"{name}.*.so")
    listed = subprocess.run(["nm", "-D", str(extension)], capture_output=True, text=True, check=True).stdout
    wanted = {line.split()[1].partition("@")[0] for line in listed.splitlines() if f" U {name}" in line}
    text = '#include "blas.h"\n' if name == "cublas" else ""
    if name == "cublas":
        wanted -= _written()
    lines = [f"int {each}(void **out) {{ {_answer(each)} }}" for each in sorted(wanted)]
    source, versions = FOLDER / f"{name}.cpp", FOLDER / f"{name}.map"
    source.write_text(f'{text}extern "C" {{\n' + "\n".join(lines) + "\n}\n", encoding="utf-8")
    versions.write_text(f"{file} {{ global: *; }};\n", encoding="utf-8")
    compiled([*_CPP, "-O1", str(source), f"-Wl,-soname,{file}", f"-Wl,--version-script={versions}"], path)
    return path


def _answer(name: str) -> str:
    if re.search(r"Create$", name):
        return "*out = (void *)1; return 0;"
    return f"return {0 if re.search(r'Create|Destroy|Set', name) else 15};"


def _written() -> set[str]:
    text = (HERE / "blas.h").read_text(encoding="utf-8")
    gemm = {f"cublas{letter}gemm{form}" for letter in "SDCZ" for form in ("_v2", "StridedBatched", "Batched")}
    dots = {f"cublas{name}_v2" for name in re.findall(r"DOT\((\w+), \w+, ", text)}
    return gemm | dots | set(re.findall(r"int (cublas\w+)\(", text))


def source_of(name: str) -> Path:
    return FOLDER / f"{name}.cu"


def kernel(program: str, name: str) -> Any:
    """A function of grid and block sizes, and arguments.  Raises RuntimeError when the compiler refuses the source."""
    text = source_of(program).read_text(encoding="utf-8")
    number = "" if "<" not in name else hashlib.md5(name.encode()).hexdigest()[:8]
    path = FOLDER / f"{program}{number}.so"
    if not path.exists():
        made = path.with_suffix(f".{os.getpid()}.cpp")
        made.write_text(_translated(text, name), encoding="utf-8")
        compiled([*_CPP, "-O0", str(made)], path)
        made.unlink()
    return getattr(ctypes.CDLL(str(path)), "simulated" if number else f"simulated_{name}")


def _translated(text: str, name: str) -> str:
    waits = "__sync" in text or "__shfl" in text or "CUPY_FOR" not in text
    way = "TOGETHER" if waits else "EACH_ALONE" if re.search(r"\breturn\b", text) else "ONE_THREAD"
    names = [name] if "<" in name else _KERNEL.findall(text)
    body = re.sub(r"extern\s+__shared__\s+([\w:<> ]+?)\s+(\w+)\[\]", r"static \1 \2[65536]", text)
    body = re.sub(r"#include <cuda_?[a-z0-9_]*\.h>|#include <type_traits>", "", body)
    ends = [
        f"static void go_{i}(void **given) {{ call_with({each}, given); }}\n"
        f'extern "C" void simulated{"" if "<" in each else "_" + each}(const unsigned *sizes, void **given) '
        f"{{ run_kernel(go_{i}, given, sizes, {way}); }}"
        for i, each in enumerate(names)
    ]
    return "\n".join(['#include "device.h"', body, '#include "launch.h"', *ends, ""])
