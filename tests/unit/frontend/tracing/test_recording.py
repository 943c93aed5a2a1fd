"""Functions recorded while they run; the expected graphs are those that PyTorch records."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

import engine as torch
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.frontend.tracing.position import TracerWarning
from engine.lang.errors import CompileError
from engine.torch.nn import functional as F

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
Y = torch.tensor([[0.5, 1.0, 1.5], [2.0, 2.5, 3.0]])


def graph_of(function: Callable[..., Any], *inputs: Any, **options: Any) -> str:
    """The traced graph, with what is known of a tensor shortened to dtype and shape."""
    text = torch.jit.trace(function, inputs, **options).graph.str(print_source_ranges=False)
    return text.replace(", requires_grad=0, device=cpu", "").replace("requires_grad=0, device=cpu", "")


def assert_graph(function: Callable[..., Any], *inputs: Any, expected: str, **options: Any) -> None:
    assert graph_of(function, *inputs, **options).strip() == dedent(expected).strip()


# ------------------------------------------------------------------ graphs


def test_operators_and_names() -> None:
    def f(x: Any, h: Any) -> Any:
        new_h = -(x + h)  # A name that no operator uses is none of the graph's.
        return new_h  # noqa: RET504

    assert_graph(f, X, Y, expected="""
        graph(%x : Float(2, 3, strides=[3, 1]),
              %h : Float(2, 3, strides=[3, 1])):
          %2 : int = prim::Constant[value=1]()
          %3 : Float(2, 3, strides=[3, 1]) = aten::add(%x, %h, %2)
          %4 : Float(2, 3, strides=[3, 1]) = aten::neg(%3)
          return (%4)
        """)  # fmt: skip


def test_sizes_stay_dynamic() -> None:
    def f(x: Any) -> Any:
        return x.view(x.size(0), -1) * 2 + x.shape[1]

    assert_graph(f, X, expected="""
        graph(%x : Float(2, 3, strides=[3, 1])):
          %1 : int = prim::Constant[value=0]()
          %2 : int = aten::size(%x, %1)
          %3 : Long(device=cpu) = prim::NumToTensor(%2)
          %4 : int = aten::Int(%3)
          %5 : int = prim::Constant[value=-1]()
          %6 : int[] = prim::ListConstruct(%4, %5)
          %7 : Float(2, 3, strides=[3, 1]) = aten::view(%x, %6)
          %8 : Long() = prim::Constant[value={2}]()
          %9 : Float(2, 3, strides=[3, 1]) = aten::mul(%7, %8)
          %13 : int = prim::Constant[value=1]()
          %14 : int = aten::size(%x, %13)
          %15 : Long(device=cpu) = prim::NumToTensor(%14)
          %16 : int = prim::Constant[value=1]()
          %17 : Float(2, 3, strides=[3, 1]) = aten::add(%9, %15, %16)
          return (%17)
        """)  # fmt: skip
    traced = torch.jit.trace(f, X)
    other = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
    assert traced(other).tolist() == f(other).tolist()


def test_writes_lists_and_tuples() -> None:
    def f(x: Any) -> Any:
        a = x.relu()
        a.add_(1)
        b = torch.cat([a, x], dim=1)
        c, d = b.chunk(2, 1)
        return c * d, [c, d]

    assert_graph(f, X, strict=False, expected="""
        graph(%x : Float(2, 3, strides=[3, 1])):
          %a.1 : Float(2, 3, strides=[3, 1]) = aten::relu(%x)
          %2 : Long() = prim::Constant[value={1}]()
          %3 : int = prim::Constant[value=1]()
          %a : Float(2, 3, strides=[3, 1]) = aten::add_(%a.1, %2, %3)
          %5 : Tensor[] = prim::ListConstruct(%a, %x)
          %6 : int = prim::Constant[value=1]()
          %b : Float(2, 6, strides=[6, 1]) = aten::cat(%5, %6)
          %8 : int = prim::Constant[value=2]()
          %9 : int = prim::Constant[value=1]()
          %10 : Tensor[] = aten::chunk(%b, %8, %9)
          %c : Float(2, 3, strides=[6, 1]), %d : Float(2, 3, strides=[6, 1]) = prim::ListUnpack(%10)
          %13 : Float(2, 3, strides=[3, 1]) = aten::mul(%c, %d)
          %14 : Tensor[] = prim::ListConstruct(%c, %d)
          %15 : (Float(2, 3, strides=[3, 1]), Tensor[]) = prim::TupleConstruct(%13, %14)
          return (%15)
        """)  # fmt: skip


def test_slices_and_assignments() -> None:
    def f(x: Any) -> Any:
        z = torch.zeros(x.shape[0], 3)
        z[0] = 1.0
        return z + x[:, 1:2]

    assert_graph(f, X, expected="""
        graph(%x : Float(2, 3, strides=[3, 1])):
          %1 : int = prim::Constant[value=0]()
          %2 : int = aten::size(%x, %1)
          %3 : Long(device=cpu) = prim::NumToTensor(%2)
          %7 : int = aten::Int(%3)
          %8 : int = prim::Constant[value=3]()
          %9 : int[] = prim::ListConstruct(%7, %8)
          %10 : NoneType = prim::Constant()
          %11 : NoneType = prim::Constant()
          %12 : Device = prim::Constant[value="cpu"]()
          %13 : bool = prim::Constant[value=0]()
          %z : Float(2, 3, strides=[3, 1]) = aten::zeros(%9, %10, %11, %12, %13)
          %15 : int = prim::Constant[value=0]()
          %16 : int = prim::Constant[value=0]()
          %17 : Float(3, strides=[1]) = aten::select(%z, %15, %16)
          %18 : Float() = prim::Constant[value={1}]()
          %19 : Float(3, strides=[1]) = aten::fill_(%17, %18)
          %20 : int = prim::Constant[value=0]()
          %21 : int = prim::Constant[value=0]()
          %22 : int = prim::Constant[value=9223372036854775807]()
          %23 : int = prim::Constant[value=1]()
          %24 : Float(2, 3, strides=[3, 1]) = aten::slice(%x, %20, %21, %22, %23)
          %25 : int = prim::Constant[value=1]()
          %26 : int = prim::Constant[value=1]()
          %27 : int = prim::Constant[value=2]()
          %28 : int = prim::Constant[value=1]()
          %29 : Float(2, 1, strides=[3, 1]) = aten::slice(%24, %25, %26, %27, %28)
          %30 : int = prim::Constant[value=1]()
          %31 : Float(2, 3, strides=[3, 1]) = aten::add(%z, %29, %30)
          return (%31)
        """)  # fmt: skip


def test_library_functions_are_their_operators() -> None:
    def f(x: Any) -> Any:
        h = x * 2
        return F.softmax(F.relu(h), dim=-1)

    assert_graph(f, X, expected="""
        graph(%x : Float(2, 3, strides=[3, 1])):
          %1 : Long() = prim::Constant[value={2}]()
          %input.1 : Float(2, 3, strides=[3, 1]) = aten::mul(%x, %1)
          %input : Float(2, 3, strides=[3, 1]) = aten::relu(%input.1)
          %4 : int = prim::Constant[value=-1]()
          %5 : NoneType = prim::Constant()
          %6 : Float(2, 3, strides=[3, 1]) = aten::softmax(%input, %4, %5)
          return (%6)
        """)  # fmt: skip


def test_inputs_are_taken_apart() -> None:
    def f(d: Any, t: Any) -> Any:
        return {"s": d["a"] + t[0], "p": t[1][0]}

    assert_graph(f, {"a": X}, (Y, [X + 1]), strict=False, expected="""
        graph(%d : Dict(str, Tensor),
              %t : (Float(2, 3, strides=[3, 1]), Tensor[])):
          %1 : str = prim::Constant[value="a"]()
          %2 : Float(2, 3, strides=[3, 1]) = aten::__getitem__(%d, %1)
          %4 : Float(2, 3, strides=[3, 1]), %5 : Tensor[] = prim::TupleUnpack(%t)
          %6 : Float(2, 3, strides=[3, 1]) = prim::ListUnpack(%5)
          %7 : int = prim::Constant[value=1]()
          %8 : Float(2, 3, strides=[3, 1]) = aten::add(%2, %4, %7)
          %9 : str = prim::Constant[value="s"]()
          %10 : str = prim::Constant[value="p"]()
          %11 : Dict(str, Tensor) = prim::DictConstruct(%9, %8, %10, %6)
          return (%11)
        """)  # fmt: skip
    traced = torch.jit.trace(f, ({"a": X}, (Y, [X + 1])), strict=False)
    assert traced({"a": Y}, (Y, [X]))["s"].tolist() == (Y + Y).tolist()


def test_compiled_functions_stay_calls() -> None:
    compiled = torch.CompilationUnit("""
