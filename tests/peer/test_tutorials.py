"""Scripts like those that teach PyTorch give on both engines the same losses, numbers and texts."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="compares with a real PyTorch, which is not installed here")
pytestmark = pytest.mark.peer

TUTORIALS = sorted((Path(__file__).parent / "tutorials").glob("*.py"))


def close(mine: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return list(mine) == list(theirs) and all(close(mine[name], theirs[name]) for name in theirs)
    if isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(close, mine, theirs))
    return bool(mine == (pytest.approx(theirs, rel=2e-3, abs=2e-4) if isinstance(theirs, float) else theirs))


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda path: path.stem)
def test_the_same_facts(script: Path, tmp_path: Path) -> None:
    theirs = tmp_path / script.name
    theirs.write_text(script.read_text().replace("import engine.torch as torch", "import torch"))
    mine, wanted = (runpy.run_path(str(path), run_name="tutorial")["main"]() for path in (script, theirs))
    assert list(mine) == list(wanted)
    for name, fact in wanted.items():
        assert close(mine[name], fact), f"{name}: {mine[name]} is not {fact}"
