"""Makes the files beside this one with a real PyTorch, which only this script needs: `python make_files.py`."""

import argparse
import sys
from pathlib import Path

import torch
from torch import nn
from torch.package import PackageExporter


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.bn = nn.Linear(4, 3), nn.BatchNorm1d(3)
        self.register_buffer("h16", torch.ones(2, dtype=torch.float16))

    def forward(self, x):
        return self.bn(self.a(x))


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3)

    def forward(self, x):
        return torch.relu(self.a(x))


class Devices(nn.Module):
    """A device and a text of the same letters; devices as arguments; a method that moves tensors."""

    def __init__(self):
        super().__init__()
        self.w, self.d, self.s = nn.Parameter(torch.ones(2)), torch.device("cuda:0"), "cuda:0"

    def forward(self, x):
        y = x.to("cuda:0") + torch.zeros(2, device="cuda:1") + self.w.to(self.d)
        return y.cuda() if self.s == "cuda:0" else y


def dtypes():
    return {
        "f8": torch.ones(3).to(torch.float8_e4m3fn),
        "u16": torch.tensor([1, 65535], dtype=torch.uint16),
        "bf": torch.ones(2, dtype=torch.bfloat16),
        "b": torch.tensor([True, False]),
        "c": torch.tensor([1 + 2j]),
        "i": torch.tensor(3),
        "t": torch.arange(12.0).reshape(3, 4).t(),
    }


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("q", quantized()["q"])
        self.register_buffer("coo", quantized()["coo"])
        self.register_buffer("plain", torch.ones(2))

    def forward(self, x):
        return x + torch.dequantize(self.q)


def quantized():
    rows = torch.arange(6.0).reshape(2, 3)
    scales, zeros = torch.tensor([0.5, 0.25]), torch.tensor([0, 1])
    return {
        "q": torch.quantize_per_tensor(rows, 0.5, 3, torch.qint8),
        "by_channel": torch.quantize_per_channel(rows, scales, zeros, 0, torch.quint8),
        "coo": torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)),
        "csr": rows.to_sparse_csr(),
        "bsc": torch.ones(4, 4).to_sparse_bsc((2, 2)),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "meta": torch.empty(3, 4, device="meta"),
        "conj": torch.tensor([1 + 2j]).conj(),
        "plain": torch.ones(2),
    }


def save(value, name, **options):
    torch.save(value, name, **options)
    old = name.replace("_zip", "_legacy") if "_zip" in name else name.replace(".pt", "_legacy.pt")
    torch.save(value, old, _use_new_zipfile_serialization=False)


def main():
    net = Net()
    save(net.state_dict(), "sd_zip.pt")
    torch.save(net.state_dict(), "sd_protocol4.pt", pickle_protocol=4)
    torch.save(net.state_dict(), "sd_protocol5_legacy.pt", pickle_protocol=5, _use_new_zipfile_serialization=False)
    save(net, "whole_zip.pt")
    save(dtypes(), "dtypes.pt")
    save(quantized(), "quantized.pt")
    torch.jit.script(Odd()).save("odd_module.pt")
    optimizer = torch.optim.Adam(net.parameters()).state_dict()
    args = argparse.Namespace(lr=0.1)
    torch.save({"state_dict": net.state_dict(), "epoch": 3, "args": args, "optimizer": optimizer}, "ckpt.pt")
    torch.save(torch.arange(5), "tensor.pt")
    torch.export.save(torch.export.export(Small(), (torch.randn(2, 4),)), "exported.pt2")
    torch.jit.script(Small())._save_for_lite_interpreter("mobile.ptl")
    torch.jit.script(Devices()).save("dev.pt")
    with PackageExporter("pkg.pt") as exporter:
        exporter.save_pickle("m", "m.pkl", {"a": 1})


if __name__ == "__main__":
    sys.exit(main() if Path.cwd() == Path(__file__).parent else "run it in its own folder")
