"""The table of passes has a row for each pass, with the stages that run it."""

import ast
import inspect
from importlib import import_module
from pkgutil import iter_modules

import pytest

from engine import passes
from engine.passes.pipeline import PASSES, PIPELINES

STAGES = {
    "compile": ["engine.frontend.lowering.lower"],
    "plans": ["engine.executor.plans.pipelines", "engine.executor.plans.making"],
    "freeze": ["engine.torch.jit.scripting.freezing", "engine.torch.compiled.graphs"],
    "mobile": ["engine.torch.jit.scripting.mobile_optimizing"],
}


def test_every_file_has_a_row() -> None:
    files = {module.name for module in iter_modules(passes.__path__)} - {"pipeline"}
    assert sorted(files) == list(PASSES)


@pytest.mark.parametrize("stage", STAGES)
def test_stages_run_the_passes_of_their_rows(stage: str) -> None:
    trees = [ast.parse(inspect.getsource(import_module(module))) for module in STAGES[stage]]
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
