"""Makes the archives beside this one with a real PyTorch, which only this script needs: `python make_files.py`.

Each holds a model and, as its extra file `io.npz`, arguments and the results that PyTorch gives: of quantized tensors,
the integers.
"""

import io
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.ao import quantization as tq
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
from torch.nn.quantized import FloatFunctional


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 8), nn.Linear(8, 5), nn.Linear(5, 3)

    def forward(self, x):
        return self.c(torch.relu(self.b(torch.relu(self.a(x)))))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(4, 3, 2, bidirectional=True), nn.GRU(6, 3, batch_first=True)
        self.cell, self.rnn = nn.LSTMCell(3, 3), nn.RNNCell(3, 2)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, g = self.gru(y)
        a, b = self.cell(z[0])
        return y, h, c, z, g, self.rnn(a), b


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.d = tq.QuantStub(), tq.DeQuantStub()
        self.c1, self.b1, self.r1 = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
        self.c2, self.b2 = nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.BatchNorm2d(4)
        self.add, self.join, self.times = FloatFunctional(), FloatFunctional(), FloatFunctional()
        self.pool, self.act, self.fc = nn.MaxPool2d(2), nn.Hardswish(), nn.Linear(4, 3)

    def forward(self, x):
        x = self.r1(self.b1(self.c1(self.q(x))))
        x = self.act(self.pool(self.add.add_relu(x, self.b2(self.c2(x)))))
        x = self.join.cat([x, self.times.mul(x, x)], 1)[:, :4]
        return self.d(self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1)))


class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.b1, self.c2 = nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1)
        self.fc, self.norm, self.elu, self.leaky = nn.Linear(4, 3), nn.LayerNorm(3), nn.ELU(), nn.LeakyReLU(0.1)

    def forward(self, x):
        x = torch.relu(self.b1(self.c1(x)))
        y = self.leaky(self.c2(x))
        x = torch.sigmoid((x + y) * y) + 1.5
        x = nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)
        return torch.tanh(self.elu(self.norm(self.fc(x))))


class Lines(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q3, self.d = tq.QuantStub(), tq.QuantStub(), tq.DeQuantStub()
        self.c1, self.r1, self.c3, self.r3 = nn.Conv1d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv3d(2, 3, 2), nn.ReLU()

    def forward(self, x, y):
        return self.d(self.r1(self.c1(self.q1(x)))), self.d(self.r3(self.c3(self.q3(y))))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.small = nn.EmbeddingBag(9, 4, mode="sum"), nn.EmbeddingBag(9, 4, mode="sum")
        self.one = nn.Embedding(9, 4)
        self.bag.qconfig = self.one.qconfig = tq.float_qparams_weight_only_qconfig
        self.small.qconfig = tq.float_qparams_weight_only_qconfig_4bit

    def forward(self, i, o):
        return self.bag(i, o), self.small(i, o), self.one(i)


class Values(nn.Module):
    def __init__(self):
        super().__init__()
        x = torch.arange(12.0).reshape(3, 4) / 5 - 1
        self.register_buffer("a", torch.quantize_per_tensor(x, 0.1, 3, torch.quint8))
        self.register_buffer("view", self.a[1:, ::2])
        scales, zeros = torch.tensor([0.1, 0.2, 0.25]), torch.tensor([1, 2, 3])
        self.register_buffer("b", torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8))
        self.register_buffer("c", torch.quantize_per_tensor(x, 0.001, 0, torch.qint32))

    def forward(self, x):
        return self.a.dequantize() + self.b.dequantize() + self.c.dequantize() + x, self.a, self.b, self.view


class Foreign(nn.Module):
    """Holds an object of a class that tsrepl does not know."""

    def __init__(self):
        super().__init__()
        weight = torch.quantize_per_tensor(torch.randn(8, 8), 0.1, 0, torch.qint8)
        self.p, self.w = torch.ops.sparse.qlinear_prepack(weight, torch.randn(8), 1, 4), nn.Linear(8, 2)
        self.several = [self.p]

    def forward(self, x):
        return self.w(x)

    @torch.jit.export
    def fancy(self, x):
        return torch.ops.sparse.qlinear(torch.quantize_per_tensor(x, 0.1, 3, torch.quint8), self.p, 0.2, 4).dequantize()

    @torch.jit.export
    def blocks(self) -> int:
        _, _, sizes = torch.ops.sparse.qlinear_unpack(self.p)
        return sizes[0]


