"""Files with tensors on `meta`, which have a form and no numbers."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
from engine.aten.values import libraries
from engine.lang.errors import ArchiveError
from engine.serialize.inspect.check import check_archive
from engine.serialize.inspect.compare import compare
from engine.serialize.inspect.extract import weights_of
from engine.serialize.inspect.fix import repack


@pytest.fixture(autouse=True)
def _unloaded() -> Iterator[None]:
    yield
    libraries.unload("meta")


class Half(torch.nn.Module):
    """One layer without numbers, and one with them."""

    def __init__(self) -> None:
        super().__init__()
        self.form = torch.nn.Linear(2, 3, device="meta")
        self.real = torch.nn.Linear(3, 4)
        self.part = torch.nn.Buffer(torch.randn(5, 2, device="meta").t()[:, 1:4])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.form(x)


def _forms(values: Any) -> dict[str, Any]:
    return {
        name: (t.device, t.shape, t.stride(), t.storage_offset(), t.dtype, t.requires_grad)
        for name, t in values.items()
    }


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("meta") / "half.pt"
    torch.jit.script(Half()).save(path)
    return path


@pytest.mark.parametrize("place", [None, "cpu", torch.device("cpu"), {"cpu": "cpu"}])
def test_programs_keep_forms_wherever_numbers_go(archive: Path, place: Any) -> None:
    loaded, made = torch.jit.load(archive, map_location=place), Half()
    assert _forms(loaded.state_dict(keep_vars=True)) == _forms(made.state_dict(keep_vars=True))
    assert loaded(torch.empty(5, 2, device="meta")).shape == (5, 3)
    again = io.BytesIO()
    torch.jit.save(loaded, again)
    again.seek(0)
    assert _forms(torch.jit.load(again).state_dict()) == _forms(loaded.state_dict())


def test_numbers_are_left_behind_where_meta_is_asked_for(archive: Path) -> None:
    loaded = torch.jit.load(archive, map_location="meta")
    assert {p.device.type for p in loaded.parameters()} == {"meta"}


def test_records_of_forms_are_empty(archive: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        sizes = [i.file_size for i in file.infolist() if "/data/" in i.filename]
    assert sorted(sizes) == [0, 0, 0, 16, 48]


def test_a_view_of_a_form_stays_inside_of_it(archive: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pt"
    with zipfile.ZipFile(archive) as file, zipfile.ZipFile(broken, "w", zipfile.ZIP_STORED) as out:
        for name in file.namelist():
            data = file.read(name)
            if name.endswith("/data.pkl"):
                data = data.replace(b"K\nt", b"K\x05t")
            out.writestr(name, data)
    with pytest.raises(ArchiveError, match="reaches element"):
        torch.jit.load(broken)


def test_state_dicts_keep_forms(tmp_path: Path) -> None:
    made = {**Half().state_dict(), "more": [torch.empty(2, device="meta", dtype=torch.int64)]}
    path = tmp_path / "half.pth"
    torch.save(made, path)
    found = torch.load(path)
    more, also = made.pop("more"), found.pop("more")
    assert (also[0].device, also[0].dtype) == (more[0].device, more[0].dtype)
    assert {n: f[:3] for n, f in _forms(found).items()} == {n: f[:3] for n, f in _forms(made).items()}
    assert torch.equal(found["real.weight"], made["real.weight"])
    assert torch.load(path, map_location="cpu")["form.weight"].is_meta
    assert torch.load(path, map_location="meta")["real.weight"].is_meta


def test_views_of_files_say_what_there_is(archive: Path, tmp_path: Path) -> None:
    assert not [finding for finding in check_archive(archive).findings if "NaN" in finding.text]
    assert {*weights_of(archive)} == {"real.weight", "real.bias"}
    done = repack(archive, tmp_path / "again.pt")
    assert done.moved == "" and torch.jit.load(tmp_path / "again.pt").form.weight.is_meta
    assert compare(archive, tmp_path / "again.pt").weights == ()
