"""What operators do with dtypes that differ or have no code, with values that are not finite, and how they say no."""

import math

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.kernels import gamma
from engine.lang.errors import OperatorDtypeError, OperatorError

aten = torch.ops.aten
F = torch.nn.functional
INF, NAN = math.inf, math.nan
EYE = torch.eye(3)


def ones(*shape, dtype="float32"):
    return torch.ones(shape, dtype=getattr(torch, dtype))


def spoiled(value, *place, shape=(3, 3)):
    x = torch.eye(3).expand(shape).clone()
    x[place] = value
    return x


# ------------------------------------------------------------------ values that are not finite


@pytest.mark.parametrize("name", ["svd", "svdvals", "pinv", "matrix_rank", "cond", "lstsq"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_nan_has_no_singular_values(name, shape):
    x = spoiled(NAN, ..., 0, 1, shape=shape)
    with pytest.raises(OperatorError, match="contained non-finite values"):
        getattr(torch.linalg, name)(*([x, x] if name == "lstsq" else [x]))


def test_a_matrix_with_an_infinity_has_nan_for_singular_values_and_its_neighbours_keep_theirs():
    x = spoiled(INF, 0, 0, 1, shape=(2, 3, 3))
    values = torch.linalg.svdvals(x)
    assert bool(values[0].isnan().all())
    assert values[1].tolist() == [1, 1, 1]
    assert bool(torch.linalg.pinv(x)[0].isnan().all())
    assert torch.linalg.matrix_rank(x).tolist() == [0, 3]


def test_eigenvalues_want_finite_values():
    with pytest.raises(OperatorError, match="input tensor should not contain infs or NaNs"):
        torch.linalg.eig(spoiled(INF, 0, 1))


def test_exponential_of_a_matrix_with_nan():
    assert bool(torch.linalg.matrix_exp(spoiled(NAN, 0, 1)).isnan().all())


def test_adaptive_averages_keep_infinity_in_its_windows():
    x = torch.tensor([[[0.0, 1, 2, 3, INF], [5, 6, 7, 8, 9]]], requires_grad=True)
    y = F.adaptive_avg_pool1d(x, [3])
    assert y.tolist() == [[[0.5, 2, INF], [5.5, 7, 8.5]]]
    y.sum().backward()
    third = 1 / 3
    assert x.grad[0, 0].tolist() == pytest.approx([0.5, 0.5 + third, third, third + 0.5, 0.5])


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear"])
def test_sizes_that_stay_are_not_interpolated_whatever_the_factor(mode):
    x = torch.tensor([[[[1.0, NAN], [3, 4]]]])
    align = {} if mode != "bilinear" else {"align_corners": False}
    y = F.interpolate(x, scale_factor=1.0, mode=mode, **align)
    assert y.flatten().tolist()[2:] == [3, 4]
    assert y.flatten()[0].item() == 1


def test_an_interpolated_size_that_stays_ignores_the_factor():
    x = torch.arange(12.0).view(1, 1, 3, 4)
    y = aten.upsample_bilinear2d(x, [3, 8], False, 2.0, 2.0)
    assert y[0, 0, :, 0].tolist() == [0, 4, 8]


def test_norms_over_one_element_are_its_size():
    assert torch.linalg.vector_norm(torch.tensor(3 + 4j), ord=-100).item() == 5
    assert torch.linalg.vector_norm(torch.tensor([3e3]), ord=-100).item() == 3000


def test_trigamma_next_to_its_poles():
    poles = np.array([0.0, -1.0, -2.0], np.float32)
    found = gamma.trigamma(poles)
    assert found[0] == np.inf
    assert np.all(np.isfinite(found[1:])) and np.all(found[1:] > 1e13)
    assert gamma.trigamma(np.array([0.25]))[0] == pytest.approx(17.19732915450711)


def test_windows_without_places_and_batches_without_elements():
    values, index = aten.adaptive_max_pool3d(ones(1, 2, 4, 4, 4), [1, 0, 1])
    assert list(values.shape) == list(index.shape) == [1, 2, 1, 0, 1]
    w = ones(2, 2, 2, 2).requires_grad_()
    torch.conv2d(ones(0, 2, 3, 3), w).sum().backward()
    assert w.grad.tolist() == torch.zeros(2, 2, 2, 2).tolist()


# ------------------------------------------------------------------ dtypes that differ


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ("int64", "complex64", "complex64"),
        ("int64", "float16", "float16"),
        ("int32", "bfloat16", "bfloat16"),
        ("float16", "bfloat16", "float32"),
        ("float32", "int64", "float32"),
        ("uint8", "int8", "int16"),
    ],
)
def test_outer_products_promote(first, second, common):
    u, v = ones(2, dtype=first), ones(3, dtype=second)
    wanted = getattr(torch, common)
    assert torch.outer(u, v).dtype == wanted
    assert torch.einsum("i,j->ij", [u, v]).dtype == wanted
    assert torch.addr(ones(2, 3, dtype=first), u, v).dtype == wanted


