"""Each pass makes of recorded graphs what PyTorch's pass made of them, up to the numbers of values."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.ir.parser import parse_ir
from engine.passes.canonicalize import canonicalize
from engine.passes.pipeline import run_pass, run_pipeline, verifier

RECORDED = json.loads((Path(__file__).parent / "recorded_passes.json").read_text())
AFTER = [(case, names) for case in RECORDED for names in case["after"]]
UNCHANGED = [(case, name) for case in RECORDED for name in case["unchanged"] if name != "canonicalize"]


def canonical(text: str) -> str:
    graph = parse_ir(text)
    canonicalize(graph, keep_names=False)
    return str(graph)


@pytest.mark.parametrize(("case", "names"), AFTER, ids=[f"{c['id']}-{n.partition(',')[0]}" for c, n in AFTER])
def test_after(case: dict[str, Any], names: str) -> None:
    graph = parse_ir(case["graph"])
    assert run_pipeline(names.split(","), graph, verifier)
    assert canonical(str(graph)) == canonical(case["after"][names])


@pytest.mark.parametrize(("case", "name"), UNCHANGED, ids=[f"{case['id']}-{name}" for case, name in UNCHANGED])
def test_unchanged(case: dict[str, Any], name: str) -> None:
    graph = parse_ir(case["graph"])
    run_pass(name, graph, verifier)
    assert canonical(str(graph)) == canonical(case["graph"])
