"""Programs for mobile devices as a real PyTorch writes them: they run here with the same results, also without code."""

import copy
import re
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.jit.mobile import _load_for_lite_interpreter  # noqa: E402

import engine  # noqa: E402
from engine.executor.interpreter.interpreter import run_function  # noqa: E402
from engine.serialize.inspect.fix import repack  # noqa: E402
from tests.unit.serialize.model_files import without_code  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
Tensor, nn = torch.Tensor, torch.nn


class Breaks(nn.Module):
    def forward(self, x: Tensor, n: int):
        for i in range(n):
            if float(x.sum()) > 5:
                break
            x = x + i
            for j in range(i):
                if j == 2:
                    continue
                x = x * 2
        k = 0
        while True:
            k += 1
            if k > n:
                break
        return x, k


class Optionals(nn.Module):
    def forward(self, x: Tensor | None, xs: list[Tensor | None]):
        y: Tensor | None = None
        for a in xs:
            if a is not None:
                if y is None:
                    y = a
                else:
                    y = y + a
        if x is not None and y is not None:
            y = y + x
        return y


class Unions(nn.Module):
    def forward(self, x: int | str | Tensor):
        if isinstance(x, int):
            return x + 1
        if isinstance(x, str):
            return len(x)
        return int(x.sum())


class Many(nn.Module):
    """Operators with several results, lists, slices, outputs to write to, a dict, a list of a tensor."""

    def forward(self, x: Tensor):
        y = torch.zeros_like(x, dtype=torch.float64).to(x.device)
        a, b = torch.max(x, dim=1)
        c, d = x.unbind(0)[0], torch.split(y, 1)
        z = torch.empty(3)
        torch.add(x[0], x[1], out=z)
        numbers: list[list[float]] = x.tolist()
        return a, b, c, d, x.view(-1)[1:3:1], x.dtype, x.shape, z, [int(i) for i in range(3)], numbers, {"k": [x, z]}


class Changes(nn.Module):
    last: Tensor | None

    def __init__(self):
        super().__init__()
        self.last, self.count = None, 0

    def forward(self, x: Tensor):
        last = self.last
        if last is None:
            self.last = x
        else:
            self.last = last + x
        self.count += 1
        return self.last, self.count


X = torch.arange(6.0).reshape(2, 3) / 10
IMAGES = (torch.arange(32.0) ** 2 % 11).reshape(2, 1, 4, 4)
CASES = {
    "breaks": (Breaks, (X, 4)),
    "optionals": (Optionals, (X, [X, None, X])),
    "unions": (Unions, ("abc",)),
    "many": (Many, (X,)),
    "changes": (Changes, (X,)),
    "attention": (lambda: nn.TransformerEncoderLayer(4, 2, 8).eval(), (torch.ones(2, 3, 4) / 3,)),
    "convolution": (lambda: nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten()), (IMAGES,)),
    "gru": (lambda: nn.GRUCell(3, 4), (X,)),
}  # fmt: skip


OPTIMIZED = {
    "convolution": (
        lambda: nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU(), nn.Conv2d(2, 2, 1), nn.ReLU6()),
        (IMAGES,),
    ),
    "linears": (lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.Hardtanh(-0.5, 0.5)), (X,)),
}


def files(scripted, folder):
    """The program as PyTorch writes it: with code and without, as a flatbuffer and as a zip file."""
    paths = [folder / name for name in ("m.ff", "bare.ff", "m.ptl", "bare.ptl")]
    torch.jit.save_jit_module_to_flatbuffer(scripted, str(paths[0]))
    paths[1].write_bytes(without_code(paths[0].read_bytes()))
    paths[2].write_bytes(scripted._save_to_buffer_for_lite_interpreter())
    with zipfile.ZipFile(paths[2]) as source, zipfile.ZipFile(paths[3], "w") as target:
        for name in source.namelist():
            if "/code/" not in name:
                target.writestr(name, source.read(name))
    return paths


def given(value):
    """An argument as the engine takes it."""
    if isinstance(value, torch.Tensor):
        return engine.tensor(value.tolist())
    return [given(each) for each in value] if isinstance(value, list) else value


def shown(value):
    return re.sub(r",?\s*grad_fn=<\w+>|torch\.|\s", "", str(value))


@pytest.mark.parametrize("name", CASES)
def test_programs_run_here_and_go_back(name, tmp_path):
    make, args = CASES[name]
    torch.manual_seed(3)
    scripted = torch.jit.script(make())
    paths = files(scripted, tmp_path)
    scripted(*copy.deepcopy(args))
    wanted = shown(scripted(*copy.deepcopy(args)))
    for path in paths:
        found = engine.load(path)
        found(*map(given, args))
        assert shown(found(*map(given, args))) == wanted, path.name
        repack(path, tmp_path / "new.pt", run_function)
        back = torch.jit.load(tmp_path / "new.pt")
        back(*copy.deepcopy(args))
        assert shown(back(*copy.deepcopy(args))) == wanted, path.name


