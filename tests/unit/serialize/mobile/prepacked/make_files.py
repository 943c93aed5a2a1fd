"""Makes the files beside this one with PyTorch 2.0.1, the last whose wheels have the operators for phones.

    python -m venv E && E/bin/pip install torch==2.0.1 'numpy<2' && E/bin/python make_files.py

Each `NAME.ptl` (a zip file) and `NAME.ff` (a flatbuffer) is a program optimized for phones, with its code and with
bytecode; the extra file `io.npz` has arguments and what PyTorch gives for them.  `frozen.pt` has no bytecode.
"""

import io
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.ao import quantization as tq
from torch.ao.nn.quantized import FloatFunctional
from torch.utils.mobile_optimizer import MobileOptimizerType, optimize_for_mobile


class Convolutions(nn.Module):
    """Every way that a convolution of images can be set up, each with another activation behind it."""

    def __init__(self):
        super().__init__()
        self.plain = nn.Conv2d(3, 4, 3)
        self.strided = nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
        self.dilated = nn.Conv2d(3, 4, (3, 1), dilation=(2, 1), padding=(2, 0))
        self.grouped = nn.Conv2d(4, 6, 3, groups=2, padding=1)
        self.depthwise = nn.Conv2d(4, 8, 3, groups=4, padding=1)
        self.pointwise = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = torch.relu(self.plain(x))
        b = nn.functional.hardtanh(self.strided(x), -0.25, 0.5)
        c = nn.functional.relu6(self.dilated(x))
        d = self.grouped(a).clamp(min=-0.1)
        e = self.depthwise(a)
        return a, b, c, d, self.pointwise(nn.functional.hardtanh_(e, -0.5, 0.25))


class Linears(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = nn.Linear(6, 8), nn.Linear(8, 5, bias=False), nn.Linear(5, 3), nn.Linear(3, 1)

    def forward(self, x):
        y = torch.relu(self.a(x))
        z = nn.functional.hardtanh(self.b(y), -0.75, 0.125)
        return z, torch.relu_(self.c(z)), self.d(torch.tanh(self.c(z)))


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ConvTranspose2d(2, 3, 3)
        self.b = nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, output_padding=1, bias=False)
        self.c = nn.ConvTranspose2d(2, 4, 2, stride=(2, 1), groups=2)
        self.d = nn.ConvTranspose2d(4, 2, 2, dilation=2)

    def forward(self, x):
        a = torch.relu(self.a(x))
        b = self.b(a)
        c = nn.functional.hardtanh(self.c(b), -0.25, 0.25)
        return a, b, c, nn.functional.relu6(self.d(c))


def block(inputs, outputs, stride=1, groups=1, size=3):
    convolution = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU6(inplace=True))


