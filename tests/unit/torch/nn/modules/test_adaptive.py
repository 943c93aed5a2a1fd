"""The adaptive softmax agrees with a whole one, and fractional pooling with what its numbers mean."""

from __future__ import annotations

import pytest

import engine.torch as torch

nn, F = torch.nn, torch.nn.functional


def test_all_classes_are_as_likely_as_the_targets_say() -> None:
    torch.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0)
    x, targets = torch.randn(20, 8, requires_grad=True), torch.arange(20)
    output, loss = layer(x, targets)
    whole = layer.log_prob(x)
    assert torch.allclose(whole.exp().sum(1), torch.ones(20), atol=1e-5)
    assert torch.allclose(output, whole.gather(1, targets[:, None]).squeeze(1), atol=1e-5)
    assert loss.item() == pytest.approx(-output.mean().item())
    assert torch.equal(layer.predict(x), whole.argmax(1))
    loss.backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())
    alone = layer(x[3], targets[3])
    assert alone.output.item() == pytest.approx(output[3].item(), abs=1e-5)


def test_what_does_not_fit_an_adaptive_softmax() -> None:
    with pytest.raises(ValueError, match="increasing positive integers"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, [10, 4])
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4])
    with pytest.raises(RuntimeError, match=r"\[0, 19\]"):
        layer(torch.ones(1, 8), torch.tensor([20]))


def test_fractional_windows() -> None:
    x = torch.arange(25.0).reshape(1, 1, 5, 5).requires_grad_()
    at_start = torch.zeros(1, 1, 2)
    result, places = nn.FractionalMaxPool2d(2, output_size=3, return_indices=True, _random_samples=at_start)(x)
    assert result.tolist() == [[[[6.0, 7.0, 9.0], [11.0, 12.0, 14.0], [21.0, 22.0, 24.0]]]]
    assert places.flatten().tolist() == [int(v) for v in result.flatten().tolist()]
    result.sum().backward()
    assert int(x.grad.sum()) == 9
    assert nn.FractionalMaxPool3d(2, output_ratio=0.5)(torch.rand(2, 6, 7, 8)).shape == (2, 3, 3, 4)
    with pytest.raises(ValueError, match="either an output_size or an output_ratio"):
        nn.FractionalMaxPool2d(2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.FractionalMaxPool2d(2, output_ratio=1.5)


def test_lengths_of_ctc_may_be_tuples() -> None:
    torch.manual_seed(0)
    likely, targets = torch.randn(6, 2, 4).log_softmax(2), torch.tensor([[1, 2], [3, 1]])
    wanted = F.ctc_loss(likely, targets, torch.tensor([6, 5]), torch.tensor([2, 1]))
    assert F.ctc_loss(likely, targets, (6, 5), (2, 1)).item() == wanted.item()
    assert F.ctc_loss(likely, targets, input_lengths=[6, 5], target_lengths=[2, 1]).item() == wanted.item()
    assert nn.CTCLoss()(likely, targets, (6, 5), (2, 1)).item() == wanted.item()
