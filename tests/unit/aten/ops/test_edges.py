"""What operators do at the edges: no elements, dimensions that are not there, half types, limits."""

import pytest

import engine.torch as torch
from engine.lang.errors import OperatorError

aten = torch.ops.aten
GRID = [-0.33203125, 0.296875, -0.1201171875, 0.050048828125]
HISTOGRAM = [0, 1, 2, 0, 2, 2, 0]


def ramp(*shape):
    return (torch.arange(torch.ones(shape).numel()) * 7 % 11 / 5 - 1).reshape(shape)


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("fft_fftn", (torch.ones(()), None, [0]), "Dimension specified as 0 but tensor has no dimensions"),
        ("fft_fft2", (torch.ones(3, 4), None, [0, 0]), "FFT dims must be unique"),
        ("fft_fftn", (torch.ones(()), [3]), "Got shape with 1 values but input tensor only has 0 dimensions."),
        ("fft_rfftn", (torch.ones(()),), "rfftn must transform at least one axis"),
        ("roll", (torch.ones(()), [0], [0]), "Dimension specified as 0 but tensor has no dimensions"),
        ("trace", (torch.ones(2, 3, 4),), "trace: expected a matrix, but got tensor with dim 3"),
        ("dot", (torch.ones(2), torch.ones(2).half()), "to have same dtype, but found Float and Half"),
        ("mv", (torch.ones(2, 2), torch.ones(2).half()), "but got Half, Float, and Half"),
        ("bmm", (torch.ones(1, 2, 2), torch.ones(1, 2, 2).half()), "expected scalar type Float but found Half"),
        ("addmm", (torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2).half()), "but got Float and Half"),
        ("mm", (torch.ones(2, 2).bool(), torch.ones(2, 2).bool()), "\"addmm_impl_cpu_\" not implemented for 'Bool'"),
        ("matmul", (torch.ones(2).bool(), torch.ones(2).bool()), "\"dot\" not implemented for 'Bool'"),
        ("linalg_vector_norm", (torch.ones(0), float("inf")), "cannot compute the inf norm on an empty tensor because"),
        ("linalg_vector_norm", (torch.ones(0, 2), float("inf"), [0]), "the inf norm on the dimension 0because"),
        ("multi_margin_loss", (torch.ones(5, 0), torch.zeros(5)), "Expected non-empty vector or matrix"),
        ("multi_margin_loss", (torch.ones(2, 3), torch.zeros(2)), "expected scalar type Long but found Float"),
        ("multilabel_margin_loss", (torch.ones(2, 3), torch.zeros(2)), "inconsistent target size: [2] for input of"),
        ("triplet_margin_loss", (torch.ones(3), torch.ones(3, 4), torch.ones(3, 4)), "anchor 1D, positive 2D, and"),
    ],
)
def test_refusals(name, args, words):
    with pytest.raises(OperatorError) as refused:
        getattr(aten, name)(*args)
    assert words in str(refused.value)


def test_weights_of_a_covariance():
    with pytest.raises(OperatorError, match="fweights to have one or fewer dimensions"):
        torch.cov(torch.ones(5), fweights=torch.ones(5, 5))


def test_a_transform_over_no_dimension_is_complex():
    assert aten.fft_fftn(torch.ones(())).dtype == torch.complex64


def test_the_greatest_singular_value_of_nothing_is_zero():
    assert torch.linalg.norm(torch.ones(0, 3), 2).item() == 0


def test_indices_along_a_dimension_count_from_the_end():
    assert torch.take_along_dim(torch.arange(5), torch.tensor([-1, -2, -5, 4]), 0).tolist() == [4, 3, 0, 4]


def test_normalizing_nothing():
    empty = torch.ones(0)
    assert aten.batch_norm(empty, None, None, empty, empty, False, 0.1, 1e-5, False).shape == (0,)


