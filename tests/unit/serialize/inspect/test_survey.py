"""Programs looked at without being run."""

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.inspect.survey import survey
from tests.unit.serialize.model_files import ARCHIVES, FILES, archive, entangled, method


def of(tmp_path, *lines, **options):
    return survey(archive(tmp_path / "m.pt", method(*lines, **options)))


def test_everything_that_can_be_reached_is_there():
    seen = survey(ARCHIVES / "everything.pt")
    assert seen.module.type in seen.classes and len(seen.classes) > 1
    assert len({f.qualname for f in seen.functions}) == len(seen.functions) > 1
    assert seen.operators() and not seen.missing() and not seen.broken
    assert seen.records["data.pkl"] > 0


def test_tensors_by_dotted_path():
    found = {path: (kind, tensor.dtype.name) for path, kind, tensor in survey(FILES / "mobile.ptl").tensors()}
    assert found == {"a.weight": ("parameter", "float32"), "a.bias": ("parameter", "float32")}


def test_operators_have_their_overloads(tmp_path):
    seen = of(tmp_path, "y = torch.add(x, x)", "return torch.add(torch.add(y, 1), ops.mylib.fancy(x))")
    assert seen.operators() == {"aten::add.Tensor": 2, "aten::add.Scalar": 1, "mylib::fancy": 1}
    assert seen.missing() == {"mylib::fancy": 1}


def test_what_does_not_compile_is_noted_and_its_text_searched(tmp_path):
    seen = of(tmp_path, "y = ops.mylib.pair(x)", "a, b = y", "return torch.add(a, b)")
    assert [name for name, _ in seen.broken] == ["__torch__.M.forward"]
    assert seen.missing() == {"mylib::pair": 1}


LOOPS = {
    "counted": ("for i in range(3):", "  x = torch.add(x, x)", "return x"),
    "data": ("for i in range(torch.len(x)):", "  x = torch.add(x, x)", "return x"),
    "while": ("while bool(torch.gt(x, 0)):", "  x = torch.add(x, x)", "return x"),
    "endless": ("while True:", "  x = torch.add(x, x)", "return x"),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_loops(kind, tmp_path):
    (loop,) = of(tmp_path, *LOOPS[kind]).loops()
    assert (loop.kind, loop.function, loop.place) == (kind, "__torch__.M.forward", "code/__torch__.py:7")


def test_code_that_runs_while_loading_does_not_run_here(tmp_path):
    code = method("return x")
    code += "  def __getstate__(self: __torch__.M) -> int:\n    return 1\n"
    code += "  def __setstate__(self: __torch__.M,\n    n: int) -> NoneType:\n"
    code += "    while True:\n      pass\n    return None\n"
    pickle = b"\x80\x02c__torch__\nM\nq\0)\x81K\1b."
    seen = survey(archive(tmp_path / "m.pt", code, data=pickle))
    assert seen.filled == ["__torch__.M"]


def test_a_file_without_a_program_is_explained():
    with pytest.raises(ArchiveError, match="is not a TorchScript archive: it is a state dict"):
        survey(FILES / "sd_zip.pt")


def test_modules_that_share_each_other_are_walked_once(tmp_path):
    seen = survey(entangled(tmp_path / "m.pt", 60))
    assert len(list(seen.modules())) == len(seen.classes) == 61
    assert len(list(survey(entangled(tmp_path / "m.pt", 3)).modules())) == 15
