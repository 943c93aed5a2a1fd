"""Functions and contexts of the library that programs use, compiled and in Python."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.torch import nn
from engine.torch.autograd.profiler import record_function

X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def fill(x):  # type: ignore[no-untyped-def]
    y = torch.empty(2, 3)
    torch.nn.init.constant_(y, 2.0)
    nn.init.zeros_(x)
    nn.init.uniform_(y[0], 1.0, 1.0)
    nn.init.normal_(y[1], 5.0, 0.0)
    nn.init.xavier_normal_(x, gain=0.0)
    return nn.init.ones_(x) + nn.init.xavier_uniform_(y.clone(), 0.0).sum()


def test_initialisation() -> None:
    assert torch.jit.script(fill)(torch.randn(2, 3)).tolist() == [[1.0] * 3] * 2


def shapes(x, y):  # type: ignore[no-untyped-def]
    return torch.broadcast_shapes(x.shape, y.shape), torch.broadcast_shapes([2, 1], [3])


def test_shapes_of_broadcasting() -> None:
    assert torch.jit.script(shapes)(torch.ones(2, 1, 4), torch.ones(3, 1)) == ([2, 3, 4], [2, 3])
    with pytest.raises(RuntimeError, match="must match"):
        torch.jit.script(shapes)(torch.ones(2), torch.ones(3))


def recorded(x, name: str):  # type: ignore[no-untyped-def]
    with torch.autograd.profiler.record_function("outer"):
        y = x * 2
        with record_function(name) as _:
            if bool(y.sum() > 0):
                return y + 1
    with torch.profiler.record_function("behind", "args"):
        return y - 1


def test_names_for_the_profiler() -> None:
    compiled = torch.jit.script(recorded)
    for x in (X, -X):
        assert compiled(x, "inner").tolist() == recorded(x, "inner").tolist()


def mixed(x):  # type: ignore[no-untyped-def]
    with torch.autocast("cpu", enabled=False):
        y = x @ x
    with torch.cpu.amp.autocast(enabled=False):
        return y + 1


def test_mixed_precision_is_no_matter() -> None:
    assert torch.jit.script(mixed)(X).tolist() == (X @ X + 1).tolist()


def products(x):  # type: ignore[no-untyped-def]
    a = x @ x
    with torch.autocast("cpu"):
        b = helper(x)
        c = torch.exp(b), torch.softmax(b, 0), b + x, torch.mv(x, x[0])
        with torch.autocast("cpu", enabled=False):
            d = x @ x
        with torch.cuda.amp.autocast():
            if bool(x.sum() > 0):
                e = x.mm(x)
            else:
                e = x
    with torch.cpu.amp.autocast(dtype=torch.float16):
        f = x @ x
    return a, b, c[0], c[1], c[2], c[3], d, e, f, x @ x


def helper(x):  # type: ignore[no-untyped-def]
    return x @ x


_DTYPES = "float32 bfloat16 float32 bfloat16 float32 bfloat16 float32 bfloat16 float16 float32".split()


@pytest.mark.parametrize("optimized", [True, False])
def test_mixed_precision(optimized: bool) -> None:
    compiled = torch.jit.script(products)
    with torch.jit.optimized_execution(optimized):
        for _ in range(2):
            assert [str(each.dtype) for each in compiled(X)] == [f"torch.{name}" for name in _DTYPES]


def chosen(x, enabled: bool):  # type: ignore[no-untyped-def]
    with torch.autocast("cpu", enabled=enabled):
        return x @ x


def unsafe(x):  # type: ignore[no-untyped-def]
    with torch.autocast("cpu"):
        return torch.nn.functional.binary_cross_entropy(x, x)


def test_mixed_precision_that_is_refused() -> None:
    with pytest.raises(RuntimeError, match="_enabled argument must be a constant"):
        torch.jit.script(chosen)(X, True)
    with pytest.raises(RuntimeError, match="unsafe to autocast"):
        torch.jit.script(unsafe)(X)


def unknown(x):  # type: ignore[no-untyped-def]
    return torch.nn.init.no_such_function(x)


def test_unknown_names() -> None:
    with pytest.raises(RuntimeError, match="no_such_function"):
        torch.jit.script(unknown)


def test_what_cannot_be_compiled_is_refused() -> None:
    def f(x: Any) -> Any:
        return nn.init.kaiming_uniform_(x)

    with pytest.raises(RuntimeError):
        torch.jit.script(f)


# ------------------------------------------------------------------ the same in Python


def test_one_tensor_of_at_least_two_dimensions() -> None:
    assert torch.atleast_2d(torch.ones(3)).shape == (1, 3)
    assert [tuple(t.shape) for t in torch.atleast_3d(torch.ones(3), torch.ones(2, 2))] == [(1, 3, 1), (2, 2, 1)]


def test_sizes_may_be_tensors() -> None:
    three = torch.tensor(3)
    for _ in range(2):
        assert tuple(torch.zeros(2, three).shape) == (2, 3)
        assert tuple(torch.zeros([three, 2]).shape) == (3, 2)
        assert tuple(torch.ones(6).view(2, three).shape) == (2, 3)
    with pytest.raises(TypeError):
        torch.zeros(2, torch.tensor(3.0))


def grid(theta, size: list[int]):  # type: ignore[no-untyped-def]
    return torch.nn.functional.affine_grid(theta, size, align_corners=False)


@pytest.mark.parametrize(
    ("theta", "size", "words"),
    [
        (torch.ones(1, 2, 3).long(), [1, 1, 2, 2], "ValueError: Expected theta to have floating point type"),
        (torch.ones(1, 3, 3), [1, 1, 2, 2], "2D affine matrices of shape Nx2x3 for size"),
        (torch.ones(1, 2, 3), [1, 1, 2, 2, 2], "3D affine matrices of shape Nx3x4 for size"),
        (torch.ones(1, 2, 3), [1, 1, 2], "only supports 4D and 5D sizes"),
        (torch.ones(1, 2, 3), [1, 1, 2, 0], "Expected non-zero, positive output size"),
    ],
)
def test_grids_of_affine_maps_look_at_what_they_are_given(theta: Any, size: list[int], words: str) -> None:
    with pytest.raises(torch.jit.Error, match=words):
        torch.jit.script(grid)(theta, size)


def attend(x, mask):  # type: ignore[no-untyped-def]
    w, b = torch.ones(6, 2), torch.zeros(6)
    return torch.nn.functional.multi_head_attention_forward(
        x, x, x, 2, 1, w, b, None, None, False, 0.0, torch.eye(2), None, attn_mask=mask
    )[0]


def test_masks_of_attention_are_bools_or_floats() -> None:
    program = torch.jit.script(attend)
    assert program(torch.ones(2, 1, 2), torch.zeros(2, 2)).shape == (2, 1, 2)
    with pytest.raises(torch.jit.Error, match="only bool and floating types of attn_mask are supported"):
        program(torch.ones(2, 1, 2), torch.zeros(2, 2).long())
