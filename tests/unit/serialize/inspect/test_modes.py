"""What `check` says of modes, chance, constants and broken numbers; the card of a program."""

import numpy as np
import pytest

import engine.torch as torch
from engine.serialize.inspect.card import card_of
from engine.serialize.inspect.check import NOTE, SUSPICIOUS, check_archive
from engine.serialize.inspect.compare import compare
from engine.serialize.inspect.modes import mode_of
from engine.serialize.inspect.survey import survey

nn = torch.nn


class Net(nn.Module):
    def __init__(self, rate=0.5):
        super().__init__()
        self.fc, self.drop, self.norm = nn.Linear(2, 2), nn.Dropout(rate), nn.BatchNorm1d(2)

    def forward(self, x):
        return self.norm(self.drop(self.fc(x)))


class Always(nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, True)


class Noisy(nn.Module):
    def forward(self, x):
        if self.training:
            x = x + torch.rand_like(x)
        return x


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.lstm = nn.TransformerEncoderLayer(4, 2, 8), nn.LSTM(4, 4, 2, dropout=0.3)

    def forward(self, x):
        return self.lstm(self.layer(x))[0]


def found(tmp_path, module):
    path = tmp_path / "m.pt"
    torch.jit.script(module).save(path)
    result = check_archive(path)
    return result.mode, {finding.text: finding for finding in result.findings}


RANDOM = "results may differ from run to run (random operators)"


@pytest.mark.parametrize("module", [Net(), Noisy(), Attention()], ids=lambda m: type(m).__name__)
def test_in_eval_mode_nothing_is_random(tmp_path, module):
    mode, texts = found(tmp_path, module.eval())
    assert mode == "eval"
    assert RANDOM not in texts and not any("dropout" in text for text in texts)


def test_training_mode_is_told_with_what_it_does(tmp_path):
    mode, texts = found(tmp_path, Net().train())
    told = texts["training mode: dropout is active, batch norm changes its statistics"]
    assert (mode, told.level) == ("training", SUSPICIOUS)
    assert RANDOM in texts
    assert "training mode: dropout is active" in found(tmp_path, Attention().train())[1]
    assert RANDOM in found(tmp_path, Noisy().train())[1]
    assert "training mode: batch norm changes its statistics" in found(tmp_path, Net(0.0).train())[1]


def test_dropout_that_is_always_on_is_told_in_eval_mode(tmp_path):
    _, texts = found(tmp_path, Always().eval())
    assert texts["trains in eval mode: dropout is active"].level == NOTE and RANDOM in texts


def test_broken_weights_are_suspicious_and_masks_are_not(tmp_path):
    module = Net().eval()
    module.fc.bias.data[0] = float("inf")
    assert found(tmp_path, module)[1]["weights that hold infinity"].level == NOTE
    module.fc.bias.data[1] = float("nan")
    assert found(tmp_path, module)[1]["weights that hold NaN"].where == ("fc.bias",)
    assert check_archive(tmp_path / "m.pt").is_suspicious


def test_constants_of_frozen_programs_are_weights(tmp_path):
    module = Net().eval()
    module.fc.weight.data[0, 0] = float("nan")
    torch.jit.freeze(torch.jit.script(module)).save(tmp_path / "m.pt")
    kinds = [kind for _, kind, _ in survey(tmp_path / "m.pt").tensors()]
    assert "constant" in kinds
    assert check_archive(tmp_path / "m.pt").is_suspicious


@pytest.mark.parametrize(("before", "after", "expected"), [
    ([1.0, 2.0], [np.nan, 2.0], np.nan), ([1.0, np.nan], [1.5, np.nan], 0.5), ([np.inf, 1.0], [np.inf, 2.0], 1.0),
    ([1.0, 1.0], [-np.inf, 1.0], np.inf),
])  # fmt: skip
def test_distances_of_numbers_that_are_none(tmp_path, before, after, expected):
    np.savez(tmp_path / "a.npz", b=np.array(before))
    np.savez(tmp_path / "b.npz", b=np.array(after))
    (change,) = compare(tmp_path / "a.npz", tmp_path / "b.npz").weights
    np.testing.assert_equal(change.most, expected)


def test_distances_of_large_integers_are_exact(tmp_path):
    np.savez(tmp_path / "a.npz", b=np.array([2**62, -(2**63)]))
    np.savez(tmp_path / "b.npz", b=np.array([2**62 + 1, -(2**63)]))
    (change,) = compare(tmp_path / "a.npz", tmp_path / "b.npz").weights
    assert change.most == 1.0


def test_the_card_of_a_program(tmp_path):
    torch.jit.script(Net().eval()).save(tmp_path / "m.pt")
    card = card_of(tmp_path / "m.pt")
    facts = dict(card.facts)
    assert facts["forward"] == "(x: Tensor) -> Tensor" and card.arguments == ("x: Tensor",)
    assert facts["made by"].startswith("torch.jit.script of ") and facts["made by"].endswith("Net")
    assert (facts["device"], facts["mode"]) == ("cpu", "eval")
    torch.jit.trace(Net().train(), torch.ones(3, 2), check_trace=False).save(tmp_path / "t.pt")
    facts = dict(card_of(tmp_path / "t.pt").facts)
    assert facts["made by"].startswith("torch.jit.trace") and facts["mode"] == "training"


def test_functions_have_no_mode(tmp_path):
    path = tmp_path / "f.pt"
    torch.jit.save(torch.jit.script(free), path)
    facts = dict(card_of(path).facts)
    assert facts["made by"] == "torch.jit.script of a function" and "mode" not in facts
    assert mode_of(survey(path)) == ""


def free(x: torch.Tensor) -> torch.Tensor:
    return x + 1
