"""Reinforcement learning in a small environment."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.nn import functional as F


class _Pole:
    """A pole on a cart: its state is four numbers, and there are two actions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def reset(self) -> list[float]:
        self.state = [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        self.time = 0
        return self.state

    def step(self, action: int) -> tuple[list[float], float, bool]:
        x, v, angle, spin = self.state
        force = 10.0 if action else -10.0
        self.state = [
            x + 0.02 * v,
            v + 0.02 * (force - 0.5 * angle),
            angle + 0.02 * spin,
            spin + 0.02 * (9.8 * angle - 0.9 * force),
        ]
        self.time += 1
        done = abs(self.state[2]) > 0.2 or abs(self.state[0]) > 2.4 or self.time >= 100
        return self.state, 1.0, done


def _policy(outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, outputs))


def policy_gradient(device: str) -> Iterator[float]:
    """REINFORCE: an action is sampled at each step of an episode."""
    torch.manual_seed(0)
    pole, policy = _Pole(0), _policy(2).to(device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for _ in range(40):
        state, done, logs, rewards = pole.reset(), False, [], []
        while not done:
            probabilities = F.softmax(policy(torch.tensor([state]).to(device)), dim=1)
            chosen = Categorical(probabilities)
            action = chosen.sample()
            logs.append(chosen.log_prob(action))
            state, reward, done = pole.step(action.item())
            rewards.append(reward)
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + 0.99 * total
            returns.insert(0, total)
        values = torch.tensor(returns)
        values = ((values - values.mean()) / (values.std() + 1e-6)).to(device)
        loss = torch.stack([-a * b for a, b in zip(logs, values)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def deep_q_learning(device: str) -> Iterator[float]:
    """Q-learning with a replay memory on the host; each greedy action is read."""
    torch.manual_seed(0)
    chooser, pole = random.Random(3), _Pole(1)
    network, target = _policy(2).to(device), _policy(2).to(device)
    target.load_state_dict(network.state_dict())
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, amsgrad=True)
    memory: deque = deque(maxlen=2000)
    state = pole.reset()
    for step in range(500):
        if chooser.random() < max(0.1, 0.9 - step / 200):
            action = chooser.randrange(2)
        else:
            with torch.no_grad():
                action = network(torch.tensor([state]).to(device)).argmax(1).item()
        following, reward, done = pole.step(action)
        memory.append((state, action, reward, following, done))
        state = pole.reset() if done else following
        if len(memory) < 64:
            continue
        rows = chooser.sample(list(memory), 64)
        states, actions, rewards, followings, ends = (
            torch.tensor(column).to(device) for column in zip(*rows)
        )
        q = network(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = target(followings).max(1).values * (~ends)
        loss = F.smooth_l1_loss(q, rewards + 0.99 * best)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(network.parameters(), 100)
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(target.parameters(), network.parameters()):
                old.mul_(0.995).add_(new, alpha=0.005)
        yield loss.item()


def proximal_policy(device: str) -> Iterator[float]:
    """PPO whose rollout buffer is on the device and is written row by row."""
    torch.manual_seed(0)
    poles = [_Pole(seed) for seed in range(4)]
    states = torch.tensor([pole.reset() for pole in poles])
    actor, critic = _policy(2).to(device), _policy(1).to(device)
    both = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(both, lr=2.5e-3, eps=1e-5)
    steps, count = 32, len(poles)

    def empty(*sizes: int) -> Tensor:
        return torch.zeros(steps, count, *sizes, device=device)

    for _ in range(6):
        seen, logs, values, rewards = empty(4), empty(), empty(), empty()
        actions = torch.zeros(steps, count, dtype=torch.long, device=device)
        for i in range(steps):
            with torch.no_grad():
                now = states.to(device)
                seen[i] = now
                chosen = Categorical(logits=actor(now))
                action = chosen.sample()
                actions[i], logs[i] = action, chosen.log_prob(action)
                values[i] = critic(now).squeeze(1)
            found = [p.step(a) for p, a in zip(poles, action.tolist())]
            rewards[i] = torch.tensor([reward for _, reward, _ in found]).to(device)
            states = torch.tensor(
                [p.reset() if done else s for p, (s, _, done) in zip(poles, found)]
            )
        returns = rewards.flip(0).cumsum(0).flip(0)
        for _ in range(2):
            order = torch.randperm(steps * count).to(device)
            for begin in range(0, steps * count, 32):
                rows = order[begin : begin + 32]
                chosen = Categorical(logits=actor(seen.view(-1, 4)[rows]))
                ratio = (
                    chosen.log_prob(actions.view(-1)[rows]) - logs.view(-1)[rows]
                ).exp()
                gain = (returns - values).view(-1)[rows]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                surrogate = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
                error = critic(seen.view(-1, 4)[rows]).squeeze(1)
                value_loss = F.mse_loss(error, returns.view(-1)[rows])
                entropy = chosen.entropy().mean()
                loss = -surrogate.mean() + 0.5 * value_loss - 0.01 * entropy
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(both, 0.5)
                optimizer.step()
                yield loss.item()
