"""Recorded calls of an archive (`NAME.json` beside `NAME.pt`): their values as PyTorch's, and compared by PyTorch.

In: a file with `calls`, each with `method`, `args` and `result` (or `error`), in tagged JSON: `{"tensor": {"dtype",
"shape", "data" (base64), "strides", "requires_grad"}}`, `{"list": ...}`, `{"tuple": ...}`, `{"dict": pairs}`,
`{"complex": [re, im]}`, `{"dtype": name}`, `{"device": name}`; anything else stands for itself.
Out: `differences`, what a module gives that was not recorded.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

TOLERANCES = {
    torch.float16: (1e-2, 1e-2), torch.bfloat16: (1e-2, 1e-2), torch.float32: (1e-4, 1e-5), torch.float64: (1e-7, 1e-7),
    torch.complex64: (1e-4, 1e-5), torch.complex128: (1e-7, 1e-7),
}  # fmt: skip
"""(relative, absolute); tensors of other dtypes are compared exactly."""
SCALARS = (1e-5, 1e-6)


def decoded(value: Any) -> Any:
    """The value that PyTorch would have."""
    if not isinstance(value, dict):
        return value
    ((tag, body),) = value.items()
    return _TAGS[tag](body)


def _tensor(body: dict[str, Any]) -> torch.Tensor:
    dtype, shape = getattr(torch, body["dtype"]), tuple(body["shape"])
    data = bytearray(base64.b64decode(body["data"]))
    tensor = torch.frombuffer(data, dtype=dtype).reshape(shape) if data else torch.empty(shape, dtype=dtype)
    if "strides" in body and data:
        strided = torch.empty_strided(shape, body["strides"], dtype=dtype)
        # An expanded dimension has one row of memory: writing that writes all.
        rows = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in body["strides"])
        strided[rows].copy_(tensor[rows])
        tensor = strided
    return tensor.requires_grad_(body.get("requires_grad", False))


_TAGS = {
    "tensor": _tensor,
    "list": lambda body: [decoded(each) for each in body],
    "tuple": lambda body: tuple(decoded(each) for each in body),
    "dict": lambda body: {decoded(key): decoded(each) for key, each in body},
    "complex": lambda body: complex(*body),
    "dtype": lambda body: getattr(torch, body),
    "device": torch.device,
}


def differences(module: Any, record: Path) -> Iterator[str]:
    """What the module's calls give, made in order, that is not as recorded."""
    case = json.loads(record.read_text())
    for number, call in enumerate(case["calls"]):
        arguments = [decoded(each) for each in call["args"]]
        tolerances = call.get("tol", case.get("tol"))
        where = f"call {number} of {call['method']}"
        try:
            result = getattr(module, call["method"])(*arguments)
        except Exception as error:
            expected = call.get("error", {}).get("match", call.get("may_raise"))
            if expected is None or expected not in str(error):
                yield f"{where}: {error}"
            continue
        if "error" in call:
            yield f"{where}: no error '{call['error']['match']}'"
            continue
        only_form = call.get("compare") == "type"
        yield from _unequal(decoded(call["result"]), result, where, tolerances, only_form)
        for index, after in call.get("mutates", {}).items():
            yield from _unequal(
                decoded(after), arguments[int(index)], f"{where}, argument {index}", tolerances, only_form
            )


def _unequal(expected: Any, found: Any, where: str, tolerances: Any, only_form: bool) -> Iterator[str]:
    if isinstance(expected, (list, tuple, dict)):
        kind = next(each for each in (list, tuple, dict) if isinstance(expected, each))
        keys = list(expected) if kind is dict else range(len(expected))
        if not isinstance(found, kind) or (list(found) != keys if kind is dict else len(found) != len(expected)):
            yield f"{where}: {found!r} for {expected!r}"
            return
        for key in keys:
            yield from _unequal(expected[key], found[key], f"{where}[{key!r}]", tolerances, only_form)
    elif not _alike(expected, found) or not (only_form or _equal(expected, found, tolerances or {})):
        yield f"{where}: {found!r} for {expected!r}"


def _alike(expected: Any, found: Any) -> bool:
    if isinstance(expected, torch.Tensor) and isinstance(found, torch.Tensor):
        return (expected.dtype, expected.shape) == (found.dtype, found.shape)
    return type(expected) is type(found)


def _equal(expected: Any, found: Any, tolerances: dict[str, float]) -> bool:
    is_tensor = isinstance(expected, torch.Tensor)
    if not is_tensor and not isinstance(expected, (float, complex)):
        return bool(expected == found)
    known = TOLERANCES.get(expected.dtype) if is_tensor else SCALARS
    if known is None:
        return torch.equal(expected, found)
    one, other = (each.detach() if is_tensor else torch.tensor(each) for each in (expected, found))
    relative, absolute = tolerances.get("rtol", known[0]), tolerances.get("atol", known[1])
    return torch.allclose(other, one, rtol=relative, atol=absolute, equal_nan=True)
