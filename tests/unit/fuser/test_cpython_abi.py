"""What is known of this process is checked, and where a check fails operators stay as they are."""

import sys
import sysconfig
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch import table
from engine.aten.values.tensor import Tensor
from engine.fuser import cpython_abi, machine, tiering
from engine.fuser.cpython_abi import AbiError
from engine.fuser.entries import native, process

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


def test_inner_loops_are_found_and_tried() -> None:
    for ufunc in (np.exp, np.arctan2, np.floor_divide):
        for letter in "fd":
            assert all(isinstance(each, int) for each in cpython_abi.inner_loop(ufunc, letter))
    with pytest.raises(AbiError):
        cpython_abi.inner_loop(np.exp, "l")


def _patched(module: Any, name: str, value: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(module, name, value)


def _other_version(patch: Patch) -> None:
    patch.setattr(cpython_abi, "VERSIONS", cpython_abi.VERSIONS - {sys.version_info[:2]})


def _without_the_lock(patch: Patch) -> None:
    known = sysconfig.get_config_var
    patch.setattr(sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else known(name))


def _without_llvmlite(patch: Patch) -> None:
    def refuse(name: str) -> Any:
        raise ImportError(f"No module named '{name}'")

    patch.setattr(machine, "import_module", refuse)


def _new_slot(patch: Patch) -> None:
    """Tensors that carry something that native code does not know."""
    made = Tensor(np.zeros(3))
    made.output_nr = 12345
    patch.setattr(process.samples, "fresh_tensor", lambda: made)


BROKEN: dict[str, Callable[[Patch], None]] = {
    "another version of CPython": _other_version,
    "no global interpreter lock": _without_the_lock,
    "another implementation": lambda patch: patch.setattr(sys.implementation, "name", "pypy"),
    "another numpy": _patched(cpython_abi, "ARRAY_VERSIONS", {}),
    "arrays laid out otherwise": _patched(cpython_abi, "DATA", 24),
    "another table of numpy's functions": _patched(cpython_abi, "_FUNCTIONS", ("PyObject_NoSuchThing",)),
    "slots that do not say where they are": _patched(cpython_abi, "_MEMBER", 32),
    "tensors with more in them": _new_slot,
    "no llvmlite": _without_llvmlite,
}


@pytest.fixture
def clean() -> Iterator[None]:
    """Nothing is known of the process nor compiled for `aten::atan`, before and after."""

    def forget() -> None:
        X.atan()  # type: ignore[attr-defined]
        tiering.wait()
        native.remove("aten::atan")
        native._refused.pop("aten::atan", None)
        process._found = None

    forget()
    yield
    forget()


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.usefixtures("clean")
def test_a_failing_check_keeps_native_entries_off(what: str, monkeypatch: Patch) -> None:
    entry = table.find("aten::atan")
    assert entry is not None
    before = entry.run(X).tolist()
    BROKEN[what](monkeypatch)
    native.compile_name("aten::atan")
    assert "aten::atan" in native.refused(), what
    assert not any(each.name == "aten::atan" for each in native.compiled())
    assert entry.run(X).tolist() == before == X.atan().tolist()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("clean")
def test_without_a_failing_check_there_is_one() -> None:
    native.compile_name("aten::atan")
    assert "aten::atan" not in native.refused()