def test_sums_of_products_count():
    b = torch.tensor([[True, True], [False, True]])
    assert torch.einsum("ij->", [b]).item() == 3
    assert torch.einsum("ij,k->j", [ones(2, 2, dtype="int32"), ones(2, dtype="int32")]).dtype == torch.int64
    assert torch.einsum("ij,ij->ij", [b, b]).dtype == torch.bool


def test_powers_of_whole_matrices():
    a = torch.tensor([[1, 2], [3, 4]])
    assert torch.linalg.matrix_power(a, 3).tolist() == [[37, 54], [81, 118]]
    assert torch.linalg.matrix_power(a > 1, 0).tolist() == [[True, False], [False, True]]


def test_factors_wrap_in_whole_sums():
    m = ones(2, 2, dtype="uint8")
    assert torch.addmm(m, m, m, beta=-100).tolist() == [[158, 158], [158, 158]]


def test_what_there_is_nothing_of():
    assert list(aten.block_diag([]).shape) == [1, 0]
    assert torch.fft.rfftfreq(0).isnan().tolist() == [True]
    assert torch.diff(ones(3), n=0, dim=5).tolist() == [1, 1, 1]
    assert F.nll_loss(-ones(3), torch.tensor([1])).item() == 1


def test_limits_of_logit_are_rounded_like_the_values():
    assert torch.logit(torch.tensor(0.0, dtype=torch.float16), 1e-8).item() == -INF


def test_hinges_of_whole_numbers_stay_whole():
    x = torch.tensor([1, 2])
    assert F.hinge_embedding_loss(x, torch.tensor([1, -1]), reduction="none").dtype == torch.int64


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: torch.einsum("ij,jk->ik", [ones(2, 2), ones(2, 2, dtype="float64")]), "type Float but found Double"),
        (lambda: torch.linalg.cross(ones(3), ones(3, dtype="int64")), "expected scalar type Float but found Long"),
        (lambda: torch.linalg.vecdot(ones(2), ones(2, dtype="int64")), "found x of type Float and y of type Long"),
        (lambda: torch.tensordot(ones(2, 3), ones(3, 4, dtype="float64"), 1), "both inputs should have same dtype"),
        (lambda: F.linear(ones(2, 3), ones(4, 3, dtype="float64"), ones(4)), "dtype, but got Float and Double"),
        (lambda: torch.cdist(ones(1, 2), ones(1, 2, dtype="int64")), "floating-point dtypes, X2 got: Long"),
        (lambda: F.kl_div(ones(2, dtype="int64"), ones(2)), "kl_div: Integral inputs not supported."),
        (lambda: F.layer_norm(ones(2, 3), [3], ones(3, dtype="float64")), "parameter to have scalar type of Float"),
        (lambda: F.layer_norm(ones(2, 3).double(), [3], ones(3)), "all inputs must share same datatype"),
        (lambda: F.group_norm(ones(2, 4, 2), 2, ones(4).double()), "parameter to have scalar type of Float"),
        (lambda: torch.zeros(3, 5).scatter(0, torch.tensor([[34]]), ones(1, 1).short()), "equal to src.dtype"),
        (lambda: torch.linalg.vander(ones(3).half()), "but got Half"),
        (lambda: F.nll_loss(ones(2, 3), ones(2, dtype="int32")), "target dtype to be Long or Byte, but got Int"),
    ],
)
def test_dtypes_that_do_not_go_together(call, words):
    with pytest.raises(OperatorError, match=words):
        call()


def test_halves_go_with_parameters_of_float32():
    assert F.layer_norm(ones(2, 3, dtype="bfloat16"), [3], ones(3)).dtype == torch.bfloat16


# ------------------------------------------------------------------ dtypes without code


