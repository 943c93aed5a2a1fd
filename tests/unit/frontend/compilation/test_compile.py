"""From text to functions: units, laziness, recursion, errors and where they come from."""

from __future__ import annotations

import pytest

from engine.frontend.compilation.compile import compile_source, define, define_class
from engine.frontend.names.resolve import TextResolver
from engine.frontend.syntax.parser import parse_program
from engine.ir.unit import CompilationUnit
from engine.ir.verify import verify
from engine.lang.errors import CompileError
from engine.lang.source import Source
from engine.lang.types import ClassType, EnumType, TupleType
from tests.timing import within


def refused(text: str) -> CompileError:
    with pytest.raises(CompileError) as error:
        compile_source(text)
    return error.value


def test_schema_comes_from_annotations_defaults_and_returns() -> None:
    unit = compile_source("def f(x, n: int = 3, *, s: str) -> Tuple[Tensor, int]:\n    return x, n\n")
    assert str(unit.functions["f"].schema) == "f(Tensor x, int n=3, *, str s) -> ((Tensor, int))"


def test_return_type_is_what_the_returns_share() -> None:
    unit = compile_source("def f(x: bool):\n    if x:\n        return 1\n    return None\n")
    assert str(unit.functions["f"].schema.returns[0].type) == "int?"


def test_functions_may_stand_in_any_order() -> None:
    unit = compile_source("def f(x: int):\n    return g(x)\ndef g(x: int):\n    return x + 1\n")
    verify(unit.functions["f"].graph)


def test_recursion_is_refused_with_the_calls_that_lead_to_it() -> None:
    error = refused("def f(x: int) -> int:\n    return g(x)\ndef g(x: int) -> int:\n    return f(x)\n")
    assert "is called recursively" in str(error)
    assert [(frame.function, frame.range.line) for frame in error.frames] == [("g", 2), ("f", 4)]
    assert error.line == 4


def test_errors_in_callees_tell_who_called() -> None:
    error = refused("def f(x: int):\n    return g(x)\ndef g(x: int):\n    return x.foo\n")
    assert error.line == 4
    assert "'g' is being compiled since it was called from 'f':" in str(error)
    assert error.range is not None
    assert error.range.text == "x.foo"


def test_a_refused_text_leaves_the_unit_as_it_was() -> None:
    unit = compile_source("def f(x: int):\n    return x\n")
    with pytest.raises(CompileError):
        compile_source("def g(x: int):\n    return f(x)\ndef h(x: int):\n    return nothing\n", unit=unit)
    assert list(unit.functions) == ["f"]
    with pytest.raises(CompileError, match=r"method 'f' already defined\."):
        compile_source("def f(x: int):\n    return x\n", unit=unit)


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("torch.sigmiod(x)", "sigmoid"),
        ("x.sigmod()", "did you mean 'sigmoid'?"),
        ("math.sqtr(2.0)", "did you mean 'sqrt'?"),
        ("torhc.relu(x)", "did you mean 'torch'?"),
        ("torch.relu(y)", "undefined value y"),
        ("torch.softmax(x, dmi=1)", "did you mean 'dim'?"),
    ],
)
def test_misspelt_names_are_guessed(body: str, hint: str) -> None:
    assert hint in str(refused(f"def f(x: Tensor):\n    return {body}\n"))


def test_defaults_are_evaluated_once() -> None:
    params = "a: List[int] = [1, 2], b: float = -(1e-3), c: Tuple[int, str] = (1, 'x'), d: int = 2 * 3"
    unit = compile_source(f"def f({params}):\n    pass\n")
    assert [argument.default for argument in unit.functions["f"].schema.arguments] == [[1, 2], -0.001, (1, "x"), 6]


CLASSES = """
class Point(NamedTuple):
    x: Tensor
    n: int = 3
class Color(Enum):
    RED = 1
    GREEN = 2
class Counter:
    def __init__(self, start: int):
        self.count = start
        self.seen: List[int] = []
    def add(self, by: int) -> int:
        self.count += by
        self.seen.append(by)
        return self.count
    def __len__(self) -> int:
        return len(self.seen)
def f(x: Tensor, color: Color):
    point = Point(x)
    counter = Counter(point.n)
    counter.add(1)
    if color == Color.RED:
        return point.x + len(counter)
    return x
"""


def test_classes_named_tuples_and_enums() -> None:
    unit = compile_source(CLASSES)
    point, color, counter = (unit.types[name] for name in ("Point", "Color", "Counter"))
    assert isinstance(point, TupleType)
    assert point.fields == ("x", "n")
    assert point.defaults == (3,)
    assert isinstance(color, EnumType)
    assert [name for name, _ in color.members] == ["RED", "GREEN"]
    assert isinstance(counter, ClassType)
    assert [(a.name, str(a.type)) for a in counter.attributes] == [("count", "int"), ("seen", "int[]")]
    kinds = {node.kind for node in unit.functions["f"].graph.all_nodes()}
    assert {"prim::CreateObject", "prim::CallMethod"} <= kinds
    verify(unit.functions["f"].graph)


def test_a_property_is_a_call() -> None:
    text = "class C:\n    def __init__(self):\n        self.n = 1\n"
    text += "    @property\n    def twice(self) -> int:\n        return self.n * 2\n"
    unit = CompilationUnit()
    (tree,) = parse_program(Source(text), extended=True)
    define_class(unit, tree, TextResolver(unit))
    compile_source("def f() -> int:\n    return C().twice\n", unit=unit)
    node = unit.functions["f"].graph.find_all_nodes("prim::CallMethod")[-1]
    assert node.attr("name") == "__twice_getter"


def test_a_refused_class_is_not_in_the_unit() -> None:
    unit = CompilationUnit()
    with pytest.raises(CompileError, match="nonexistent attribute"):
        compile_source("class C:\n    def set(self):\n        self.n = 1\n", unit=unit)
    assert not unit.functions
    with pytest.raises(CompileError, match="cannot be derived from 'Base'"):
        compile_source("class C(Base):\n    pass\n", unit=unit)


def test_methods_under_a_prefix() -> None:
    unit = CompilationUnit()
    type = ClassType("__torch__.M", is_module=True)
    type.add_attribute("weight", compile_source("def f(x):\n    return x\n").functions["f"].schema.arguments[0].type)
    trees = parse_program(Source("def forward(self, x):\n    return torch.linear(x, self.weight, None)\n"))
    (forward,) = define(unit, trees, TextResolver(unit), type.qualname, type)
    assert forward.qualname == "__torch__.M.forward"
    assert type.methods["forward"] is forward
    assert forward.graph.find_node("prim::GetAttr") is not None


def test_compiling_is_linear() -> None:
    """Two thousand lines in under two seconds, on a machine that does other things, too."""
    step = "    if n > {0}:\n        x = x * {0} + n\n    y = torch.relu(x + {0}.5)\n    x = x + y\n"
    lines = "".join(step.format(i) for i in range(500))
    with within(6):
        compile_source(f"def f(x: Tensor, n: int):\n{lines}    return x\n")
