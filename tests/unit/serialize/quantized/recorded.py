"""Recorded runs of the quantized models in this folder: reading them, and comparing results with them."""

import io

import numpy as np

import engine
import engine.torch as torch


def recorded(path):
    """The model, arguments and results of an archive."""
    extra = {"io.npz": b""}
    model = engine.load(path, _extra_files=extra)
    arrays = np.load(io.BytesIO(extra["io.npz"]))
    args = [torch.tensor(arrays[name]) for name in arrays if name.startswith("in")]
    return model, args, [arrays[name] for name in arrays if name.startswith("out")]


def flat(value):
    return [each for part in value for each in flat(part)] if isinstance(value, (list, tuple)) else [value]


def compared(results, wanted):
    for found, expected in zip(flat(results), wanted, strict=True):
        if found.is_quantized:
            assert found.int_repr().tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-5, atol=1e-6)
