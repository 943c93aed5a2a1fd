"""Q-learning: a walker on a line learns to go to its end, from remembered steps and a slowly following network."""

from __future__ import annotations

import random
from collections import deque
from typing import Any, NamedTuple

import engine.torch as torch

nn = torch.nn
PLACES = 5


class Step(NamedTuple):
    place: int
    action: int
    reward: float
    after: int


def main() -> dict[str, Any]:
    torch.manual_seed(17)
    chance = random.Random(17)
    values = nn.Sequential(nn.Linear(PLACES, 16), nn.ReLU(), nn.Linear(16, 2))
    follower = nn.Sequential(nn.Linear(PLACES, 16), nn.ReLU(), nn.Linear(16, 2))
    follower.load_state_dict(values.state_dict())
    optimizer = torch.optim.AdamW(values.parameters(), lr=0.02, amsgrad=True)
    memory: deque[Step] = deque(maxlen=60)
    seen, place, losses = torch.eye(PLACES), 0, []
    for step in range(60):
        with torch.no_grad():
            best = values(seen[place].unsqueeze(0)).max(1).indices.item()
        action = chance.randrange(2) if chance.random() < 0.5 or step < 20 else int(best)
        after = min(PLACES - 1, place + 1) if action else max(0, place - 1)
        memory.append(Step(place, action, float(after == PLACES - 1), after))
        place = 0 if after == PLACES - 1 else after
        if len(memory) < 16:
            continue
        batch = Step(*(list(column) for column in zip(*chance.sample(memory, 16), strict=True)))  # type: ignore[arg-type]
        actions, rewards = torch.tensor(batch.action).view(-1, 1), torch.tensor(batch.reward)
        expected = values(seen[batch.place]).gather(1, actions).squeeze(1)
        with torch.no_grad():
            goes_on = torch.tensor(batch.after) != PLACES - 1
            wanted = rewards + 0.9 * goes_on * follower(seen[batch.after]).amax(1)
        loss = nn.SmoothL1Loss()(expected, wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(values.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(follower.parameters(), values.parameters(), strict=True):
                slow.mul_(0.9).add_(fast, alpha=0.1)
        losses.append(loss.item())
    choices = torch.distributions.Categorical(logits=values(seen))
    return {
        "losses": losses[:1] + losses[-5:],
        "actions": choices.probs.argmax(1).tolist(),
        "first": choices.logits.tolist(),
    }
