"""Matrix products in groups: operators, shapes around tiles, strides, what comes before and after, other sizes."""

from __future__ import annotations

import numpy as np
import pytest

from engine.fuser.groups.from_graph import NotFused
from engine.fuser.ir.kernel import Call, Return, all_statements
from tests.unit.fuser.kernels_of_groups import binding_of, check, check_program, tensor

_SHAPES = [(1, 32, 32), (7, 65, 40), (8, 64, 64), (20, 3, 130), (33, 100, 600), (70, 40, 1), (250, 130, 20)]


@pytest.mark.parametrize(("m", "n", "k"), _SHAPES)
def test_products_of_matrices(m: int, n: int, k: int) -> None:
    other = [tensor(m + 5, k), tensor(k, n + 1)]
    check("x, y: torch.mm(x, y)", tensor(m, k), tensor(k, n), others=[other], tolerance=1e-3)
    check("x, y: torch.mm(x, y.t())", tensor(m, k), tensor(n, k), tolerance=1e-3)
    check("x, y: torch.mm(x.t(), y)", tensor(k, m), tensor(k, n), tolerance=1e-3)


@pytest.mark.parametrize(("m", "n", "k"), _SHAPES)
def test_what_follows_is_done_with_each_element(m: int, n: int, k: int) -> None:
    text = "x, w, b, r: torch.relu(torch.nn.functional.linear(x, w, b)) + r"
    check(text, tensor(m, k), tensor(n, k), tensor(n), tensor(m, n), tolerance=1e-3)
    kernel = binding_of(text, tensor(m, k), tensor(n, k), tensor(n), tensor(m, n)).kernel
    assert len([each for each in kernel.body if isinstance(each, Call)]) == 1


@pytest.mark.parametrize("shape", [(1, 128, 24), (6, 3, 24), (2, 3, 5, 24), (100, 8, 24)])
def test_rows_of_several_dimensions(shape: tuple[int, ...]) -> None:
    text = "x, w, b: torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))"
    other = [tensor(*(each + 1 for each in shape[:-1]), 24), tensor(40, 24), tensor(40)]
    check(text, tensor(*shape), tensor(40, 24), tensor(40), others=[other], tolerance=1e-3)
    check("x, w: torch.matmul(x, w)", tensor(*shape), tensor(24, 40), tolerance=1e-3)
    check("x, w: torch.matmul(x.transpose(0, 1), w)", tensor(*shape), tensor(24, 40), tolerance=1e-3)


def test_few_rows_have_a_kernel_of_their_own() -> None:
    text, w = "x, w: torch.nn.functional.linear(x, w)", tensor(40, 24)
    for rows, others in ((3, 17), (17, 3)):
        with pytest.raises(AssertionError, match="no kernel takes"):
            check(text, tensor(rows, 24), w, others=[[tensor(others, 24), w]], tolerance=1e-3)


@pytest.mark.parametrize("before", [(3,), (2, 3), (1, 6)])
def test_products_one_for_each_place_before(before: tuple[int, ...]) -> None:
    a, b = tensor(*before, 9, 33), tensor(*before, 33, 70)
    check("x, y: torch.matmul(x, y)", a, b, tolerance=1e-3)
    check("x, y: torch.matmul(x, y.transpose(-2, -1)) * 0.5", a, tensor(*before, 70, 33), tolerance=1e-3)
    check("x, y: torch.matmul(x, y) + 1", a, tensor(*before[:-1], 1, 33, 70), tolerance=1e-3)
    check("x, y: torch.matmul(x, y[0]) + 1", a, b, tolerance=1e-3)


def test_operators_with_sums() -> None:
    x, y, b = tensor(9, 33), tensor(33, 70), tensor(70)
    check("b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2)", b, x, y, tolerance=1e-3)
    check("b, x, y: torch.addmm(b, x, y)", tensor(9, 1), x, y, tolerance=1e-3)
    check(
        "b, x, y: torch.baddbmm(b, x, y, alpha=3)",
        tensor(2, 1, 70),
        tensor(2, 9, 33),
        tensor(2, 33, 70),
        tolerance=1e-3,
    )


