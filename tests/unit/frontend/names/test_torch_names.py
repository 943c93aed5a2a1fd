"""What the namespaces of torch have, as programs in text see them."""

import pytest

import engine.aten.ops
from engine.frontend.names.torch_names import has_name

assert engine.aten.ops


@pytest.mark.parametrize(
    ("path", "name", "wanted"),
    [
        ("torch", "add", True),
        ("torch", "append", False),
        ("torch", "linear", False),
        ("torch", "get_num_threads", True),
        ("torch", "nothing_of_the_kind", False),
        ("torch", "_private", True),
        ("torch.nn.functional", "linear", True),
        ("torch.nn.functional", "upsample_bilinear2d", False),
        ("torch.jit", "fork", True),
        ("torch.jit", "item", False),
    ],
)
def test_names(path: str, name: str, wanted: bool) -> None:
    assert has_name(path, name, f"aten::{name}") is wanted


def test_parts_with_prefixes() -> None:
    assert has_name("torch.linalg", "inv", "aten::linalg_inv")
    assert not has_name("torch.linalg", "relu", "aten::linalg_relu")
