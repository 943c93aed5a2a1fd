"""Errors of running programs: which class, which words, which lines."""

import pytest

from engine.aten.values.tensor import tensor
from engine.executor.bytecode import operations
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.traceback import MAX_SHOWN_CALLS, CallSite, execution_error, frames_of_node
from engine.executor.interpreter.interpreter import InterpreterState, run_function
from engine.frontend.compilation.compile import compile_source
from engine.ir.graph import InlinedFrom
from engine.ir.parser import parse_ir
from engine.lang.errors import CompileError, Error, ExecutionError, OperatorError, OperatorIndexError
from engine.lang.source import Source

PROGRAM = """
def inner(x: List[int], i: int):
    return x[i]

def outer(x: List[int]):
    y = inner(x, 0)
    return inner(x, 10)

def refuse(x: int):
    if x > 0:
        raise ValueError("too large: " + str(x))
    return x
"""


def failure(name: str, *inputs: object) -> ExecutionError:
    unit = compile_source(PROGRAM, filename="p.py")
    with pytest.raises(ExecutionError) as caught:
        run_function(unit.functions[name], inputs)
    return caught.value


def test_every_call_on_the_stack_is_told_innermost_last() -> None:
    error = failure("outer", [1, 2])
    assert [(frame.function, frame.range.line) for frame in error.frames] == [("outer", 7), ("inner", 3)]
    assert error.line == 3
    text = str(error)
    head = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript"
    assert text.startswith(f'{head} (most recent call last):\n  File "p.py", line 7, in outer\n')
    assert "RuntimeError: list index out of range" in text
    assert error.__cause__ is not None


def test_a_raise_of_the_program_keeps_the_class_it_named() -> None:
    error = failure("refuse", 3)
    assert isinstance(error, Error)
    assert error.python_class == "builtins.ValueError"
    assert "\nValueError: too large: 3" in str(error)
    assert error.__cause__ is None


def test_a_python_error_of_an_operator_becomes_one_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def divide(x: int) -> float:
        return x / 0

    monkeypatch.setitem(operations.OPERATIONS, "prim::spy", lambda _: divide)
    code = Code(parse_ir("graph(%x : int):\n  %y : int = prim::spy(%x)\n  return (%y)\n"), "f")
    with pytest.raises(ExecutionError, match=r"division by zero \(in prim::spy\)\n?.*check the divisor") as caught:
        InterpreterState(code).run(1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (KeyError("a"), "KeyError: 'a'"),
        (MemoryError(), "MemoryError"),
        (OperatorError("no", hints=["so what"]), "so what"),
        (OperatorIndexError("out of range"), "out of range"),
    ],
)
def test_whatever_is_raised_arrives_as_an_execution_error(raised: Exception, words: str) -> None:
    error = execution_error(raised, [])
    assert type(error) is ExecutionError
    assert words in "\n".join([str(error), *error.hints])


def test_an_error_that_knows_its_own_place_keeps_it() -> None:
    place = Source("def f(): oops\n", "g.py").whole()
    assert 'File "g.py", line 1' in execution_error(CompileError("no such thing", place), []).message


def test_calls_that_inlining_removed_are_told() -> None:
    source = Source("outer\nmiddle\ninner\n")
    lines = [source.whole().__class__(source, start, start + 1) for start in (0, 6, 13)]
    graph = parse_ir("graph(%x : int):\n  %y : int = aten::neg(%x)\n  return (%y)\n")
    (node,) = graph.nodes()
    node.range = lines[2]
    node.inlined_from = (InlinedFrom("g", lines[0]), InlinedFrom("h", lines[1]))
    found = [(frame.function, frame.range.line) for frame in frames_of_node(node, "f")]
    assert found == [("f", 1), ("g", 2), ("h", 3)]


def test_of_a_deep_stack_the_middle_is_left_out() -> None:
    graph = parse_ir("graph(%x : int):\n  %y : int = aten::neg(%x)\n  return (%y)\n")
    (node,) = graph.nodes()
    node.range = Source("raise\n").whole()
    outer = [CallSite(f"f{i}", node) for i in range(1000)]
    error = execution_error(ValueError("x"), outer)
    assert len(error.frames) == MAX_SHOWN_CALLS
    around = execution_error(error, [CallSite("g", node)] * MAX_SHOWN_CALLS)
    shown = [frame.function for frame in around.frames]
    assert (len(shown), shown[0], shown[-1]) == (MAX_SHOWN_CALLS, "g", "f999")


def test_library_functions_stand_on_the_stack() -> None:
    unit = compile_source(
        "def f(x):\n    return g(x)\ndef g(x):\n    return torch.nn.functional.layer_norm(x, [7])\n", filename="p.py"
    )
    with pytest.raises(ExecutionError) as caught:
        run_function(unit.functions["f"], [tensor([[0.0] * 5] * 2)])
    places = [(frame.function, frame.range.filename) for frame in caught.value.frames]
    assert places == [("f", "p.py"), ("g", "p.py"), ("layer_norm", "<torch.nn.functional>")]
