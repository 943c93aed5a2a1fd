"""What packages ask of PyTorch when they are imported and installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import engine.torch as torch
from engine.lang.errors import NotSupportedError
from engine.torch import hub, nn

_ASKING = """
import importlib.metadata
import engine
with engine.as_torch():
    print(importlib.metadata.version("torch"))
    import torch
    print(torch.torch is torch)
try:
    importlib.metadata.version("torch")
except importlib.metadata.PackageNotFoundError:
    print("gone")
"""


def test_the_facade_is_an_installed_package_as_long_as_it_is_torch() -> None:
    run = subprocess.run([sys.executable, "-c", _ASKING], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [str(torch.__version__), "True", "gone"]


def test_fans_have_the_names_that_packages_know() -> None:
    assert nn.init._calculate_fan_in_and_fan_out(torch.ones(2, 3, 4)) == (12, 8)
    assert nn.init._calculate_correct_fan(torch.ones(2, 3), "FAN_OUT") == 2
    with pytest.raises(ValueError, match="Mode both not supported"):
        nn.init._calculate_correct_fan(torch.ones(2, 3), "both")


def test_libraries_in_cpp_are_refused_as_missing_files_are() -> None:
    with pytest.raises(OSError, match="operators in C"):
        torch.ops.load_library("_C.so")


def test_nothing_is_fetched_and_the_folder_for_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", "/somewhere")
    assert hub._get_torch_home() == "/somewhere"
    with pytest.raises(NotSupportedError, match="fetched"):
        hub.load_state_dict_from_url("https://example.org/x.pth")
    assert torch._C._log_api_usage_once("x") is None
