"""Programs for mobile devices as a real PyTorch writes them: they run here with the same results, also without code."""

import copy
import re
import zipfile

import pytest

torch = pytest.importorskip("torch")

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