class Inverted(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Sequential(
            block(width, 2 * width, size=1), block(2 * width, 2 * width, groups=2 * width),
            nn.Conv2d(2 * width, width, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x):
        return x + self.conv(x)


class Mobile(nn.Module):
    """A small MobileNet: blocks with residuals, dropout and a classifier."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(block(3, 4, 2), Inverted(4), block(4, 6, 2), Inverted(6), block(6, 8, size=1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(8, 5))

    def forward(self, x):
        return self.classifier(nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1)).flatten(1))


class Branches(nn.Module):
    """Layers in branches, loops and a method of its own; one of them is called twice."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc, self.limit = nn.Conv2d(2, 2, 3, padding=1), nn.Linear(2, 2), 3

    def forward(self, x, n: int):
        for i in range(n):
            x = torch.relu(self.conv(x)) if i % 2 == 0 else self.conv(x) * 0.5
        if n > self.limit:
            return self.fc(x.mean([2, 3]))
        return torch.relu(self.fc(x.mean((2, 3))))

    @torch.jit.export
    def named(self, x):
        return {"y": torch.relu(self.fc(x)), "x": x}


class Lines(nn.Module):
    """Convolutions over one dimension, which become such over two."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv1d(2, 4, 3, stride=2, padding=1), nn.Conv1d(4, 3, 1, groups=1)

    def forward(self, x):
        return torch.relu(self.b(torch.relu(self.a(x))))


class Quantized(nn.Module):
    """A quantized part between layers of plain numbers."""

    def __init__(self):
        super().__init__()
        self.stem, self.q, self.d = nn.Conv2d(2, 4, 3, padding=1), tq.QuantStub(), tq.DeQuantStub()
        self.conv, self.act, self.add = nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(), FloatFunctional()
        self.fc, self.last = nn.Linear(4, 3), nn.Linear(3, 2)

    def forward(self, x):
        x = self.q(torch.relu(self.stem(x)))
        x = self.add.add_relu(x, self.act(self.conv(x)))
        return self.last(self.d(self.fc(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))))


def images(*shape):
    return torch.sin(torch.arange(float(np.prod(shape))) * 1.7).reshape(shape)


def quantized():
    torch.backends.quantized.engine = "qnnpack"
    model = Quantized().eval()
    model.qconfig = tq.get_default_qconfig("qnnpack")
    model.stem.qconfig = model.last.qconfig = None
    tq.fuse_modules(model, [["conv", "act"]], inplace=True)
    model = tq.prepare(model)
    for seed in range(4):
        model(images(2, 2, 5, 5) * (seed + 1) / 3)
    return tq.convert(model)


def trained(model):
    """The model with statistics that are not those of the start."""
    for i, module in enumerate(model.modules()):
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.copy_(images(module.num_features) / 5)
            module.running_var.copy_(images(module.num_features).abs() + 0.5 + i / 50)
    return model


BLOCKED = {MobileOptimizerType.FUSE_ADD_RELU}
CASES = {
    "convolutions": (Convolutions, (images(2, 3, 7, 6),), {}),
    "linears": (Linears, (images(3, 6),), {}),
    "transposed": (Transposed, (images(1, 2, 4, 5),), {}),
    "mobile": (Mobile, (images(2, 3, 16, 16),), {}),
    "traced": (Mobile, (images(1, 3, 12, 10),), {}),
    "branches": (Branches, (images(2, 2, 4, 4), 4), {"preserved_methods": ["named"]}),
    "lines": (Lines, (images(2, 2, 9),), {"optimization_blocklist": BLOCKED}),
    "quantized": (quantized, (images(1, 2, 5, 5),), {}),
    "half": (Mobile, (images(1, 3, 16, 16),), {
        "optimization_blocklist": {MobileOptimizerType.HOIST_CONV_PACKED_PARAMS}}),
    "unfolded": (Linears, (images(2, 2, 6),), {
        "optimization_blocklist": {MobileOptimizerType.INSERT_FOLD_PREPACK_OPS}}),
}  # fmt: skip


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value.numpy()]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
    return [np.asarray(value)] if parts is None else [array for part in parts for array in flat(part)]


def recorded(args, results):
    buffer = io.BytesIO()
    given = {f"in{i}": array for i, array in enumerate(flat(args))}
    np.savez_compressed(buffer, **given, **{f"out{i}": array for i, array in enumerate(flat(results))})
    return buffer.getvalue()


def made(name):
    make, args, options = CASES[name]
    torch.manual_seed(7)
    with torch.no_grad():
        model = trained(make().eval())
        program = torch.jit.trace(model, args) if name == "traced" else torch.jit.script(model)
        optimized = optimize_for_mobile(program, **options)
        return optimized, recorded(args, optimized(*args))


def main():
    for name in CASES:
        program, numbers = made(name)
        program._save_for_lite_interpreter(f"{name}.ptl", _extra_files={"io.npz": numbers})
        program._save_for_lite_interpreter(f"{name}.ff", _extra_files={"io.npz": numbers}, _use_flatbuffer=True)
        if name == "mobile":
            program.save("frozen.pt", _extra_files={"io.npz": numbers})
        print(name, len(Path(f"{name}.ptl").read_bytes()), len(Path(f"{name}.ff").read_bytes()))


if __name__ == "__main__":
    sys.exit(main() if Path.cwd() == Path(__file__).parent else "run it in its own folder")
