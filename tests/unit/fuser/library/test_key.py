"""Keys of images: whatever decides the code is in them, and nothing that does not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.fuser.backend import processors
from engine.fuser.images.objects import ImageError
from engine.fuser.library import key, processor
from engine.fuser.library.key import Key, of_text


@pytest.fixture(autouse=True)
def _looks_again() -> Any:
    yield
    key.current.cache_clear()


def _now() -> Key:
    key.current.cache_clear()
    return key.current()


def _other_layout(patch: pytest.MonkeyPatch) -> None:
    class Other:
        layout = "[('array', 24)]"

    patch.setattr(key, "process", Other)


def _other_system(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(processor.LEVELS, "plan9 mips", (processor.level(),))
    patch.setattr(processor, "system", lambda: "plan9 mips")


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], Any]] = {
    "format": lambda patch: patch.setattr(key.image, "MAGIC", b"tsrepl library 2"),
    "system": _other_system,
    "target": lambda patch: patch.setattr(processor, "level", lambda: processor.Level("another", "", frozenset())),
    "python": lambda patch: patch.setattr(sys.implementation, "cache_tag", "cpython-399"),
    "numpy": lambda patch: patch.setattr(np, "__version__", "9.0"),
    "layout": _other_layout,
    "sources": lambda patch: patch.setattr(key, "sources", lambda: "others"),
    "llvmlite": lambda patch: patch.setattr(key.kernel_cache, "compiler", lambda: "another"),
}


def test_there_is_a_change_for_each_fact() -> None:
    assert _now().facts.keys() == CHANGES.keys()


@pytest.mark.parametrize("fact", CHANGES)
def test_each_fact_decides(fact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _now()
    CHANGES[fact](monkeypatch)
    after = _now()
    assert after.differences(before.text) == [fact]
    assert after.digest != before.digest
    assert not after.fits(before.text) and after.fits(after.text)
    assert after.fits_packaged(before.text) == (fact == key.COMPILER)


def test_keys_are_read_back() -> None:
    assert of_text(_now().text) == _now()


def test_what_came_with_the_package_says_its_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(key, "PACKAGED", tmp_path)
    of_files = key.sources()
    (tmp_path / key.SOURCES).write_text("abc\n")
    assert (key.sources(), len(of_files)) == ("abc", 64)


# ------------------------------------------------------------------ processors

V3 = "abm avx avx2 bmi1 bmi2 cx16 f16c fma lahf_lm movbe pni popcnt sse4_1 sse4_2 ssse3 xsave"
V4 = f"{V3} avx512bw avx512cd avx512dq avx512f avx512vl"


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [("", "x86-64"), (V3, "x86-64-v3"), (V3.replace("movbe ", ""), "x86-64-v2"), (V4, "x86-64-v4"),
     (V4.replace("avx512vl", ""), "x86-64-v3")],
)  # fmt: skip
def test_levels_are_told_by_flags(flags: str, wanted: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(processor.VARIABLE, raising=False)
    monkeypatch.setattr(processor, "system", lambda: "linux x86_64")
    facts = tmp_path / "cpuinfo"
    facts.write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\nbugs\t\t:\n\nprocessor\t: 1\nflags\t\t: {V4}\n")
    monkeypatch.setattr(processors, "_FACTS", str(facts))
    assert processor.level().name == wanted
    monkeypatch.setenv(processor.VARIABLE, "x86-64-v3")
    if wanted in ("x86-64-v3", "x86-64-v4"):
        assert processor.level().name == "x86-64-v3"
    else:
        with pytest.raises(ImageError, match="x86-64-v3"):
            processor.level()


@pytest.mark.parametrize(
    ("name", "level"), [("haswell", "x86-64-v3"), ("znver4", "x86-64-v4"), ("nehalem", "x86-64-v2")]
)
def test_a_named_processor_has_the_images_of_its_level(
    name: str, level: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    facts = tmp_path / "cpuinfo"
    facts.write_text(f"flags\t\t: {V4}\n")
    monkeypatch.setattr(processor, "system", lambda: "linux x86_64")
    monkeypatch.setattr(processors, "_FACTS", str(facts))
    monkeypatch.setenv(processor.VARIABLE, name)
    assert [each.name for each in processor.levels()] == [level]


@pytest.mark.parametrize("system", processor.LEVELS)
def test_where_the_system_names_no_flags_all_processors_have_the_level(
    system: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(processor.VARIABLE, raising=False)
    monkeypatch.setattr(processor, "system", lambda: system)
    monkeypatch.setattr(processors, "_FACTS", str(tmp_path / "nothing"))
    assert processor.level() == processor.LEVELS[system][-1]


def test_systems_without_images_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "system", lambda: "plan9 mips")
    with pytest.raises(ImageError, match="no images"):
        processor.level()
