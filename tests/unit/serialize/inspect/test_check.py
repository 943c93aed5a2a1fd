"""What a check finds, rule by rule."""

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.inspect.check import NOTE, SUSPICIOUS, check_archive
from tests.unit.serialize.model_files import ARCHIVES, FILES, archive, method


def findings(tmp_path, *lines, extra=(), **options):
    found = check_archive(archive(tmp_path / "m.pt", method(*lines, **options), extra=extra))
    return {finding.text: (finding.level, finding.where) for finding in found.findings}, found.is_suspicious


def test_a_plain_program_has_no_findings(tmp_path):
    assert findings(tmp_path, "return torch.relu(x)") == ({}, False)


@pytest.mark.parametrize(
    ("lines", "text", "level", "where"),
    [
        (("return ops.mylib.fancy(x)",), "operators that are not known here", SUSPICIOUS, "mylib::fancy (1×)"),
        (('torch.save(x, "a")', "return x"), "operators that read or write files", SUSPICIOUS, "aten::save"),
        (('return torch.from_file("a")',), "operators that read or write files", SUSPICIOUS, "aten::from_file"),
        (("y = ops.a.b(x)", "c, d = y", "return c"), "__torch__.M.forward does not compile", SUSPICIOUS, "a::b"),
        (("while True:", "  x = torch.add(x, x)", "return x"), "loops that never end", SUSPICIOUS, "__torch__.py:7"),
        (("return torch.zeros([100000, 100000])",), "tensors larger than", SUSPICIOUS, "zeros of 40,000,000,000 bytes"),
        (("return torch.relu(y)",), "__torch__.M.forward does not compile", SUSPICIOUS, "y"),
        (("while bool(torch.gt(x, 0)):", "  x = torch.add(x, x)", "return x"), "loops that run", NOTE, "py:7"),
        (("for i in range(torch.len(x)):", "  x = torch.add(x, x)", "return x"), "loops whose number", NOTE, "py:7"),
        (('return torch.to(x, torch.device("cuda:1"))',), "devices other than the CPU", NOTE, "py:7 cuda:1"),
        (("return torch.rand_like(x)",), "results may differ", NOTE, "aten::rand_like"),
        (('print("x")', "return x"), "code that prints", NOTE, "py:7"),
    ],
)  # fmt: skip
def test_rules(lines, text, level, where, tmp_path):
    found, suspicious = findings(tmp_path, *lines)
    ((found_level, places),) = [each for name, each in found.items() if text in name]
    assert found_level == level and suspicious == (level == SUSPICIOUS)
    assert any(where in place for place in places)


def test_records(tmp_path):
    found, suspicious = findings(tmp_path, "return x", extra={"hidden.bin": "x", "extra/labels.txt": "a"}.items())
    assert found["records that no program reads"] == (SUSPICIOUS, ("hidden.bin",)) and suspicious
    assert found["files that came along (extra files)"] == (NOTE, ("extra/labels.txt",))


def test_the_inputs_of_a_trace_belong_to_an_archive(tmp_path):
    extra = {"traced_inputs.pkl": "x", "traced_inputs/0": "x"}
    assert findings(tmp_path, "return x", extra=extra.items()) == ({}, False)


def test_numbers():
    numbers = dict(check_archive(ARCHIVES / "everything.pt").numbers)
    assert list(numbers) == ["file", "modules", "functions", "weights", "operators", "loops"]


def test_no_program():
    with pytest.raises(ArchiveError, match="is not a TorchScript archive: it is a checkpoint"):
        check_archive(FILES / "ckpt.pt")
