"""Values and refusals at the edges of operators are PyTorch's: recorded from 2.13."""

from __future__ import annotations

import warnings

import pytest

import engine.torch as torch
from engine.fuser.backend import tiering
from engine.lang.errors import CompileError, OperatorError

NAN = float("nan")
INF = float("inf")


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gelu_of_minus_infinity_is_none(approximate: str, dtype: torch.dtype) -> None:
    x = torch.tensor([-INF, INF] * 4, dtype=dtype)
    for module in (_Gelu(approximate), torch.jit.script(_Gelu(approximate))):
        assert str(module(x).tolist()[:2]) == "[nan, inf]"


class _Gelu(torch.nn.Module):
    def __init__(self, approximate: str) -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x, approximate=self.approximate) * 1


@pytest.mark.parametrize("order", [0, 1])
def test_bessel_functions_of_the_first_kind_are_none_at_infinity(order: int) -> None:
    function = torch.special.bessel_j0 if order == 0 else torch.special.bessel_j1
    found = function(torch.tensor([INF, -INF, 0.0, -0.0], dtype=torch.float64)).tolist()
    assert str(found) == ("[nan, nan, 1.0, 1.0]" if order == 0 else "[nan, nan, 0.0, -0.0]")


@pytest.mark.parametrize("p", [2.0, -0.5, NAN])
def test_tensors_of_probabilities_are_checked(p: float) -> None:
    with pytest.raises(OperatorError, match=r"Expected p_in >= 0 && p_in <= 1 to be true") as found:
        torch.bernoulli(torch.tensor([0.5, p]))
    assert f"among these is {p:g}" in found.value.hints[0]


def test_a_probability_is_checked() -> None:
    with pytest.raises(OperatorError, match=r"bernoulli_ expects p to be in \[0, 1\], but got p=2"):
        torch.bernoulli(torch.ones(2), 2.0)
    with pytest.raises(
        OperatorError, match=r"The expanded size of the tensor \(2\) must match the existing size \(3\)"
    ):
        torch.ones(2).bernoulli_(torch.ones(3))


SINGULAR = [[0.0, 0, 0], [1, 0, 0], [0, 0, 1]]


def test_inversion_tells_the_first_pivot_that_is_zero() -> None:
    one = torch.tensor(SINGULAR)
    with pytest.raises(OperatorError, match=r"linalg.inv: The diagonal element 2 is zero"):
        torch.linalg.inv(one)
    with pytest.raises(OperatorError, match=r"linalg.inv: \(Batch element 1\): The diagonal element 1 is zero"):
        torch.linalg.inv(torch.stack([torch.eye(2), torch.zeros(2, 2)]))
    inverse, info = torch.linalg.inv_ex(torch.stack([torch.eye(3), one]))
    assert info.tolist() == [0, 2]
    assert inverse[0].equal(torch.eye(3))
    assert str(inverse[1].tolist()) == "[[nan, nan, nan], [inf, nan, nan], [0.0, 0.0, 1.0]]"


def test_regular_matrices_of_a_batch_with_a_singular_one_are_solved() -> None:
    torch.manual_seed(0)
    a = torch.randn(4, 5, 5, dtype=torch.complex128)
    alone = torch.linalg.solve(a, torch.eye(5, dtype=a.dtype))
    a[2, 3] = 0
    together, info = torch.linalg.solve_ex(a, torch.eye(5, dtype=a.dtype))
    assert info.tolist()[2] > 0
    for i in (0, 1, 3):
        torch.testing.assert_close(together[i], alone[i])


ORDERS = [
    # sizes, strides, what stays of 0, 1, 2, … in the memory
    ((2, 3), (1, 1), [0, 1, 2, 5]),
    ((3, 2), (1, 1), [0, 2, 4, 5]),
    ((3, 3), (1, 1), [0, 3, 6, 7, 8]),
    ((2, 3, 2), (1, 1, 1), [0, 2, 4, 10, 11]),
    ((2, 2, 3), (1, 1, 1), [0, 1, 2, 8, 11]),
    ((2, 2), (1, 2), [0, 2, 1, 3]),
]


@pytest.mark.parametrize(("sizes", "strides", "stays"), ORDERS)
def test_of_writes_to_one_place_the_last_stays(sizes: list[int], strides: list[int], stays: list[int]) -> None:
    source = torch.arange(float(torch.Size(sizes).numel())).view(sizes)
    assert torch.as_strided_scatter(torch.zeros(len(stays)), source, sizes, strides).tolist() == stays
    copied = torch.zeros(len(stays))
    copied.as_strided(sizes, strides).copy_(source)
    assert copied.tolist() == stays


