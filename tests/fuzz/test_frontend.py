"""A short run of the fuzzer, the same each time."""

from __future__ import annotations

from random import Random

import pytest

from .doors import KINDS, own_programs
from .frontend import check
from .mutations import mutant

PROGRAMS = own_programs()


def test_programs_are_found_and_break_nothing() -> None:
    assert len(PROGRAMS) > 100
    assert not [str(finding) for program in PROGRAMS for finding in check(program)]


@pytest.mark.parametrize("seed", range(4))
def test_mutants_break_nothing(seed: int) -> None:
    random = Random(seed)
    assert not [str(finding) for _ in range(150) for finding in check(mutant(PROGRAMS, random))]


@pytest.mark.parametrize("kind", ["graph", "schema", "type"])
def test_other_texts_and_their_mutants_break_nothing(kind: str) -> None:
    texts, random = KINDS[kind].texts(), Random(kind)
    assert not [str(finding) for text in texts[:200] for finding in check(text, kind)]
    assert not [str(finding) for _ in range(200) for finding in check(mutant(texts, random), kind)]


def test_the_fuzzer_tells_what_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> object:
        raise KeyError("oops")

    monkeypatch.setattr("engine.frontend.compilation.compile.read_signature", broken)
    kinds = {finding.kind.split(" in ")[0] for finding in check("def f(x: int):\n    return x\n")}
    assert kinds == {"KeyError"}
