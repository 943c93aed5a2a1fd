"""The list of operators holds all that the PyTorch which is installed registers; alone, as it needs nothing else."""

import pytest

torch = pytest.importorskip("torch")

from tools.list_operators import number_of, read_list  # noqa: E402

pytestmark = pytest.mark.peer


def test_every_operator_of_this_release_is_in_the_list():
    release = number_of(".".join(torch.__version__.split(".")[:2]))
    known = {name: tuple(map(number_of, span)) for name, span in read_list().items()}
    names = {schema.name for schema in torch._C._jit_get_all_schemas()}
    assert {name for name in names if name not in known} == set()
    assert {name for name in names if not known[name][0] <= release <= known[name][1]} == set()