def test_limits_of_the_pseudo_inverse_are_not_differentiated():
    with pytest.raises(OperatorError, match="not differentiable with respect to argument 'rtol'"):
        torch.linalg.pinv(torch.ones(2, 2), rtol=torch.tensor(0.1, requires_grad=True))
    with pytest.raises(OperatorError, match="rcond tensor of complex type is not supported"):
        torch.linalg.pinv(torch.ones(2, 2), torch.tensor(0.1 + 0j))


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((2, 0), (3, 0)), [(2, 0), (3, 0)]), (((3, 2), (0, 2)), [(3, 2), (0, 2)]), (((2, 3), (3,)), [(2, 3), (3,)]),
        (((3,), (2, 3)), [(3,), (2, 3)]), (((2, 0), (0,)), [(2, 0), (0,)]),
    ],
)  # fmt: skip
def test_gradients_of_linear_maps_of_any_width(shapes, expected):
    x, w = (torch.ones(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    found = torch.autograd.grad(torch.nn.functional.linear(x, w).sum(), (x, w))
    assert [tuple(each.shape) for each in found] == expected


@pytest.mark.parametrize("shapes", [((2, 3), (4, 3)), ((5, 2, 3), (4, 3)), ((3,), (4, 3)), ((2, 3), (3,))])
def test_second_gradients_of_linear_maps(shapes):
    x, w = (ramp(*shape).double().requires_grad_() for shape in shapes)
    assert torch.autograd.gradgradcheck(torch.nn.functional.linear, (x, w))


def test_half_types_are_rounded_after_every_step():
    grid = ramp(1, 2, 2, 2).bfloat16() * 0.9
    sampled = aten.grid_sampler_2d(ramp(1, 1, 3, 4).bfloat16(), grid, 0, 1, False)
    assert sampled.float().flatten().tolist() == GRID
    assert torch.histc((ramp(20) * 9).half(), 7, -3, 5).tolist() == HISTOGRAM


def test_shifts_in_place_and_tensors_of_empty_lists():
    source = """
def shift(x):
    x <<= 2
    x >>= 1
    return x
def empty(x: List[int], y: List[bool], z: List[List[int]]):
    return torch.tensor(x), torch.as_tensor(y), torch.tensor(z), torch.tensor(x, dtype=torch.float64)
"""
    unit = torch.jit.CompilationUnit(source)
    x = torch.tensor([1, 2])
    assert unit.shift(x) is x
    assert x.tolist() == [2, 4]
    assert [t.dtype for t in unit.empty([], [], [[]])] == [torch.int64, torch.bool, torch.int64, torch.float64]


def test_strides_of_tensors_without_elements_are_those_of_new_memory():
    assert [torch.empty(shape).stride() for shape in ((0,), (2, 0), (0, 3), (2, 0, 3))] == [
        (1,), (1, 1), (3, 1), (3, 3, 1),
    ]  # fmt: skip
    assert torch.ones(3, 4).t()[:0].stride() == (1, 4)


def test_rows_of_complex_numbers_are_shrunk_by_their_size():
    table = torch.tensor([[3 + 4j, 0j], [0.1 + 0j, 0j]])
    aten.embedding_renorm_(table, torch.tensor([0, 1]), 1.0, 2.0)
    assert torch.allclose(table, torch.tensor([[0.6 + 0.8j, 0j], [0.1 + 0j, 0j]]))
    with pytest.raises(OperatorError, match="Got Long instead"):
        aten.embedding_renorm_(torch.ones(2, 2).long(), torch.tensor([0]), 1.0, 2.0)


def test_bilinear_maps_of_integers_stay_in_their_dtype():
    x = torch.ones(2, 3).int()
    assert aten.bilinear(x, x, torch.ones(4, 3, 3).int()).dtype is torch.int32


def test_unsafe_segments_may_leave_out_the_end():
    lengths = torch.tensor([1, 2])
    found = torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0, 9.0]), "sum", lengths=lengths, unsafe=True)
    assert found.tolist() == [1.0, 5.0]


def test_steps_of_lstms_have_no_integers():
    x, w = torch.ones(1, 2).long(), torch.ones(8, 2).long()
    with pytest.raises(OperatorError, match="result type Float can't be cast to the desired output type Long"):
        torch.lstm_cell(x, (x, x), w, w)


def test_ranks_of_integers_are_refused():
    with pytest.raises(OperatorError, match="Expected a floating point or complex tensor"):
        torch.linalg.matrix_rank(torch.ones(2, 2).long())


def test_weights_of_bags_are_floats():
    with pytest.raises(OperatorError, match="'weight' to have one of the following scalar types"):
        aten.embedding_bag(torch.ones(2, 2).long(), torch.tensor([0]), torch.tensor([0]))


def test_logits_outside_of_probabilities_have_no_gradient():
    x = torch.tensor([0.25, 2.0, -1.0], requires_grad=True)
    torch.logit(x).sum().backward()
    assert torch.allclose(x.grad, torch.tensor([16 / 3, float("nan"), float("nan")]), equal_nan=True)
    assert torch.logit(torch.tensor(0.25), 1.0).item() == float("inf")


def test_a_label_may_be_the_blank():
    steps = torch.full((3, 1, 2), 0.5).log()
    lengths = torch.tensor([3]), torch.tensor([2])
    found = torch.ctc_loss(steps, torch.tensor([[1, 0]]), *lengths, reduction=0)
    assert torch.allclose(found, torch.tensor(5 / 8).log().neg())


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("addmm", ((2, 2), (2, 2), (2, 2))), ("addmv", ((2,), (2, 2), (2,))), ("addr", ((2, 2), (2,), (2,))),
     ("addbmm", ((2, 2), (3, 2, 2), (3, 2, 2))), ("baddbmm", ((3, 2, 2), (3, 2, 2), (3, 2, 2)))],
)  # fmt: skip
def test_what_counts_for_nothing_has_a_gradient_of_zero(name, shapes):
    given = [torch.ones(shape, requires_grad=True) for shape in shapes]
    getattr(torch, name)(*given, beta=0).sum().backward()
    assert torch.equal(given[0].grad, torch.zeros(shapes[0]))
    assert given[1].grad.sum() > 0
    hidden = torch.full(shapes[0], float("nan"), requires_grad=True)
    assert not getattr(torch, name)(hidden, *given[1:], beta=0).isnan().any()


@pytest.mark.parametrize(
    ("loss", "given"),
    [("nll_loss", {"weight": (3,)}), ("multi_margin_loss", {"weight": (3,)})],
)
def test_weights_of_classes_have_no_gradient(loss, given):
    weights = {name: torch.ones(shape, requires_grad=True) for name, shape in given.items()}
    with pytest.raises(RuntimeError, match="is not differentiable with respect to argument 'weight'"):
        getattr(torch.nn.functional, loss)(torch.ones(2, 3), torch.tensor([0, 1]), **weights)
    with torch.no_grad():
        getattr(torch.nn.functional, loss)(torch.ones(2, 3), torch.tensor([0, 1]), **weights)


@pytest.mark.parametrize("name", ["weight", "pos_weight"])
def test_weights_of_elements_have_no_gradient(name):
    x, weight = torch.ones(2, 3), torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"with respect to argument '{name}'"):
        torch.nn.functional.binary_cross_entropy_with_logits(x, x, **{name: weight})
    with pytest.raises(RuntimeError, match="with respect to argument 'target'"):
        torch.nn.functional.soft_margin_loss(x, weight)
