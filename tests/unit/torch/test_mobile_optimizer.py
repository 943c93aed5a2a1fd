"""`torch.utils.mobile_optimizer`: the passes and their options; results stay what they were, in every mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.torch as torch
from engine.lang.errors import NotSupportedError
from engine.torch import nn
from engine.torch.jit.scripting.mobile_optimizing import (
    LintCode,
    MobileOptimizerType,
    generate_mobile_module_lints,
    optimize_for_mobile,
)

F = nn.functional


class Every(nn.Module):
    """Each kind of layer, with each activation that a layer may take in, and some that it may not."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4)
        self.depth, self.up = nn.Conv2d(4, 8, 3, groups=4, dilation=2), nn.ConvTranspose2d(8, 4, 3, 2, 1, 1, groups=2)
        self.line, self.lines, self.norm = nn.Conv1d(4, 2, 3, padding=1), nn.Conv1d(2, 2, 1), nn.BatchNorm1d(2)
        self.drop, self.fc, self.out = nn.Dropout(0.4), nn.Linear(2, 3), nn.Linear(3, 2, bias=False)

    def forward(self, x: torch.Tensor):
        y = torch.relu_(self.bn(self.conv(x)))
        z = F.hardtanh(self.depth(y), -0.25, 0.5)
        u = self.up(z)
        both = F.relu(u) + u
        line = F.relu6(self.norm(self.lines(F.relu(self.line(both.flatten(2))))))
        w = self.drop(F.relu(self.fc(line.mean(2))))
        return self.out(w).clamp(min=0.0), torch.relu(both + u), w.clamp(-0.1, 0.1)

    @torch.jit.export
    def head(self, x: torch.Tensor):
        return self.out(torch.relu(self.fc(x)))


def made() -> tuple[Any, Any]:
    torch.manual_seed(5)
    module = Every()
    x = torch.sin(torch.arange(2 * 3 * 10 * 9.0)).reshape(2, 3, 10, 9)
    module(x)  # so that the norms have seen something
    return module.eval(), x


def programs() -> dict[str, Any]:
    module, x = made()
    return {"scripted": torch.jit.script(module), "traced": torch.jit.trace(module, x)}


def compared(results: Any, wanted: Any) -> None:
    for found, expected in zip(results, wanted, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)


PARTS = [part for part in MobileOptimizerType if part is not MobileOptimizerType.VULKAN_AUTOMATIC_GPU_TRANSFER]


@pytest.mark.parametrize("kind", ["scripted", "traced"])
def test_results_stay_what_they_were(kind: str, mode: str, tmp_path: Path) -> None:
    program, (_, x) = programs()[kind], made()
    wanted = program(x)
    for left_out in [set(), *({part} for part in PARTS), set(PARTS)]:
        optimized = optimize_for_mobile(program, left_out)
        for _ in range(3):
            compared(optimized(x), wanted)
        assert optimized.mobile_optimized is True
        optimized._save_for_lite_interpreter(tmp_path / "m.ptl")
        compared(engine.load(tmp_path / "m.ptl")(x), wanted)
    compared(program(x), wanted)
    assert "prepacked" not in str(program.inlined_graph)


COUNTS = {
    None: {"prepacked::conv2d_clamp_run": 4, "prepacked::linear_clamp_run": 2,
           "prepacked::conv2d_transpose_clamp_run": 1, "aten::batch_norm": 0, "aten::conv1d": 0, "aten::dropout": 0,
           "aten::_add_relu": 1, "aten::hardtanh": 0, "aten::relu_": 0},
    "CONV_BN_FUSION": {"aten::batch_norm": 2},
    "INSERT_FOLD_PREPACK_OPS": {"aten::conv2d": 4, "aten::linear": 2, "aten::conv_transpose2d": 1, "aten::relu_": 1},
    "REMOVE_DROPOUT": {"aten::dropout": 1},
    "FUSE_ADD_RELU": {"aten::_add_relu": 0},
    "CONV_1D_TO_2D": {"aten::conv1d": 2, "prepacked::conv2d_clamp_run": 2},
}  # fmt: skip


@pytest.mark.parametrize("left_out", COUNTS)
def test_each_part_does_its_work_unless_it_is_left_out(left_out: str | None) -> None:
    parts = [] if left_out is None else [MobileOptimizerType[left_out]]
    graph = optimize_for_mobile(programs()["scripted"], parts).graph
    kinds = [node.kind() for node in graph.nodes()]
    assert {kind: kinds.count(kind) for kind in COUNTS[left_out]} == COUNTS[left_out]
    assert not any(kind.endswith("_prepack") for kind in kinds)


def test_a_clamp_whose_input_is_used_otherwise_stays() -> None:
    graph = optimize_for_mobile(programs()["scripted"]).graph
    (up,) = (n for n in graph.nodes() if n.kind() == "prepacked::conv2d_transpose_clamp_run")
    assert sorted(use.user.kind() for use in up.output().uses()) == ["aten::_add_relu", "aten::add", "aten::relu"]


def test_methods_that_are_preserved_are_optimized() -> None:
    program = programs()["scripted"]
    optimized = optimize_for_mobile(program, preserved_methods=["head"])
    x = torch.ones(2, 2)
    compared([optimized.head(x)], [program.head(x)])
    assert str(optimized.head.graph).count("prepacked::linear_clamp_run") == 2
    assert not hasattr(optimize_for_mobile(program), "head")


def test_a_module_in_training_mode_is_optimized_as_in_eval_mode() -> None:
    module, x = made()
    program = torch.jit.script(module)
    wanted = program(x)
    program.train()
    compared(optimize_for_mobile(program)(x), wanted)
    assert program.training


class Other(nn.Module):
    """Layers that have no prepacked form: of float64, of another number of dimensions, with a weight that is given."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.deep = nn.Linear(2, 2).double(), nn.Conv3d(1, 1, 2)
        self.same = nn.Conv2d(1, 1, 3, padding="same")

    def forward(self, x: torch.Tensor, weight: torch.Tensor):
        volume = self.deep(x[None, None, None].expand(1, 1, 2, 2, 2))
        return self.wide(x.double()), volume, self.same(x[None, None]), F.linear(x, weight)


def test_layers_without_a_prepacked_form_stay() -> None:
    program, x = torch.jit.script(Other().eval()), torch.ones(2, 2)
    optimized = optimize_for_mobile(program)
    compared(optimized(x, x), program(x, x))
    assert "prepacked" not in str(optimized.graph)


def test_what_is_refused() -> None:
    program = programs()["scripted"]
    with pytest.raises(TypeError, match="ScriptModule is expected"):
        optimize_for_mobile(nn.Linear(1, 1))
    with pytest.raises(AttributeError, match="do not exist in script_module: nope"):
        optimize_for_mobile(program, preserved_methods=["nope"])
    with pytest.raises(TypeError, match="Unknown backend"):
        optimize_for_mobile(program, backend="abacus")
    for backend in ("vulkan", "Metal"):
        with pytest.raises(NotSupportedError, match=backend):
            optimize_for_mobile(program, backend=backend)


def test_advice() -> None:
    program = programs()["scripted"]
    found = {each["name"] for each in generate_mobile_module_lints(program)}
    assert found == {code.name for code in LintCode}
    assert {each["name"] for each in generate_mobile_module_lints(optimize_for_mobile(program))} == {"BUNDLED_INPUT"}