def randn(*sizes):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(3))


def static(model, fused, *data):
    model = tq.fuse_modules(model.eval(), fused)
    model.qconfig = tq.get_default_qconfig("fbgemm")
    tq.prepare(model, inplace=True)
    model(*data)
    return tq.convert(model)


def dynamic():
    rows = {nn.Linear: tq.default_dynamic_qconfig, "c": tq.float16_dynamic_qconfig, "b": tq.per_channel_dynamic_qconfig}
    return torch.jit.script(tq.quantize_dynamic(Dense().eval(), rows)), (randn(5, 6),)


def recurrent():
    kinds = {nn.LSTM, nn.LSTMCell, nn.RNNCell}
    half = tq.quantize_dynamic(Recurrent().eval(), kinds, dtype=torch.qint8)
    half = tq.quantize_dynamic(half, {nn.GRU}, dtype=torch.float16)
    return torch.jit.script(half), (randn(4, 3, 4),)


def images():
    x = randn(2, 2, 6, 6)
    return torch.jit.script(static(Images(), [["c1", "b1", "r1"], ["c2", "b2"]], x)), (x,)


def functions():
    x = randn(2, 2, 6, 6)
    prepared = prepare_fx(Functions().eval(), tq.get_default_qconfig_mapping("fbgemm"), (x,))
    prepared(x)
    return torch.jit.trace(convert_fx(prepared), (x,)), (x,)


def trained():
    x = randn(2, 2, 6, 6)
    model = tq.fuse_modules_qat(Images().train(), [["c1", "b1", "r1"], ["c2", "b2"]])
    model.qconfig = tq.get_default_qat_qconfig("fbgemm")
    tq.prepare_qat(model, inplace=True)
    model(x)
    return torch.jit.script(tq.convert(model.eval())), (x,)


def observed():
    x = randn(2, 6)
    model = Dense().train()
    model.qconfig = tq.get_default_qat_qconfig("fbgemm")
    tq.prepare_qat(model, inplace=True)
    model(x)
    return torch.jit.trace(model.eval(), (x,)), (x,)


def lines():
    x, y = randn(2, 3, 7), randn(1, 2, 3, 3, 3)
    return torch.jit.script(static(Lines(), [["c1", "r1"], ["c3", "r3"]], x, y)), (x, y)


def words():
    model = Words().eval()
    tq.prepare(model, inplace=True)
    return torch.jit.script(tq.convert(model)), (torch.tensor([1, 2, 4, 5, 4, 3, 2, 8]), torch.tensor([0, 3]))


def values():
    return torch.jit.script(Values()), (randn(3, 4),)


def foreign():
    return torch.jit.script(Foreign()), (randn(2, 8),)


MODELS = {
    f.__name__: f for f in (dynamic, recurrent, images, functions, trained, observed, lines, words, values, foreign)
}
"""Each gives a compiled model and its arguments."""
KEPT = [name for name in MODELS if name not in ("trained", "observed")]
"""Those whose archives lie here; the others are made when they are compared with a real PyTorch."""


def flat(value):
    return [each for part in value for each in flat(part)] if isinstance(value, (list, tuple)) else [value]


def make(name, path):
    """Write one of them."""
    torch.manual_seed(1)
    torch.backends.quantized.engine = "fbgemm"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, args = MODELS[name]()
        results = flat(model(*args))
    buffer = io.BytesIO()
    arrays = {f"in{i}": arg.numpy() for i, arg in enumerate(args)}
    arrays |= {f"out{i}": (r.int_repr() if r.is_quantized else r).detach().numpy() for i, r in enumerate(results)}
    np.savez(buffer, **arrays)
    torch.jit.save(model, path, _extra_files={"io.npz": buffer.getvalue()})


if __name__ == "__main__":
    for name in sys.argv[1:] or KEPT:
        make(name, str(Path(__file__).parent / f"{name}.pt"))
