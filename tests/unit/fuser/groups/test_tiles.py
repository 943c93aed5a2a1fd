"""Tiles of products keep their sums in registers: their machine code for processors of every kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from engine.fuser.backend import machine, target, to_llvm
from engine.fuser.groups import gemm
from engine.fuser.ir import kernel_text, to_numpy

_PROCESSORS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "skylake-avx512", "znver5", "cortex-a72", "apple-m1")
_SPILLED = {
    "x86": re.compile(r"^\s+\w+\s.*%[xyz]mm\d+.*\(%r[sb]p|^\s+\w+\s.*\(%r[sb]p\S*, %[xyz]mm", re.M),
    "arm": re.compile(r"^\s+(?:str|stp|stur|ldr|ldp|ldur)\s+q\d+.*\[(?:sp|x29)", re.M),
}
_STACK = {"x86": re.compile(r"\(%r[sb]p"), "arm": re.compile(r"\[(?:sp|x29)")}
_FUSED = {"x86": r"vfmadd|mulp[sd]", "arm": r"fmla"}


def _tiles(processor: target.Target) -> Iterator[gemm.Tile]:
    """The tallest, and those that fill what is left, of each type and each kind of operand."""
    for type in gemm.TYPES:
        for columns in (0, 1):
            tile = gemm.tile_for(columns, 0, type, "k", processor)
            for rows in {tile.rows, tile.rows - 1, tile.rows // 2, 1}:
                yield replace(tile, rows=rows)
            yield replace(tile, along="rows")
            yield replace(tile, along="")
            yield replace(tile, reaches=True)


def _loop(assembly: str, step: str) -> str:
    """The innermost loop: from its label to the branch back, with the most steps."""
    labels = {m[1]: m.end() for m in re.finditer(r"^(\.?L\w+):", assembly, re.M)}
    loops = [
        assembly[labels[m[1]] : m.end()]
        for m in re.finditer(r"^\s+(?:j\w+|b\.\w+|b|cbn?z\s+\w+,)\s+(\.?L\w+)$", assembly, re.M)
        if m[1] in labels and labels[m[1]] < m.start()
    ]
    return max(loops, key=lambda text: len(re.findall(step, text)))


@pytest.mark.parametrize("name", _PROCESSORS)
def test_sums_stay_in_registers(name: str) -> None:
    processor = target.named(name)
    kind = "arm" if processor.triple.startswith("aarch64") else "x86"
    for tile in _tiles(processor):
        assembly = machine.assembly_text(str(to_llvm.module([gemm.tile_helper(tile)])), processor)
        assert not _SPILLED[kind].findall(assembly), tile
        loop = _loop(assembly, _FUSED[kind])
        assert len(re.findall(_FUSED[kind], loop)) == tile.rows * tile.vectors, tile
        assert len(_STACK[kind].findall(loop)) <= (tile.along == ""), tile


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("type", gemm.TYPES)
def test_sums_along_k_stay_in_registers(name: str, type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    processor = target.named(name)
    monkeypatch.setattr(gemm, "current", lambda: processor)
    for helper in gemm.dots_helpers(type):
        assembly = machine.assembly_text(str(to_llvm.module([helper])), processor)
        assert not _SPILLED["x86"].findall(assembly)


def test_sums_that_are_too_many_are_seen_on_the_stack() -> None:
    """So that the search for them finds what it looks for."""
    for name, kind in (("x86-64-v3", "x86"), ("cortex-a72", "arm")):
        processor = target.named(name)
        tile = replace(gemm.tile_for(0, 0, "f32", "k", processor), rows=17)
        assembly = machine.assembly_text(str(to_llvm.module([gemm.tile_helper(tile)])), processor)
        assert _SPILLED[kind].findall(assembly)


@pytest.mark.parametrize("name", _PROCESSORS)
def test_registers_are_left_besides_sums_and_a_row_of_the_panel(name: str) -> None:
    processor = target.named(name)
    for type in gemm.TYPES:
        tile = gemm.tile_for(0, 0, type, "k", processor)
        assert tile.lanes * {"f32": 4, "f64": 8}[type] == processor.vector
        assert tile.rows * tile.vectors + 3 < processor.registers


@pytest.mark.parametrize("along", ["k", "rows", ""])
@pytest.mark.parametrize("reaches", [False, True])
@pytest.mark.parametrize("vector", ["f32x4", "f64x2"])
def test_tiles_are_what_their_definition_says(vector: str, reaches: bool, along: gemm.Along) -> None:
    """In machine code and in numpy's, with the text between."""
    tile = gemm.Tile(3, 2, vector, along, reaches=reaches)
    kernel = gemm.tile_helper(tile)
    assert kernel_text.parse(kernel_text.show(kernel)) == kernel
    random, dtype = np.random.default_rng(0), {"f32": np.float32, "f64": np.float64}[tile.type]
    k = 5
    a = random.standard_normal((tile.rows, k)).astype(dtype)
    panel = random.standard_normal((k, tile.width)).astype(dtype)
    given = np.asfortranarray(a) if along == "rows" else a
    row, column = (each // given.itemsize for each in given.strides)
    reach = [np.arange(k) * tile.width] if reaches else []
    for depth, before in ((0, 0.0), (1, 2.0)):
        results = []
        for function in (to_numpy.compiled(kernel), machine.callable_kernel(kernel)):
            result = np.full((tile.rows, tile.width), before, dtype)
            code = function(depth, k, row, column, tile.width, tile.width, given, panel, *reach, result)
            assert code == 0
            np.testing.assert_allclose(result, before + a.astype(np.float64) @ panel, rtol=1e-5, atol=1e-5)
            results.append(result)
        np.testing.assert_allclose(*results, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("vector", ["f32x4", "f32x8", "f32x16", "f64x2", "f64x8"])
@pytest.mark.parametrize("left", [0, 1, 40])
def test_columns_are_turned_into_rows(vector: str, left: int) -> None:
    """Also where k is no multiple of a vector, and where there are fewer columns, the last of which is repeated."""
    kernel = gemm.turn_helper(vector)
    assert kernel_text.parse(kernel_text.show(kernel)) == kernel
    lanes, dtype = gemm.lanes_of(vector), {"f32": np.float32, "f64": np.float64}[gemm.element_of(vector)]
    deep, step = 2 * lanes + 3, lanes + 1
    a = np.arange(lanes * deep, dtype=dtype).reshape(lanes, deep)
    wanted = a[np.minimum(np.arange(lanes), left)].T
    for function in (to_numpy.compiled(kernel), machine.callable_kernel(kernel)):
        panel = np.zeros((deep, step), dtype)
        assert function(deep, left, deep, step, a, panel) == 0
        np.testing.assert_array_equal(panel[:, :lanes], wanted)
        assert not panel[:, lanes:].any()
