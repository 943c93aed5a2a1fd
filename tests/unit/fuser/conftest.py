"""Kernels of tests read back from their text as they were, and are made of the plans of first calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from engine.fuser.backend import to_llvm
from engine.fuser.ir.kernel import Kernel
from engine.fuser.ir.kernel_text import parse, show


@pytest.fixture(autouse=True)
def _texts_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    write = to_llvm.module

    def checked(kernels: Iterable[Kernel], name: str = "kernels", **options: Any) -> Any:
        found = list(kernels)
        made = write(found, name, **options)
        for each in found:
            assert repr(parse(show(each))) == repr(each)
        return made

    monkeypatch.setattr(to_llvm, "module", checked)


@pytest.fixture(autouse=True)
def _plans(plans_at_once: None) -> None:
    """First calls have plans."""