ATTENTION = """
def f(x, w, b, out):
    h = torch.nn.functional.linear(x, w, b).view(x.size(0), x.size(1), 3, 4, 16).permute(2, 0, 3, 1, 4)
    q, k, v = h.select(0, 0), h.select(0, 1), h.select(0, 2)
    scores = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * 0.25, -1)
    y = torch.matmul(scores, v).transpose(1, 2).reshape(x.size(0), x.size(1), 64)
    return x + torch.nn.functional.linear(y, out)
"""


def test_a_layer_with_attention() -> None:
    args = [tensor(2, 20, 64), tensor(192, 64), tensor(192), tensor(64, 64)]
    args = [each * 0.2 for each in args]
    check_program(ATTENTION, *args, others=[[tensor(3, 7, 64) * 0.2, *args[1:]]], tolerance=1e-3)


def test_layers_that_do_the_same_share_a_helper() -> None:
    text = "x, a, b, c: torch.relu(torch.mm(torch.relu(torch.mm(torch.relu(torch.mm(x, a)), b)), c))"
    kernel = binding_of(text, *[tensor(40, 40)] * 4).kernel
    called = [each.function for each in kernel.body if isinstance(each, Call)]
    assert len(called) == 3 and len({*called}) < 3
    assert any(isinstance(each, Return) for each in all_statements(kernel.body))


def test_buffers_are_used_again() -> None:
    text = "x, a: torch.mm(torch.mm(torch.mm(torch.mm(torch.mm(x, a), a), a), a), a)"
    kernel = binding_of(text, tensor(40, 40), tensor(40, 40)).kernel
    assert len([each for each in kernel.body if type(each).__name__ == "Allocate"]) == 2


def test_operands_that_are_computed_are_kept() -> None:
    check("x, y: torch.mm(x + 1, torch.cat([y, y * 2], 1))", tensor(9, 33), tensor(33, 40), tolerance=1e-3)
    check("x, y: torch.mm(torch.softmax(x, -1), y)", tensor(9, 33), tensor(33, 40), tolerance=1e-3)


def test_nothing_to_multiply() -> None:
    check("x, y: torch.mm(x, y) + 1", tensor(0, 3), tensor(3, 4))
    check("x, y: torch.mm(x, y) + 1", tensor(5, 3), tensor(3, 0))


def test_other_dtypes_are_left_out() -> None:
    for x, y in ((tensor(3, 3, dtype=np.int64),) * 2, (tensor(3, 3, dtype=np.float16),) * 2):
        with pytest.raises(NotFused, match="float32"):
            binding_of("x, y: torch.mm(x, y) + 1", x, y)


@pytest.mark.parametrize(("m", "n", "k"), _SHAPES)
def test_products_in_double_precision(m: int, n: int, k: int) -> None:
    x, w, b, r = (tensor(*shape, dtype=np.float64) for shape in ((m, k), (n, k), (n,), (m, n)))
    check("x, w, b, r: torch.relu(torch.nn.functional.linear(x, w, b)) + r", x, w, b, r, tolerance=1e-11)
    check("x, y: torch.mm(x.t(), y)", tensor(k, m, dtype=np.float64), w.t(), tolerance=1e-11)
    check("r, x, w: torch.addmm(r, x, w, beta=0.5, alpha=2)", r, x, tensor(k, n, dtype=np.float64), tolerance=1e-11)
    check("x, y: torch.matmul(x, y)", tensor(3, m, k, dtype=np.float64), tensor(3, k, n, dtype=np.float64),
          tolerance=1e-11)  # fmt: skip


def test_gradients_of_linear() -> None:
    given = tensor(20, 30), tensor(20, 40), tensor(30, 40)
    for name in ("_linear_to_input(g, w)", "_linear_to_weight(g, x, w)"):
        check(f"g, x, w: torch.{name} + 1", *given, tolerance=1e-3)
    check(
        "g, x, w: torch._linear_to_weight(g, x, w)", tensor(3, 5, 30), tensor(3, 5, 40), tensor(30, 40), tolerance=1e-3
    )