@pytest.mark.parametrize(
    ("call", "dtypes"),
    [
        (lambda d: F.avg_pool2d(ones(1, 1, 4, 4, dtype=d), 2), "int8 int16 int32 uint8"),
        (lambda d: F.avg_pool3d(ones(1, 1, 4, 4, 4, dtype=d), 2), "int32 float16 bfloat16"),
        (lambda d: F.grid_sample(ones(1, 1, 4, 4, dtype=d), ones(1, 2, 2, 2, dtype=d)), "int64 uint8 bool"),
        (lambda d: F.group_norm(ones(2, 4, dtype=d), 2), "int64 bool complex64"),
        (lambda d: F.layer_norm(ones(2, 4, dtype=d), [4]), "int16 uint8 complex64"),
        (lambda d: F.instance_norm(ones(2, 4, 3, dtype=d)), "int64 complex64"),
        (lambda d: F.mse_loss(ones(2, dtype=d), ones(2, dtype=d)), "int64 bool complex64"),
        (lambda d: F.prelu(ones(2, dtype=d), ones(1, dtype=d)), "int64 bool complex64"),
        (lambda d: F.nll_loss(ones(2, 3, dtype=d), torch.tensor([0, 1])), "int64 bool complex64"),
        (lambda d: torch.igamma(ones(2, dtype=d), ones(2, dtype=d)), "int64 bool"),
        (lambda d: torch.special.zeta(ones(2, dtype=d), ones(2, dtype=d)), "float16 bfloat16"),
        (lambda d: torch.linalg.lu(ones(2, 2, dtype=d)), "float16 int64 bool"),
        (lambda d: torch.linalg.svdvals(ones(2, 2, dtype=d)), "float16 bfloat16"),
        (lambda d: torch.linalg.eigvalsh(ones(2, 2, dtype=d)), "int32 float16"),
        (lambda d: torch.trace(ones(2, 2, dtype=d)), "bool"),
        (lambda d: torch.logit(ones(2, dtype=d)), "complex64"),
    ],
)
def test_dtypes_without_code(call, dtypes):
    for name in dtypes.split():
        with pytest.raises(OperatorDtypeError, match="not implemented for"):
            call(name)


def test_matrices_without_elements_need_no_code():
    assert list(torch.linalg.lu_factor(torch.zeros(0, 0)).LU.shape) == [0, 0]
    assert F.avg_pool2d(ones(1, 1, 4, 4, dtype="int64"), 2).tolist() == [[[[1, 1], [1, 1]]]]


# ------------------------------------------------------------------ the words


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: F.interpolate(ones(1, 1, 4, 0), [3, 3]), r"got input \(H: 4, W: 0\) output \(H: 3, W: 3\)"),
        (lambda: F.max_pool2d(ones(1, 4, 4), -1), "greater than zero, but got kH: -1 kW: -1"),
        (lambda: F.avg_pool1d(ones(1, 1, 4), 2, -1), "greater than zero, but got dH: 1 dW: -1"),
        (lambda: F.unfold(ones(1, 1, 4, 4), 2, -1), "got dilation_height: -1 dilation_width: -1"),
        (lambda: F.fold(ones(1, 8, 25), 6, 2, padding=2), r"sliding blocks 9 \* 9 = 81, but got input.size\(2\)=25"),
        (lambda: F.pad(ones(1, 1, 3, 3), [1, 1], "reflect"), "Padding size 2 is not supported for 4D input tensor"),
        (lambda: F.pad(ones(3), [1]), "Padding length must be divisible by 2"),
        (lambda: F.pad(ones(3), [-2, -2]), r"narrow\(\): length must be non-negative"),
        (lambda: ones(4).view(2, -3), r"invalid shape dimension -3 at index 1 of shape \[2, -3\]"),
        (lambda: F.one_hot(ones(2)), r"index tensor of type LongTensor\."),
        (lambda: ones(2, 3, 4)[:, :, torch.tensor([7])], "index 7 is out of bounds for dimension 0 with size 4"),
        (lambda: F.nll_loss(ones(2, 3), torch.tensor([0, 0, 0])), r"batch_size \(2\) to match target batch_size \(3\)"),
        (lambda: torch.linalg.multi_dot([ones(2, 3), ones(2, 2)]), "tensors 0 and 1 with shapes"),
        (lambda: torch.linalg.lu(EYE, pivot=False), "LU without pivoting is not implemented on the CPU"),
        (lambda: F.binary_cross_entropy(ones(2) / 2, ones(2) * 3), "all elements of target should be between 0 and 1"),
        (lambda: F.rms_norm(ones(1, 2, 3), [1, 0, 3], ones(1, 2, 3)), "weight to be of same shape as normalized_shape"),
    ],
)
def test_words(call, words):
    with pytest.raises(OperatorError, match=words):
        call()
