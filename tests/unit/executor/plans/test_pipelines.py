"""The table of passes tells where each runs."""

from engine.executor.plans import pipelines
from engine.passes.pipeline import PIPELINES, RUN_IN, names


def test_every_pass_stands_in_one_row() -> None:
    listed = [name for row in RUN_IN.values() for name in row]
    assert sorted(listed) == names()


def test_the_row_of_plans_is_what_plans_run() -> None:
    stages = [value for name, value in vars(pipelines).items() if name.isupper() and isinstance(value, tuple)]
    assert {"inline"}.union(*stages) == RUN_IN["plans"]


def test_the_row_of_stages_is_what_the_stages_add() -> None:
    run = {name for pipeline in PIPELINES.values() for name in pipeline}
    assert run - RUN_IN["plans"] - RUN_IN["compiling"] == RUN_IN["stages"]
