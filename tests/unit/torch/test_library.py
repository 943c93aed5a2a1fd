"""Operators that are given from Python: called, in programs, traces and archives, with gradients, and withdrawn."""

from __future__ import annotations

import gc
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pytest

import engine
import engine.torch as torch
from engine.torch import Tensor, library

pytestmark = pytest.mark.usefixtures("mode")

X: Final = torch.arange(3.0)


def write(x: Tensor, k: int) -> None:
    x.add_(k)


KERNELS: Final[dict[str, tuple[Callable[..., Any], str]]] = {
    "scaled(Tensor x, float by=2.0, *, int n=1) -> Tensor": (lambda x, by=2.0, *, n=1: x * by * n, "CPU"),
    "implicit(Tensor x) -> Tensor": (lambda x: x.sin() * 2, ""),
    "several(Tensor x, Tensor[] ys) -> (Tensor, Tensor[])": (lambda x, ys: (x + sum(ys), [y * 2 for y in ys]), "CPU"),
    "write_(Tensor(a!) x, int k) -> ()": (write, "CPU"),
    "tripled_(Tensor(a!) x) -> Tensor(a!)": (lambda x: x.mul_(3), "CPU"),
    "made(int n, *, ScalarType? dtype=None) -> Tensor": (
        lambda n, *, dtype=None: torch.ones(n, dtype=dtype), "CompositeExplicitAutograd"),
    "counted(Tensor x) -> int": (lambda x: int(x.sum()), "CPU"),
    "perhaps(Tensor? x, str s, bool b=True) -> Tensor?": (lambda x, s: None if x is None else x * len(s), "CPU"),
    "over.a(Tensor x) -> Tensor": (lambda x: x * 1, "CPU"),
    "over.b(Tensor x, int n) -> Tensor": (lambda x, n: x * n, "CPU"),
    "kept(Tensor a) -> Tensor": (lambda a: a[a > 1], "CPU"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def mine() -> Iterator[library.Library]:
    with library._scoped_library("mine", "DEF") as made:
        for schema, (kernel, key) in KERNELS.items():
            made.impl(made.define(schema), kernel, key)
        yield made


class Uses(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Any:
        y = torch.ops.mine.scaled(x * self.weight, 3.0)
        z = torch.ops.mine.implicit(y).exp()
        a, bs = torch.ops.mine.several(z, [z, y])
        c = x.clone()
        torch.ops.mine.write_(c, 2)
        d = torch.ops.mine.tripled_(c)
        e = torch.ops.mine.made(3, dtype=torch.float64)
        p = torch.ops.mine.perhaps(c, "abc")
        if p is None:
            p = c
        return z, a, bs[0], c, d, e, torch.ops.mine.counted(c), p, torch.ops.mine.over(x, 2), torch.ops.mine.kept(x)


def again(program: Any) -> Any:
    file = io.BytesIO()
    torch.jit.save(program, file)
    file.seek(0)
    return torch.jit.load(file)


def same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return all(torch.allclose(p, q) if isinstance(p, Tensor) else p == q for p, q in zip(a, b, strict=True))


def test_calls_take_defaults_keywords_and_overloads() -> None:
    ops = torch.ops.mine
    assert ops.scaled(X).tolist() == [0, 2, 4] and ops.scaled(X, by=3, n=2).tolist() == [0, 6, 12]
    assert ops.over(X, 3).tolist() == [0, 3, 6] and ops.over.b(X, 2).tolist() == [0, 2, 4]
    assert ops.perhaps(None, "a") is None and ops.made(2, dtype=torch.int32).dtype is torch.int32
    assert engine.library is library


def test_programs_archives_and_frozen_ones_call_them(mode: str) -> None:
    module = Uses().eval()
    want = module(X)
    scripted = torch.jit.script(module)
    for program in (scripted, again(scripted), torch.jit.freeze(scripted)):
        for _ in range(3):
            assert same(program(X), want)


TRACED: Final[dict[str, Callable[[Tensor], Any]]] = {
    "result": lambda x: torch.ops.mine.scaled(x, 4.0) + torch.ops.mine.kept(x).sum(),
    "list": lambda x: torch.ops.mine.several(x, [x, x])[1][0],
    "write": lambda x: (lambda c: (torch.ops.mine.write_(c, 2), c)[1])(x.clone()),
    "in place": lambda x: torch.ops.mine.tripled_(x.clone()),
}


@pytest.mark.parametrize("name", TRACED)
def test_traces_record_them(name: str, mode: str) -> None:
    traced = torch.jit.trace(TRACED[name], X)
    assert "mine::" in str(traced.graph)
    for program in (traced, again(traced)):
        assert torch.allclose(program(X + 1), TRACED[name](X + 1))


def squares() -> Any:
    @library.custom_op("mine::squared", mutates_args=())
    def squared(a: Tensor, k: float = 1.0) -> Tensor:
        return a * a * k

    return squared


def with_gradient() -> Any:
    squared = squares()

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    squared.register_autograd(lambda ctx, g: (g * 2 * ctx.saved_tensors[0] * ctx.k, None), setup_context=keep)
    return squared


def uses_squared(y: Tensor) -> Tensor:
    z = y.exp()
    return torch.ops.mine.squared(z, 2.0).sin() * z


def gradient_of(f: Callable[[Tensor], Tensor]) -> Tensor:
    x = X.clone().requires_grad_()
    f(x).sum().backward()
    assert x.grad is not None
    return x.grad


def test_a_gradient_that_is_told_goes_through_programs(mode: str) -> None:
    squared = with_gradient()
    assert gradient_of(lambda x: squared(x, 2.0)).tolist() == [0, 4, 8]
    want = gradient_of(lambda y: (2 * y.exp() ** 2).sin() * y.exp())
    scripted = torch.jit.script(uses_squared)
    for f in (uses_squared, scripted, again(scripted), torch.jit.trace(uses_squared, X, check_trace=False)):
        for _ in range(3):
            assert torch.allclose(gradient_of(f), want, rtol=1e-4)
    assert torch.autograd.gradcheck(squared, (torch.rand(3, dtype=torch.float64, requires_grad=True),))


def test_without_a_gradient_the_backward_pass_raises() -> None:
    squared = squares()
    assert squared(X.clone().requires_grad_()).requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        gradient_of(squared)


def test_compositions_are_differentiated_as_they_are() -> None:
    assert torch.allclose(gradient_of(torch.ops.mine.implicit), X.cos() * 2)


def test_lists_of_tensors_have_lists_of_gradients() -> None:
    @library.custom_op("mine::all", mutates_args=())
    def times(xs: list[Tensor], n: int) -> list[Tensor]:
        return [x * n for x in xs]

    times.register_autograd(
        lambda ctx, gradients: ([g * ctx.n for g in gradients], None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "n", inputs[1]),
    )
    a, b = X.clone().requires_grad_(), X.clone().requires_grad_()
    p, q = times([a, b], 3)
    (p.sum() + 2 * q.sum()).backward()
    assert a.grad is not None and b.grad is not None and (a.grad[0], b.grad[0]) == (3, 6)


def test_a_kernel_for_autograd_decides_itself(mine: library.Library, mode: str) -> None:
    class Sevenfold(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return torch.ops.mine.own(x)  # type: ignore[no-any-return]

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * 7

    mine.define("own(Tensor x) -> Tensor")
    mine.impl("own", lambda x: x * 2, "CPU")
    mine.impl("own", Sevenfold.apply, "Autograd")
    assert gradient_of(torch.ops.mine.own).tolist() == [7, 7, 7]
    assert gradient_of(torch.jit.script(calls_own)).tolist() == [7, 7, 7]


def calls_own(x: Tensor) -> Tensor:
    return torch.ops.mine.own(x)  # type: ignore[no-any-return]


def test_effects_are_kept_though_nobody_uses_results(mine: library.Library) -> None:
    seen: list[int] = []
    mine.define("seen(Tensor x) -> Tensor")
    mine.impl("seen", lambda x: (seen.append(1), x + 1)[1], "CPU")
    scripted = torch.jit.script(only_calls_seen)
    scripted(X)
    assert len(seen) == 2


def only_calls_seen(x: Tensor) -> Tensor:
    torch.ops.mine.seen(x)
    torch.ops.mine.seen(x)
    return x


def test_an_archive_runs_once_its_operator_is_there() -> None:
    with library._scoped_library("later", "FRAGMENT") as first:
        first.impl(first.define("f(Tensor x) -> Tensor"), lambda x: x + 1, "CPU")
        file = io.BytesIO()
        torch.jit.save(torch.jit.script(calls_later), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="later::f"):
        torch.jit.load(file)(X)
    with pytest.raises(AttributeError):
        torch.ops.later.f(X)
    with library._scoped_library("later", "DEF") as second:
        second.impl(second.define("f(Tensor x) -> Tensor"), lambda x: x + 2, "CPU")
        file.seek(0)
        assert torch.jit.load(file)(X).tolist() == [2, 3, 4]


def calls_later(x: Tensor) -> Tensor:
    return torch.ops.later.f(x)  # type: ignore[no-any-return]


def test_operators_go_with_their_library() -> None:
    fragment = library.Library("mine", "FRAGMENT")
    fragment.impl(fragment.define("gone(Tensor x) -> Tensor"), lambda x: x, "CPU")
    assert torch.ops.mine.gone(X) is not None
    del fragment
    gc.collect()
    with pytest.raises(AttributeError):
        torch.ops.mine.gone(X)


def test_a_program_runs_what_is_defined_in_the_place_of_a_withdrawn_operator() -> None:
    with library._scoped_library("later", "FRAGMENT") as first:
        first.impl(first.define("f(Tensor x) -> Tensor"), lambda x: x + 1, "CPU")
        program = torch.jit.script(calls_later)
        assert program(X).tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="later::f is gone"):
        program(X)
    with library._scoped_library("later", "FRAGMENT") as second:
        second.impl(second.define("f(Tensor x) -> Tensor"), lambda x: x + 2, "CPU")
        assert program(X).tolist() == [2, 3, 4]
    with library._scoped_library("later", "FRAGMENT") as third:
        third.impl(third.define("f(Tensor x, int n=1) -> Tensor"), lambda x, n=1: x + n, "CPU")
        with pytest.raises(RuntimeError, match=r"compiled as later::f\(Tensor x\) -> Tensor, and is .*int n=1"):
            program(X)


def test_functions_define_them_as_well(mode: str) -> None:
    name = f"others::f_{mode}"
    library.define(name, "(Tensor x) -> Tensor")
    library.impl(name, "default", lambda x: x + 1)
    library.register_kernel(name, "cuda", lambda x: x)
    assert getattr(torch.ops.others, f"f_{mode}")(X).tolist() == [1, 2, 3]


def annotated(
    a: Tensor, b: int = 3, c: str = "q", d: float | None = None, e: torch.dtype = torch.float32,
    *, h: list[int] | None = None,
) -> tuple[Tensor, int]:  # fmt: skip
    raise NotImplementedError


SCHEMA: Final = '(Tensor(a0!) a, SymInt b=3, str c="q", float? d=None, ScalarType e=float32, *, SymInt[]? h=None) -> '


def test_schemas_are_read_off_annotations() -> None:
    assert library.infer_schema(annotated, mutates_args=["a"]) == f"{SCHEMA}(Tensor, SymInt)"
    with pytest.raises(ValueError, match="must have a type annotation"):
        library.infer_schema(lambda x: x, mutates_args=())


def test_an_argument_that_is_written_to_is_marked() -> None:
    @library.custom_op("mine::copied", mutates_args={"out"})
    def copied(a: Tensor, out: Tensor) -> None:
        out.copy_(a)

    out = torch.zeros(3)
    before = out._version
    assert copied(X, out) is None and torch.equal(out, X) and out._version > before
    assert library.opcheck(copied, (X, out), test_utils="test_schema") == {"test_schema": "SUCCESS"}
    with pytest.raises(RuntimeError, match="non-functional"):
        copied.register_autograd(lambda ctx, g: g)


def test_opcheck_compares_what_is_told() -> None:
    squared = with_gradient()
    squared.register_fake(lambda a, k=1.0: torch.empty_like(a))
    assert set(library.opcheck(squared, (X.clone().requires_grad_(),)).values()) == {"SUCCESS"}
    squared.register_fake(lambda a, k=1.0: torch.empty(7))
    with pytest.raises(RuntimeError, match="test_faketensor failed"):
        library.opcheck(squared, (X,))

    @library.custom_op("mine::lies", mutates_args=())
    def lies(a: Tensor) -> Tensor:
        return a.add_(1).clone()

    with pytest.raises(RuntimeError, match="argument 'a' is written to"):
        library.opcheck(lies, (X.clone(),), test_utils="test_schema")


def test_a_kernel_can_be_switched_off() -> None:
    squared = squares()
    squared.register_kernel("cpu", lambda a, k=1.0: a * 0)
    assert squared(X).tolist() == [0, 0, 0]
    with squared.set_kernel_enabled("cpu", enabled=False):
        assert squared(X).tolist() == [0, 1, 4]


def test_blocks_of_autocast_cast_where_that_is_told() -> None:
    squared = squares()
    squared.register_autocast("cpu", torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert squared(X).dtype is torch.bfloat16
    assert squared(X).dtype is torch.float32


def refusals(mine: library.Library) -> dict[str, Callable[[], Any]]:
    mine.define("empty(Tensor x) -> Tensor")
    mine.impl(mine.define("wrong(Tensor x) -> Tensor"), lambda x: 3, "CPU")
    return {
        "has no kernel for device 'cpu'": lambda: torch.ops.mine.empty(X),
        "returned a int, which does not fit": lambda: torch.ops.mine.wrong(X),
        "Only a single Library of kind DEF": lambda: library.Library("mine", "DEF"),
        "registered twice": lambda: mine.define("scaled(Tensor x) -> Tensor"),
        "already a kernel registered": lambda: mine.impl("scaled", lambda x: x, "CPU"),
        "dispatch key Foo": lambda: mine.impl("scaled", lambda x: x, "Foo"),
        "is an operator of the engine": lambda: library.Library("aten", "IMPL").impl("add.Tensor", lambda x: x, "CPU"),
        "unknown type specifier": lambda: mine.define("bad(Tensr x) -> Tensor"),
        "a name 'namespace::name'": lambda: library.custom_op("f", mutates_args=()),
        "has no operator other::f": lambda: mine.impl("other::f", lambda x: x),
        "there is no operator mine::scald": lambda: library.register_autograd("mine::scald", lambda ctx, g: g),
    }


def test_mistakes_are_told_in_words(mine: library.Library) -> None:
    for words, mistake in refusals(mine).items():
        with pytest.raises((RuntimeError, ValueError, NotImplementedError)) as caught:
            mistake()
        assert words in str(caught.value)
