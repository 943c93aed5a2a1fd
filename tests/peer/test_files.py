"""Files made by `tsrepl fix`, `repack` and `extract`, and files of torch.save, as a real PyTorch sees them."""

import pytest

torch = pytest.importorskip("torch")

from engine.executor.interpreter.interpreter import run_function  # noqa: E402
from engine.serialize.inspect.extract import extract_weights  # noqa: E402
from engine.serialize.inspect.fix import fix_devices, repack  # noqa: E402
from engine.serialize.inspect.weights import load_weights  # noqa: E402
from tests.unit.serialize.model_files import ARCHIVES, FILES  # noqa: E402

pytestmark = pytest.mark.peer


def test_a_fixed_archive_runs_there(tmp_path):
    fix_devices(FILES / "dev.pt", "cpu", tmp_path / "cpu.pt")
    module = torch.jit.load(tmp_path / "cpu.pt")
    assert (str(module.d), module.s) == ("cpu", "cuda:0")
    assert module(torch.tensor([1.0, 2.0])).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("name", ["everything", "function", "constants"])
def test_a_repacked_archive_loads_there(name, tmp_path):
    repack(ARCHIVES / f"{name}.pt", tmp_path / "new.pt", run_function)
    old, new = (torch.jit.load(path).state_dict() for path in (ARCHIVES / f"{name}.pt", tmp_path / "new.pt"))
    assert list(old) == list(new) and all(torch.equal(old[key], new[key]) for key in old)


DTYPES = "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool bfloat16".split()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_state_dicts_of_every_dtype(dtype, zipped, tmp_path):
    base = (torch.arange(24) % 7).reshape(4, 6).to(getattr(torch, dtype))
    values = {"whole": base, "view": base[1:, ::2], "turned": base.t(), "number": base[2, 3], "none": base[:0]}
    values["parameter"] = torch.nn.Parameter(base.clone(), requires_grad=False)
    torch.save(values, tmp_path / "s.pt", _use_new_zipfile_serialization=zipped)
    found = load_weights(tmp_path / "s.pt")
    assert list(found) == list(values)
    for name, value in values.items():
        assert (str(found[name].dtype), tuple(found[name].shape)) == (f"torch.{dtype}", tuple(value.shape))
        assert found[name].tolist() == value.tolist()


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_extracted_weights_equal_its_own(ending, tmp_path):
    path = ARCHIVES / "everything.pt"
    extract_weights(path, str(tmp_path / f"w.{ending}"))
    own, found = torch.jit.load(path).state_dict(), load_weights(tmp_path / f"w.{ending}")
    for name, value in own.items():
        assert found[name].tolist() == value.tolist()