def test_saved_parameters(tmp_path):
    weights = {"a.weight": torch.randn(2, 3), "b": torch.arange(4, dtype=torch.int32)}
    torch._C._save_parameters(weights, str(tmp_path / "w.ff"), True)
    found = engine.load_weights(tmp_path / "w.ff")
    assert list(found) == list(weights)
    assert all(found[name].tolist() == weights[name].tolist() for name in weights)


# -- what is written here


def written(program, folder, name="w"):
    """The program as `_save_for_lite_interpreter` writes it, as a zip file and as a flatbuffer."""
    paths = [folder / f"{name}.ptl", folder / f"{name}.ff"]
    for path in paths:
        program._save_for_lite_interpreter(path, _use_flatbuffer=path.suffix == ".ff")
    return paths


CRASH = {("unions", ".ptl"), ("unions", ".ff"), ("convolution", ".ff")}
"""Programs in whose files for phones PyTorch 2.13 ends by a signal, those that it wrote itself included."""


def readers(path):
    """PyTorch's own readers of that file."""
    yield _load_for_lite_interpreter(str(path))
    if path.suffix == ".ptl":
        yield torch.jit.load(str(path))
    elif hasattr(torch._C, "_load_jit_module_from_file"):
        yield torch.jit.jit_module_from_flatbuffer(str(path))


@pytest.mark.parametrize(
    ("name", "suffix"), [(name, suffix) for name in CASES for suffix in (".ptl", ".ff") if (name, suffix) not in CRASH]
)
def test_what_is_written_here_runs_there(name, suffix, tmp_path):
    make, args = CASES[name]
    torch.manual_seed(3)
    scripted = torch.jit.script(make())
    scripted.save(str(tmp_path / "m.pt"))
    scripted(*copy.deepcopy(args))
    wanted = shown(scripted(*copy.deepcopy(args)))
    paths = written(engine.load(tmp_path / "m.pt"), tmp_path)
    for found in readers(next(path for path in paths if path.suffix == suffix)):
        found(*copy.deepcopy(args))
        assert shown(found(*copy.deepcopy(args))) == wanted, type(found)


class Named(nn.Module):
    """Parts, files and texts whose names are not ASCII."""

    def __init__(self):
        super().__init__()
        self.add_module("größe", nn.Linear(3, 2))
        self.register_buffer("层", torch.ones(2))
        self.add_module("é è", nn.Sequential(nn.Linear(2, 2)))
        self.text = "naïve \U0001f600"

    def forward(self, x: Tensor):
        return x, self.text, {"ключ": x.sum()}


def test_names_outside_ascii(tmp_path):
    scripted = torch.jit.script(Named())
    scripted.save(str(tmp_path / "modèle.pt"), _extra_files={"notiz-ä.txt": "ü"})
    extra = {"notiz-ä.txt": ""}
    program = engine.load(tmp_path / "modèle.pt", _extra_files=extra)
    assert extra["notiz-ä.txt"] in ("ü", "ü".encode())
    paths = written(program, tmp_path, "wörter")
    program.save(tmp_path / "größe 层.pt", _extra_files={"notiz-ä.txt": "ü"})
    wanted = shown(scripted(X))
    again = {"notiz-ä.txt": ""}
    back = torch.jit.load(str(tmp_path / "größe 层.pt"), _extra_files=again)
    assert again["notiz-ä.txt"] in ("ü", "ü".encode())
    assert list(back.state_dict()) == list(scripted.state_dict())
    for found in (back, *(each for path in paths for each in readers(path))):
        assert shown(found(X)) == wanted


@pytest.mark.skipif("xnnpack" not in torch.__config__.show().lower(), reason="a build without operators for phones")
@pytest.mark.parametrize("name", ["convolution", "linears"])
def test_programs_optimized_there_and_here(name, tmp_path):
    """What either side optimizes for phones, both run to the same results."""
    torch.manual_seed(3)
    make, args = OPTIMIZED[name]
    scripted = torch.jit.script(make().eval())
    scripted.save(str(tmp_path / "m.pt"))
    wanted = scripted(*args).detach()
    from torch.utils.mobile_optimizer import optimize_for_mobile

    theirs = optimize_for_mobile(scripted)
    theirs.save(str(tmp_path / "theirs.pt"))
    theirs._save_for_lite_interpreter(str(tmp_path / "theirs.ptl"))
    for path in (tmp_path / "theirs.pt", tmp_path / "theirs.ptl"):
        assert "prepacked::" in str(engine.load(path).graph)
        assert np.allclose(engine.load(path)(*map(given, args)).detach().numpy(), wanted.numpy(), atol=1e-5)
    ours = engine.torch.utils.mobile_optimizer.optimize_for_mobile(engine.load(tmp_path / "m.pt"))
    ours.save(tmp_path / "ours.pt")
    for path in (tmp_path / "ours.pt", *written(ours, tmp_path)):
        for found in readers(path) if path.suffix != ".pt" else [torch.jit.load(str(path))]:
            assert torch.allclose(found(*args), wanted, atol=1e-5), (path.name, type(found))
