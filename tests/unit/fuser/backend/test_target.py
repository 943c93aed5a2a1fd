"""The processor that code is made for: this one, those that a name stands for, and what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from engine.fuser.backend import machine, target
from engine.fuser.ir import kernel_text
from engine.lang.errors import ArgumentError

_ADD = """def add(n: i64, x: f32[n], out: Out[f32[n]]):
    for i in vector(n):
        out[i] = x[i] + x[i]
"""


@pytest.mark.parametrize(
    ("name", "vector", "registers", "letter"),
    [
        ("x86-64", 16, 16, "xmm"), ("nehalem", 16, 16, "xmm"), ("x86-64-v3", 32, 16, "ymm"), ("znver2", 32, 16, "ymm"),
        ("x86-64-v4", 64, 32, "zmm"), ("skylake-avx512", 64, 32, "zmm"), ("cortex-a72", 16, 32, "v"),
    ],
)  # fmt: skip
def test_code_has_vectors_as_wide_as_the_processor(name: str, vector: int, registers: int, letter: str) -> None:
    found = target.named(name)
    assert (found.vector, found.registers) == (vector, registers)
    text = machine.program(kernel_text.parse(_ADD)).write()
    assembly = machine.assembly_text(str(text), found)
    assert re.search(rf"\b{letter}\d", assembly)
    wider = {"xmm": "ymm", "ymm": "zmm"}.get(letter)
    assert wider is None or wider not in assembly


def test_halves_are_converted_where_there_are_instructions() -> None:
    answers = {
        name: target.named(name).converts_halves for name in ("x86-64-v2", "x86-64-v3", "cortex-a72", "apple-m1")
    }
    assert answers == {"x86-64-v2": False, "x86-64-v3": True, "cortex-a72": False, "apple-m1": True}


def test_a_name_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(ArgumentError, match="TSREPL_TARGET: there is no target 'x86-64-v33'") as raised:
        target.named("x86-64-v33")
    assert "x86-64-v4" in raised.value.hints[0]
    assert raised.value.hints[1] == "did you mean 'x86-64-v3'?"


def test_a_processor_that_this_one_cannot_be_is_refused() -> None:
    old, new, other = (target.named(name) for name in ("x86-64-v2", "x86-64-v4", "apple-m1"))
    assert target.checked("x86-64-v2", new) == old
    with pytest.raises(ArgumentError, match=r"this processor has no avx512bw, .*, which x86-64-v4 has"):
        target.checked("x86-64-v4", target.named("x86-64-v3"))
    with pytest.raises(ArgumentError, match="runs no code for x86-64-v2"):
        target.checked("x86-64-v2", other)
    with pytest.raises(ArgumentError, match="runs no code for apple-m1"):
        target.checked("apple-m1", old)


def test_the_host_is_what_llvm_says() -> None:
    host = target.host()
    assert host.cpu
    assert host.vector in (16, 32, 64)
    x = np.arange(40, dtype=np.float32)
    out = np.empty_like(x)
    assert machine.callable_kernel(kernel_text.parse(_ADD))(40, x, out) == 0
    np.testing.assert_array_equal(out, 2 * x)


_REPORT = """
import numpy as np
from engine.fuser.backend import machine, target
from engine.fuser.ir import kernel_text
kernel = kernel_text.parse('''{text}''')
x = np.arange(40, dtype=np.float32)
out = np.empty_like(x)
assert machine.callable_kernel(kernel)(40, x, out) == 0 and (out == 2 * x).all()
print(target.current().cpu, machine.has_feature("sse2") or machine.has_feature("neon"))
"""


def _run(name: str) -> subprocess.CompletedProcess[str]:
    program = _REPORT.format(text=_ADD)
    environment = {**os.environ, target.VARIABLE: name}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)


def test_a_process_runs_as_the_named_processor() -> None:
    least = "cortex-a72" if "neon" in target.host().features else "x86-64"
    assert _run(least).stdout.split() == [least, "True"]
    assert _run("").stdout.split() == [target.host().cpu, "True"]


def test_a_process_tells_of_a_mistake() -> None:
    assert "TSREPL_TARGET: there is no target 'pentium'" in _run("pentium").stderr
