"""The table of passes has a row for each pass, with the stages that run it."""

import ast
from pathlib import Path

import pytest

import engine
from engine.passes.pipeline import PASSES, PIPELINES

ENGINE = Path(engine.__file__).parent
STAGES = {
    "compile": ["frontend/lowering/finish.py"],
    "plans": ["executor/plans/pipelines.py", "executor/plans/plan.py"],
    "freeze": ["torch/freezing.py"],
}


def test_every_file_has_a_row() -> None:
    files = {path.stem for path in (ENGINE / "passes").glob("*.py")} - {"__init__", "pipeline"}
    assert sorted(files) == list(PASSES)


@pytest.mark.parametrize("stage", STAGES)
def test_stages_run_the_passes_of_their_rows(stage: str) -> None:
    trees = [ast.parse((ENGINE / file).read_text(encoding="utf-8")) for file in STAGES[stage]]
    constants = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert {each for each in constants if isinstance(each, str) and each in PASSES} == in_stage(stage)


def test_pipelines_run_the_passes_of_their_rows() -> None:
    assert {name for pipeline in PIPELINES.values() for name in pipeline} == in_stage("named")


def test_rows_name_known_stages_and_a_change() -> None:
    for row in PASSES.values():
        assert row.stages == ("request",) or {*STAGES, "named"}.issuperset(row.stages)
        assert " → " in row.change


def in_stage(stage: str) -> set[str]:
    return {name for name, row in PASSES.items() if stage in row.stages}
