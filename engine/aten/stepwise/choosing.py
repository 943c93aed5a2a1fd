"""Losses of scores, one for each class, and their gradients.

In: scores as (samples, classes, inner), targets as (samples, inner), flat; how losses are reduced (0 not at all, 1 to
their mean, 2 to their sum); the target that does not count.  Out: written; not 0 where a target is no class.
"""

from __future__ import annotations

from engine.aten.stepwise.language import Buffer, double, like, loop


@loop
def class_losses(
    scores: Buffer, targets: Buffer, result: Buffer, samples: int, classes: int, inner: int, reduction: int,
    ignored: int,
) -> int:  # fmt: skip
    """Minus the score of each target."""
    total, count = double(0.0), 0
    for o in range(samples):
        for j in range(inner):
            target, value = targets[o * inner + j], like(scores, 0.0)
            if target != ignored:
                if target < 0 or target >= classes:
                    return 1
                value = -scores[(o * classes + target) * inner + j]
                count += 1
            if reduction == 0:
                result[o * inner + j] = value
            total += double(value)
    if reduction == 1:
        result[0] = like(result, total / double(count))
    if reduction == 2:
        result[0] = like(result, total)
    return 0


@loop
def class_slopes(
    grad: Buffer, scores: Buffer, targets: Buffer, result: Buffer, samples: int, classes: int, inner: int,
    reduction: int, ignored: int,
) -> int:  # fmt: skip
    """The gradient of scores, for that of each loss, or of what they were reduced to."""
    for i in range(samples * classes * inner):
        result[i] = 0
    count = 0
    for i in range(samples * inner):
        count += 1 if targets[i] != ignored else 0
    for o in range(samples):
        for j in range(inner):
            target = targets[o * inner + j]
            if target != ignored:
                if target < 0 or target >= classes:
                    return 1
                slope = -grad[o * inner + j if reduction == 0 else 0]
                share = slope / like(grad, count) if reduction == 1 else slope
                result[(o * classes + target) * inner + j] = share
    return 0
