"""Symbols of native code: who owns one gives its address, and C libraries have the rest."""

from __future__ import annotations

import ctypes

import pytest

from engine.fuser.backend import symbols


def test_functions_of_c_are_found() -> None:
    address = symbols.address_of("cos")
    assert address is not None
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(0.0) == 1.0
    assert symbols.address_of("no_such_function_anywhere") is None


def test_owners_go_before_c_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(symbols.SYMBOLS, "cos", lambda: 5)
    assert symbols.address_of("cos") == 5


def test_the_library_serves_all_of_some_symbols_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbols.LIBRARY, "find", {"a": 1, "b": 2}.get)
    assert symbols.compiled_ahead(("a", "b")) == {"a": 1, "b": 2}
    assert symbols.compiled_ahead(("a", "c")) is None


def test_the_pool_and_scratch_memory_have_owners() -> None:
    for name in (symbols.PARALLEL, symbols.ALLOCATE, symbols.RELEASE):
        assert symbols.address_of(name)
