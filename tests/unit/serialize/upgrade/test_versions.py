"""Which version an archive must have for its operators."""

import pytest

from engine.serialize.upgrade.versions import version_of


@pytest.mark.parametrize(
    ("name", "version"),
    [("aten::add.Tensor", 0), ("aten::div.Tensor", 4), ("aten::div.int", 0), ("aten::full", 5), ("aten::gelu", 10)],
)
def test_versions(name, version):
    assert version_of(name) == version