def test_the_order_of_writes_follows_the_source_where_the_target_says_nothing() -> None:
    source = torch.arange(9.0).view(3, 3).t()
    assert torch.as_strided_scatter(torch.zeros(5), source, (3, 3), (1, 1)).tolist() == [0, 3, 6, 7, 8]


def test_repeated_elements_are_not_scattered_to() -> None:
    with pytest.raises(OperatorError, match="more than one element of the written-to tensor"):
        torch.as_strided_scatter(torch.zeros(4), torch.arange(3.0), (3,), (0,))


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64, torch.float16])
def test_out_of_index_select_has_the_dtype_of_self(dtype: torch.dtype) -> None:
    out = torch.empty(0, dtype=dtype)
    with pytest.raises(OperatorError, match="self and result must have the same scalar type"):
        torch.index_select(torch.eye(2), 0, torch.tensor([0, 1]), out=out)


def test_out_of_cat_holds_what_is_joined() -> None:
    x = torch.ones(2, 2)
    with pytest.raises(TypeError, match="input types can't be cast to the desired output type Long"):
        torch.cat([x, x], out=torch.empty(0, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.cat([x, x], out=torch.empty(4, 1).expand(4, 2))


def test_index_fill_looks_at_the_index_first() -> None:
    with pytest.raises(IndexError, match=r"index_fill_\(\): Expected dtype int64 for index"):
        torch.index_fill(torch.ones(2), 0, torch.tensor([0.0]), 3j)


def test_a_correction_that_is_no_number_divides_by_zero() -> None:
    assert torch.var(torch.tensor([1.0, 2, 4]), correction=NAN).item() == INF
    assert str(torch.var(torch.tensor([1 + 0j, 2, 4]), correction=5).item()) == "nan"
    assert torch.var(torch.tensor([1 + 1j, 3 - 1j])).item() == 4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_quotients_of_half_types_are_rounded_before_they_are_cut_unless_by_one_number(dtype: torch.dtype) -> None:
    x = torch.full((3,), 0.9, dtype=torch.float16).to(dtype)
    by_number = float(x[0]) * (1 + 1e-4)
    assert torch.div(x, by_number, rounding_mode="trunc").tolist() == [0.0] * 3
    wide = torch.tensor([2999.0, 1.0, 1.0], dtype=dtype)
    narrow = torch.tensor([3001.0, 1.0, 1.0], dtype=dtype)
    rounded = (wide.float() / narrow.float()).to(dtype).float().trunc().tolist()
    assert torch.div(wide, narrow, rounding_mode="trunc").tolist() == rounded


# ------------------------------------------------------------------ programs


OPERATORS = {"+": "add", "-": "sub", "*": "mul", "|": "__or__", "&": "__and__", "^": "__xor__", "<<": "__lshift__"}


@pytest.mark.parametrize("operator", OPERATORS)
def test_tensors_of_dictionaries_are_replaced_and_those_of_lists_written_to(operator: str) -> None:
    unit = torch.jit.CompilationUnit(
        f"def of_dict(d: Dict[str, Tensor], y: int):\n    d['a'] {operator}= y\n    return d\n"
        f"def of_list(d: List[Tensor], y: int):\n    d[0] {operator}= y\n    return d\n"
    )
    assert OPERATORS[operator] in str(unit.of_dict.graph)
    x = torch.tensor([5, 6])
    changed = unit.of_dict({"a": x}, 3)["a"]
    assert x.tolist() == [5, 6]
    assert changed.tolist() == eval(f"[5 {operator} 3, 6 {operator} 3]")
    assert unit.of_list([x], 3)[0].tolist() == changed.tolist()
    assert (x.tolist() == changed.tolist()) is (operator in "+-*<<")


def test_tolist_wants_the_dtype_of_its_annotation() -> None:
    unit = torch.jit.CompilationUnit(
        "def whole(x: Tensor):\n    r: List[int] = x.tolist()\n    return r\n"
        "def real(x: Tensor):\n    r: List[float] = x.tolist()\n    return r\n"
    )
    assert unit.real(torch.ones(1, dtype=torch.float16)) == [1.0]
    for function, dtype, words in (
        (unit.whole, torch.int32, "Long vs Int"),
        (unit.whole, torch.bool, "Long vs Bool"),
        (unit.real, torch.int64, "Float vs Long"),
    ):
        with pytest.raises(RuntimeError, match=rf"must match for tolist\(\): {words}"):
            function(torch.ones(1, dtype=dtype))


def test_tolist_of_other_types_is_refused() -> None:
    with pytest.raises(CompileError, match="str is not one of the supported element types for tolist: int, float, "):
        torch.jit.CompilationUnit("def f(x: Tensor):\n    r: List[str] = x.tolist()\n    return r\n")


# ------------------------------------------------------------------ traces


def test_a_traced_quotient_of_whole_numbers_by_a_float_is_of_the_default_dtype() -> None:
    x = torch.tensor([1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = torch.jit.trace(lambda x: x // 0.1, (x,))
    assert traced(x).dtype == torch.float32
    assert traced(x).tolist() == [9.0, 19.0]
    assert "Double(requires_grad=0, device=cpu) = prim::Constant[value={0.1}]" in str(traced.graph)


@pytest.mark.parametrize(
    "expression",
    [
        "x.clone().div_(True)", "torch.true_divide(x, True)", "torch.divide(x, True)",
        "torch.div(x, True, rounding_mode='trunc')", "x.clone().div_(True, rounding_mode='floor')",
    ],
)  # fmt: skip
def test_traced_quotients_by_truth_values_run(expression: str) -> None:
    x = torch.tensor([1.0, 2.0])
    traced = torch.jit.trace(eval(f"lambda x: {expression}", globals()), (x,))
    assert traced(x).tolist() == [1.0, 2.0]
    assert "Bool(requires_grad=0, device=cpu) = prim::Constant[value={1}]" in str(traced.graph)


SCORES = [[0.5, -1.25, 2.0, 0.375, -0.0625], [3.0, -2.5, 0.75, 1.125, -4.0]]
LOGARITHMS = {
    (torch.float16, -1): [
        [-1.9609375, -3.7109375, -0.461181640625, -2.0859375, -2.5234375],
        [-0.2340087890625, -5.734375, -2.484375, -2.109375, -7.234375],
    ],
    (torch.float16, 0): [
        [-2.578125, -0.251953125, -0.251953125, -1.13671875, -0.0193023681640625],
        [-0.07891845703125, -1.501953125, -1.501953125, -0.386962890625, -3.95703125],
    ],
    (torch.bfloat16, -1): [
        [-1.9609375, -3.71875, -0.4609375, -2.09375, -2.53125],
        [-0.2353515625, -5.75, -2.484375, -2.109375, -7.25],
    ],
    (torch.bfloat16, 0): [
        [-2.578125, -0.251953125, -0.251953125, -1.140625, -0.019287109375],
        [-0.0791015625, -1.5, -1.5, -0.38671875, -3.953125],
    ],
}


@pytest.mark.parametrize(("dtype", "dim"), LOGARITHMS)
def test_sums_of_rows_are_rounded_before_their_logarithm_is_taken(dtype: torch.dtype, dim: int, mode: str) -> None:
    """By `log_softmax` and by what is made of it; sums along other dimensions are not."""
    x, wanted = torch.tensor(SCORES, dtype=dtype), LOGARITHMS[dtype, dim]
    assert torch.log_softmax(x, dim).tolist() == wanted
    program = torch.jit.script(_Logarithms(dim))
    for _ in range(3):
        assert program(x).tolist() == wanted
        tiering.wait()
    if dim == -1:
        places = torch.tensor([2, 0])
        losses = torch.nn.functional.cross_entropy(x, places, reduction="none")
        assert losses.tolist() == [-wanted[0][2], -wanted[1][0]]


class _Logarithms(torch.nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(x * 1.0, self.dim)


def test_a_sum_of_a_row_beyond_float16_is_infinite() -> None:
    rows = torch.zeros(2, 70000, dtype=torch.float16)
    assert torch.log_softmax(rows, 1)[0, 0].item() == -INF
    assert torch.log_softmax(rows.float(), 1)[0, 0].item() == pytest.approx(-11.156, abs=1e-3)


@pytest.mark.parametrize("is_written", [False, True])
def test_doubles_become_halves_by_way_of_single_precision(is_written: bool) -> None:
    x = torch.tensor([1 + 2**-11 + 2**-40, 65519.9999999, 2**-25 * (1 + 2**-30)], dtype=torch.float64)
    found = torch.zeros(3, dtype=torch.half).copy_(x) if is_written else x.half()
    assert found.tolist() == [1.0, INF, 0.0]


@pytest.mark.parametrize("count", [1, 3, 8, 20])
def test_the_mean_of_a_row_with_infinities_is_none_in_layer_norms(count: int) -> None:
    x = torch.ones(2, count)
    x[0, 0], x[1, count // 2] = INF, -INF
    _, mean, rstd = torch.native_layer_norm(x, [count], None, None, 0.1)
    assert str([mean.flatten().tolist(), rstd.flatten().tolist()]) == "[[nan, nan], [nan, nan]]"
