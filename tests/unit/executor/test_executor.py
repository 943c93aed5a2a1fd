"""Executors: made once, when first needed."""

from engine.executor.executor import code_of, executor_of
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang.schema import FunctionSchema


def test_a_function_is_compiled_and_linearised_when_it_first_runs() -> None:
    compiled: list[str] = []

    def create(function: Function) -> None:
        compiled.append(function.name)
        function.define(FunctionSchema("f"), Graph())

    function = Function("__torch__.f", create)
    assert not compiled
    executor = executor_of(function)
    assert executor_of(function) is executor
    assert code_of(function) is executor.code
    assert (compiled, executor.code.name) == (["f"], "f")
    assert executor.graph is not function.graph
    assert str(executor.graph) == str(function.graph)