def g(x: Tensor, n: int) -> Tensor:
    if bool(x.sum() > 0):
        return x * n
    return x
""").g
    traced = torch.jit.trace(lambda x: compiled(x + 1, 3) - x, X)
    kinds = [node.kind for node in traced.graph.nodes()]
    assert "prim::CallFunction" in kinds
    assert "prim::If" not in kinds
    assert traced(-X * 9).tolist() == (compiled(-X * 9 + 1, 3) + X * 9).tolist()


def test_what_a_call_returns_unchanged_is_a_value_of_its_own() -> None:
    compiled = torch.CompilationUnit("""
def g(x: Tensor):
    if bool(x.sum() > 0):
        return x
    return x * 0
""").g
    traced = torch.jit.trace(lambda x: (compiled(x), x + 1), X)
    assert traced(-X)[1].tolist() == (1 - X).tolist()


def test_numbers_keep_their_dtype_rules() -> None:
    whole = torch.tensor([1, 2, 3])
    traced = torch.jit.trace(lambda x: x * 0.5 + 1, whole)
    assert traced(whole).dtype == torch.float32


def test_sizes_in_arithmetic() -> None:
    def f(x: Any) -> Any:
        b, c = x.shape
        return x.reshape(b * c // 3, 3) + torch.arange(x.numel() // b), x[: b - 1], torch.full((c, b), 1.5)

    traced = torch.jit.trace(f, X)
    other = torch.cat([X, X, Y])
    for mine, theirs in zip(traced(other), f(other), strict=True):
        assert mine.tolist() == theirs.tolist()


@pytest.mark.filterwarnings("error")
def test_sizes_stay_dynamic_in_library_functions() -> None:
    image, other = torch.ones(1, 1, 2, 4), torch.ones(1, 1, 3, 5)

    def resized(x: Any) -> Any:
        return F.interpolate(x, size=(x.size(2) * 2, x.shape[3] + 1))

    def divergence(x: Any) -> Any:
        return F.kl_div(x, x.exp() + 1, reduction="batchmean")

    assert torch.jit.trace(resized, image)(other).shape == (1, 1, 6, 6)
    traced = torch.jit.trace(divergence, X)
    assert abs(float(traced(torch.cat([X, Y]))) - float(divergence(torch.cat([X, Y])))) < 1e-4


def test_new_tensors_are_constants() -> None:
    with pytest.warns(TracerWarning, match="torch.tensor results are registered as constants"):
        text = graph_of(lambda x: x + torch.tensor(1.5), X)
    assert "prim::Constant[value={1.5}]" in text
    assert "aten::detach" in text


def test_data_is_followed() -> None:
    traced = torch.jit.trace(lambda x: x.data * 2, X)
    assert traced(Y).tolist() == (Y * 2).tolist()


def test_ranges_point_into_the_program() -> None:
    def f(x: Any) -> Any:
        return x.relu().view(6)

    traced = torch.jit.trace(f, X)
    node = traced.graph.find_node("aten::view")
    assert node is not None
    assert node.range.filename == __file__
    assert node.range.text == "x.relu().view(6)"
    with pytest.raises(RuntimeError, match="is invalid for input of size 2") as caught:
        traced(torch.tensor([1.0, 2.0]))
    assert "return x.relu().view(6)" in str(caught.value)


# ------------------------------------------------------------------ leaks

LEAKS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: x if bool(x.sum() > 0) else -x, "a Python boolean"),
    (lambda x: x * int(x[0, 0]), "a Python integer"),
    (lambda x: x * float(x[0, 0]), "a Python float"),
    (lambda x: x * x[0, 0].item(), "a Python number"),
    (lambda x: x * x.tolist()[0][0], "a Python list"),
    (lambda x: x * int(x.numpy()[0, 0]), "a NumPy array"),
    (lambda x: x * len(x), "Using len"),
    (lambda x: sum(iter(x)), "Iterating over a tensor"),
    (lambda x: x if x.shape[0] == 2 else -x, "a Python boolean"),
]


@pytest.mark.parametrize(("function", "message"), LEAKS, ids=[message for _, message in LEAKS])
def test_values_that_leak_into_python(function: Callable[[Any], Any], message: str) -> None:
    with pytest.warns(TracerWarning, match=message) as caught:
        torch.jit.trace(function, X)
    assert {warning.filename for warning in caught} == {__file__}


def test_no_warnings_without_leaks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.jit.trace(lambda x: F.softmax(x.view(x.size(0), -1)[:, :2], -1), X)
        assert repr(X)
        assert bool(X.sum() > 0)


# ------------------------------------------------------------------ refusals

REFUSED: list[tuple[Callable[..., Any], Any, str]] = [
    (lambda x: x, 3, r"Type 'Tuple\[int\]' cannot be traced"),
    (lambda x: x, ((X, "a"),), r"Type 'Tuple\[Tuple\[Tensor, str\]\]' cannot be traced"),
    (lambda x: x, ([X, (X, X)],), "must have consistent element type"),
    (lambda x: None, X, "didn't return any values"),
    (lambda x: (x, 3), X, "Only tensors, lists, tuples of tensors"),
    (lambda x: {"a": x}, X, "strict=False"),
]


@pytest.mark.parametrize(("function", "inputs", "message"), REFUSED, ids=[m for _, _, m in REFUSED])
def test_refusals(function: Callable[..., Any], inputs: Any, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        torch.jit.trace(function, inputs)
    assert HOOKS.trace is None


def test_foreign_tensors_that_require_grad() -> None:
    weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(CompileError, match="Consider making it a parameter or input"):
        torch.jit.trace(lambda x: x * weight, X)


def test_an_error_ends_the_trace() -> None:
    before = Tensor.__dict__["shape"]
    with pytest.raises(RuntimeError, match="is invalid for input of size"):
        torch.jit.trace(lambda x: x.view(7), X)
    assert HOOKS.trace is None
    assert HOOKS.tracer is None
    assert Tensor.__dict__["shape"] is before
    assert X.shape == (2, 3)


def test_other_threads_are_not_recorded() -> None:
    seen: list[Any] = []

    def work() -> None:
        seen.append((X + 1).shape)
        seen.append(int(X[0, 0]))

    def f(x: Any) -> Any:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x * 2

    traced = torch.jit.trace(f, X, check_trace=False)
    assert seen == [(2, 3), 1]
    assert [type(size) for size in seen[0]] == [int, int]
    assert [node.kind for node in traced.graph.nodes()] == ["prim::Constant", "aten::mul"]


def test_classes_stay_as_they_are_and_other_threads_get_plain_values() -> None:
    names = ("shape", "item", "T", "data", "__bool__", "__len__", "numpy")
    before = [vars(Tensor)[name] for name in names]
    seen: list[Any] = []

    def work() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            seen.extend(
                [bool(X.sum() > 0), len(X), X.tolist(), X.T.shape, X[0, 0].item(), X.numpy().shape, X.nelement()]
            )

    def f(x: Any) -> Any:
        assert [vars(Tensor)[name] for name in names] == before
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x * 2

    torch.jit.trace(f, X, check_trace=False)
    assert seen == [True, 2, X.tolist(), (3, 2), 1.0, (2, 3), 6]
    assert all(type(size) is int for size in seen[3])


def test_traces_casts_and_profiles_end_in_any_order() -> None:
    casts, profile = torch.autocast("cpu"), torch.autograd.profiler.profile()
    seen: list[Any] = []

    def f(x: Any) -> Any:
        casts.__enter__()
        profile.__enter__()
        cast = x @ x.t()
        casts.__exit__(None, None, None)
        plain = x @ x.t()
        seen.extend([cast.dtype, plain.dtype])
        return cast, plain

    traced = torch.jit.trace(f, X, check_trace=False)
    assert HOOKS.tracer is None
    assert HOOKS.trace is not None  # the profile goes on
    profile.__exit__(None, None, None)
    assert HOOKS.trace is None
    assert seen == [torch.bfloat16, torch.float32]
    assert [node.kind for node in traced.graph.nodes()].count("aten::matmul") == 2
    assert next(each.count for each in profile.key_averages() if each.key == "aten::matmul") == 2
