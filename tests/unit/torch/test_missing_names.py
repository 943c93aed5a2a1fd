"""Modules of the façade name the nearest name when they lack one."""

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("module", "name", "nearest"),
    [
        ("engine", "sofmax", "softmax"), ("engine.torch", "sofmax", "softmax"), ("engine.torch.nn", "Linaer", "Linear"),
        ("engine.torch.nn.init", "xaveir_uniform_", "xavier_uniform_"),
        ("engine.torch.nn.utils", "clip_grad_nrom_", "clip_grad_norm_"),
        ("engine.torch.nn.utils", "weigth_norm", "weight_norm"), ("engine.torch.optim", "Adma", "Adam"),
        ("engine.torch.optim.lr_scheduler", "StpLR", "StepLR"), ("engine.torch.utils.data", "DataLoder", "DataLoader"),
        ("engine.torch.jit", "lod", "load"), ("engine.torch.cuda", "is_availble", "is_available"),
    ],
)  # fmt: skip
def test_the_nearest_name_is_told(module: str, name: str, nearest: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(import_module(module), name)
    assert str(caught.value) == f"module '{module}' has no attribute '{name}'; did you mean '{nearest}'?"


def test_what_python_itself_asks_for_is_refused_without_a_guess() -> None:
    with pytest.raises(AttributeError) as caught:
        import_module("engine.torch.nn").__wraped__  # noqa: B018
    assert str(caught.value) == "module 'engine.torch.nn' has no attribute '__wraped__'"
