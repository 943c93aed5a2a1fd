"""Refusals whose words programs may look for: they hold what the reference says."""

from __future__ import annotations

import pytest

from engine.frontend.compilation.compile import compile_source
from engine.lang.errors import EngineError

BODIES = (
    ("return [1, 2][0, 1]", "Unsupported operation: attempted to use multidimensional indexing on a non-tensor type"),
    ("return t[x:]", "tuple slice indices must be integer constants"),
    ("return x[0:1]", "Arguments for call are not valid."),
    ("y: int", "For an assignment, expected an expression on the right-hand side"),
    (
        "y: List[float] = [1]",
        "List type annotation `List[float]` did not match the types of the given list elements, "
        "which were unified to int",
    ),
    ("y: List[List[int]] = [[], [1]]", "which were unified to Union[List[Tensor], List[int]]"),
    (
        "return [y for y in (1, 'a')]",
        "List type annotation `List[int]` did not match the types of the given list "
        "elements, which were unified to Union[int, str]",
    ),
    (
        "y: Dict[int, str] = {i: i for i in range(3)}",
        "Dict type annotation `Dict[int, str]` did not match the type of an actual value type `int`",
    ),
    ("return {'a': 1, 2: 3}", "Dict keys must contain only a single type. Expected: str but found int instead"),
    ("return {None: 1}", "Cannot create dict for key type 'NoneType', only int, float, complex, Tensor, device"),
    ("return {(i, i): 2 for i in range(2)}", "Cannot create dict for key type '(int, int)'"),
    ("return dict([(i, i) for i in range(2)], z=3)", "dict takes no keyword arguments"),
    ("return dict({}, z=3)", "Generated value type int did not match the annotated value type, which was Tensor"),
    ("return list([1], [2])", "list expected exactly 1 arguments but found 2"),
    (
        "for y, z in zip(t, [1, 2]):\n        pass",
        "Can not iterate over a module list or tuple with a value that does not have a statically determinable length",
    ),
    ("break", "SyntaxError: 'break' outside loop"),
    ("continue", "SyntaxError: 'continue' outside loop"),
    ("return repr(nothing)", "Python builtin <built-in function repr> is currently not supported in Torchscript"),
    ("return math.log2(1.5)", "Python builtin <built-in function log2> is currently not supported in Torchscript"),
    ("return print(x)", "None cannot be used as a value"),
    ("return int", "__int__ cannot be used as a value"),
    ("return isinstance", "isinstance cannot be used as a value"),
    ("return enumerate([1])", "iterabletree cannot be used as a value"),
    ("return ValueError('a')", "exception message cannot be used as a value"),
    ("return torch.nn", "python value of type 'module' cannot be used as a value. Perhaps it is a closed over global"),
    ("return 'a'.__contains__('b')", "'str' object has no attribute or method '__contains__'."),
    ("return isinstance(x, [int])", "Expression of type list-literal cannot be used in a type expression"),
    ("y: Dict[int] = {}", " expected exactly 2 element types but found 1"),
    ("return {**{}}", "expected ident but found 'pow operator' here"),
    ("return <= 1", "expected ident but found 'le' here"),
    ("return (x", "expected ) but found 'eof' here"),
    ("return x \\", "expected newline but found 'eof' here"),
    ("return 'abc", "expected a valid token but found ' ' here"),
)
DEFINITIONS = (
    ("def f(a: int = 1.5, b: str = 'a'):\n    pass\n",
     'Expected a default value of type int on parameter "a" but it is of type float'),
    ("def f(a: float = 1):\n    pass\n", 'of type float on parameter "a" but it is of type int'),
    ("def f(a=1):\n    pass\n", "Keyword arguments with defaults need to be type-hinted (TorchScript C++ frontend)"),
    ("def f(a: int = 1, b: int):\n    pass\n", "Non-default positional argument follows default argument. Parameter b"),
)  # fmt: skip


@pytest.mark.parametrize(("body", "message"), BODIES)
def test_refusals_in_a_function(body: str, message: str) -> None:
    text = f"def f(x: int, t: Tuple[int, str]):\n    {body}\n"
    with pytest.raises(EngineError) as error:
        compile_source(text)
    assert message in str(error.value)


@pytest.mark.parametrize(("text", "message"), DEFINITIONS)
def test_refusals_of_definitions(text: str, message: str) -> None:
    with pytest.raises(EngineError) as error:
        compile_source(text)
    assert message in str(error.value)
    assert error.value.range is not None
    assert error.value.range.line == 1


def test_schemas_tell_the_length_of_broadcasting_lists() -> None:
    unit = compile_source(
        "def f(a: BroadcastingList2[int], b: Optional[BroadcastingList3[float]], c: Future[int]):\n    pass\n"
    )
    assert str(unit.functions["f"].schema) == "f(int[2] a, float[3]? b, Future(int) c) -> NoneType"
