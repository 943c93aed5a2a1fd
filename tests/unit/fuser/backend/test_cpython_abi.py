"""What is known of this process is checked, and where a check fails operators stay as they are."""

import sys
import sysconfig
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.fuser.backend import cpython_abi, tiering
from engine.fuser.backend.cpython_abi import AbiError
from engine.fuser.library import descriptors, key, serving, store
from engine.fuser.stubs import process

Patch = pytest.MonkeyPatch
X = Tensor(np.arange(6.0))


def test_this_process_is_as_expected() -> None:
    known = cpython_abi.known()
    assert known.array_new and all(known.functions.values())


def test_slots_are_found_where_the_type_says() -> None:
    offset = cpython_abi.slot_offset(Tensor, "array")
    assert cpython_abi.slot_value(X, offset) == id(X.array)
    with pytest.raises(AbiError):
        cpython_abi.slot_offset(Tensor, "shape")


def _patched(module: Any, name: str, value: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(module, name, value)


def _other_version(patch: Patch) -> None:
    patch.setattr(cpython_abi, "VERSIONS", cpython_abi.VERSIONS - {sys.version_info[:2]})


def _without_the_lock(patch: Patch) -> None:
    known = sysconfig.get_config_var
    patch.setattr(sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else known(name))


def _new_slot(patch: Patch) -> None:
    """Tensors that carry something that native code does not know."""
    made = Tensor(np.zeros(3))
    made.output_nr = 12345
    patch.setattr(process, "fresh", lambda array: made)


BROKEN: dict[str, Callable[[Patch], None]] = {
    "another version of CPython": _other_version,
    "no global interpreter lock": _without_the_lock,
    "another implementation": lambda patch: patch.setattr(sys.implementation, "name", "pypy"),
    "another numpy": _patched(cpython_abi, "ARRAY_VERSIONS", {}),
    "arrays laid out otherwise": _patched(cpython_abi, "DATA", 24),
    "another table of numpy's functions": _patched(cpython_abi, "_FUNCTIONS", ("PyObject_NoSuchThing",)),
    "slots that do not say where they are": _patched(cpython_abi, "_MEMBER", 32),
    "tensors with more in them": _new_slot,
}


@pytest.fixture
def exp(library: None, monkeypatch: Patch) -> Iterator[Op]:
    """An operator that nobody has called, of a process of which nothing is known, before and after."""
    found = table.find("aten::exp")
    assert found is not None
    tiering.wait()
    monkeypatch.setattr(store, "_STORE", store._Store())
    monkeypatch.setattr(serving, "_STATE", serving._State(has_all=True))
    monkeypatch.setattr(key, "current", cache(key.current.__wrapped__))
    for module in (descriptors, serving):  # whose words other operators hold
        monkeypatch.setattr(module, "process_words", cache(descriptors.process_words.__wrapped__))
    process._found = None
    found.give_back()
    yield found
    process._found = None
    found.give_back()


@pytest.mark.parametrize("what", BROKEN)
def test_a_failing_check_leaves_operators_to_python(what: str, exp: Op, monkeypatch: Patch) -> None:
    BROKEN[what](monkeypatch)
    assert exp.run is exp.compiled.run, what
    assert np.allclose(exp.run(X).array, np.exp(X.array))


@pytest.mark.usefixtures("exp")
def test_words_that_descriptors_point_to_stay() -> None:
    words = weakref.ref(descriptors.process_words())
    descriptors.process_words.cache_clear()
    assert words() is not None


def test_without_a_failing_check_the_library_serves(exp: Op) -> None:
    assert isinstance(exp.run, BuiltinFunctionType)
    assert np.allclose(exp.run(X).array, np.exp(X.array))
