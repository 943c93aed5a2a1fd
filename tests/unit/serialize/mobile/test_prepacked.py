"""Programs optimized for phones, as PyTorch 2.0.1 wrote them (`prepacked/make_files.py`): read, run, saved again."""

import zipfile

import pytest

import engine
import engine.torch as torch
from engine.lang.errors import ArchiveError
from engine.serialize.archive import load_archive
from engine.serialize.identify.identify import identify
from engine.serialize.inspect.check import check_archive
from engine.serialize.inspect.compare import compare
from tests.unit.serialize.mobile.prepacked.recorded import FOLDER, NAMES, compared, forms, loaded

MODES = ("off", "eager", "background")


@pytest.fixture(autouse=True)
def mode_as_before():
    before = torch.compile_mode()
    yield
    engine.set_compile_mode(before)


def test_there_are_files_of_each_form():
    assert {name.rpartition(".")[2] for name in NAMES} == {"ptl", "ff", "pt"}
    assert len(NAMES) > 20


@pytest.mark.parametrize("mode", MODES)
def test_they_give_what_pytorch_gives(mode, tmp_path):
    engine.set_compile_mode(mode)
    for path in forms(tmp_path):
        program, args, wanted = loaded(path)
        for _ in range(3):
            compared(program(*args), wanted)
        with torch.no_grad():
            compared(program(*args), wanted)


def test_they_are_saved_as_they_are(tmp_path):
    for path in forms(tmp_path):
        program, args, wanted = loaded(path)
        program.save(tmp_path / "m.pt")
        again = engine.load(tmp_path / "m.pt")
        compared(again(*args), wanted)
        first = (tmp_path / "m.pt").read_bytes()
        again.save(tmp_path / "m.pt")
        compared(engine.load(tmp_path / "m.pt")(*args), wanted)
        if not path.name.startswith("bare"):  # whose names are found again with the code
            assert (tmp_path / "m.pt").read_bytes() == first, path.name


def test_they_can_be_looked_at_without_being_run(tmp_path):
    for path in forms(tmp_path):
        assert identify(path).is_program
        check = check_archive(path)
        assert not any("not known" in finding.text for finding in check.findings), path.name
        called = [name for name in check.operators if name.startswith("prepacked::")]
        assert bool(called) != ("unfolded" in path.name), path.name
        assert compare(path, path).is_same


def test_code_calls_the_layers(tmp_path):
    for path in forms(tmp_path):
        program, _, _ = loaded(path)
        called = program.code.count("ops.prepacked.")
        assert called == str(program.graph).count("prepacked::")
        assert (called == 0) == path.name.replace("bare_", "").startswith("unfolded"), path.name


def test_a_copied_program_shares_what_never_changes():
    program, args, wanted = loaded(FOLDER / "half.ptl")
    compared(program.eval()(*args), wanted)
    names = [name for name in dir(program) if "packed_weight" in name]
    assert len(names) == 9
    assert "Conv2dOpContext" in str(getattr(program, names[0]))


# -- what is refused


def rewritten(path, out, ending, before, after):
    """A copy of the archive with another piece in the records of that ending."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        texts = {name: old.read(name) for name in old.namelist()}
        assert any(before in data for name, data in texts.items() if name.endswith(ending))
        for name, data in texts.items():
            new.writestr(name, data.replace(before, after) if name.endswith(ending) else data)
    return out


def test_states_that_make_no_layer(tmp_path):
    """A limit above the other."""
    low, high = b"G\xbf\xd0\0\0\0\0\0\0", b"G?\xf0\0\0\0\0\0\0"
    path = rewritten(FOLDER / "convolutions.ptl", tmp_path / "m.ptl", "/constants.pkl", low, high)
    with pytest.raises(ArchiveError, match=r"clamped to the range from 1\.0 to 0\.5"):
        load_archive(path)


@pytest.mark.parametrize(("space", "back_end"), [("vulkan_prepack", "Vulkan"), ("metal_prepack", "Metal")])
def test_layers_of_a_phones_gpu_are_named(space, back_end, tmp_path):
    before, after = b"ops.prepacked.linear_clamp_run", f"ops.{space}.linear_run".encode()
    path = rewritten(FOLDER / "linears.ptl", tmp_path / "m.ptl", ".py", before, after)
    program, args, _ = loaded(path)
    with pytest.raises(RuntimeError, match=rf"{space}::linear_run(.|\n)*phone's GPU(.|\n)*'{back_end}'"):
        program(*args)
    program.save(tmp_path / "n.pt")
    assert f"ops.{space}.linear_run(" in engine.load(tmp_path / "n.pt").code
