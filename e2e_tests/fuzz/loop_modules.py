"""Modules and functions that the lines of training loops use: layers, ways to save and
replace values, and the final state of a model and its optimizer."""

from __future__ import annotations

import contextlib
import copy
import io
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint


class First(nn.Module):
    """Returns the first result of a recurrent layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


class Attend(nn.Module):
    """Self-attention over sequences of shape (batch, length, features)."""

    def __init__(self, features: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.project = nn.Linear(features, 3 * features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        seen = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=self.causal
        )  # fmt: skip
        return seen.transpose(1, 2).flatten(2)


class Counting(nn.Module):
    """Writes buffers in forward: in place, by index, and by assigning a new tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("means", torch.zeros(3))
        self.register_buffer("last", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            with torch.no_grad():
                self.calls += 1
                self.means = self.means.roll(1)
                self.means[0] = x.mean()
                self.last.copy_(x.detach().amax())
        return x * (1 + 0.01 * self.means.mean())


class Residual(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for layer in self.layers:
            y = layer(y)
        return x + y


class Mean(nn.Module):
    """Averages (batch, length, features) over the length."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


class Heads(nn.Module):
    """Self-attention by torch's module. Returns its output, multiplied by the mean of
    the attention weights unless `part` is 0."""

    def __init__(self, attention: nn.Module, part: int = 0) -> None:
        super().__init__()
        self.attention, self.part = attention, part

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        results = self.attention(x, x, x)
        seen = results[0]
        return seen if self.part == 0 else seen * results[1].mean()


class Cells(nn.Module):
    """Runs a recurrent cell over a sequence, from the cell's default state."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, results = None, []
        for step in x.unbind(1):
            state = self.cell(step, state)
            results.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(results, 1)


class OverTime(nn.Module):
    """Runs a layer on a sequence, with the features as channels."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.transpose(1, 2)).transpose(1, 2)


class Softmax(nn.Module):
    """Attention without weights: softmax over time, with the future masked in place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = x @ x.transpose(1, 2)
        later = torch.ones_like(scores[0]).triu(1).bool()
        scores.masked_fill_(later, -torch.inf)
        return scores.softmax(-1) @ x


class Spectrum(nn.Module):
    """A filter that writes a part of the spectrum in place."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(x, dim=1)
        spectrum[:, 1:].mul_(self.weight.mean())
        spectrum.real[:, 0] *= 0.5
        return torch.fft.irfft(spectrum, n=x.shape[1], dim=1)


class Twice(nn.Module):
    """Runs a layer that has two operands on `x` and a scaled copy of it."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x, x.detach() * 0.5)


class Taken(nn.Module):
    """Reverses the order of the features, scales one of them, and adds a tenth of one
    element."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("order", torch.arange(features).flip(0))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = x.take(self.order[-1])
        y = x.index_select(1, self.order).clone()
        y[:, 0] *= self.scale
        return y + 0.1 * first


def replace_data(parameter: torch.Tensor, factor: float) -> None:
    """Assigns a new tensor to `.data`, as scripts that load checkpoints by hand do."""
    parameter.data = parameter.detach().clone() * factor


def through_vector(model: nn.Module, factor: float) -> None:
    """Scales all parameters, as one vector."""
    vector = nn.utils.parameters_to_vector(model.parameters()).detach() * factor
    nn.utils.vector_to_parameters(vector, model.parameters())


def drawn_again(work: Callable[[], Any]) -> Any:
    """Runs `work`, then resets the random generator to its state before the call."""
    state = torch.get_rng_state()
    result = work()
    torch.set_rng_state(state)
    return result


def through_file(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


def in_thread(work: Callable[[], Any]) -> Any:
    """Calls `work` in a new thread; returns its result or raises its error."""
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["value"] = work()
        except Exception as error:
            outcome["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


def follow(average: nn.Module, model: nn.Module, share: float) -> None:
    with torch.no_grad():
        for kept, new in zip(average.parameters(), model.parameters()):
            kept.lerp_(new, share)
        for kept, new in zip(average.buffers(), model.buffers()):
            kept.copy_(new)


def evaluate(model: nn.Module, x: torch.Tensor, inference: bool) -> torch.Tensor:
    was_training = model.training
    model.eval()
    with torch.inference_mode() if inference else torch.no_grad():
        result = model(x)
    model.train(was_training)
    return result


def scaled_call(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    state = {name: p.detach() * 0.9 for name, p in model.named_parameters()}
    torch.manual_seed(5)
    return torch.func.functional_call(model, state, (x,)).detach()


def penalize(model: nn.Module, x: torch.Tensor) -> None:
    """Adds the gradients of a gradient penalty (the sum of the squared gradients) to
    `.grad`, unless an op has no second derivative."""
    weights = [p for p in model.parameters() if p.requires_grad]
    # Eager has no second derivative of its attention kernel (torch 2.13).
    with sdpa_kernel(SDPBackend.MATH):
        result = model(x).square().mean()
    if not result.requires_grad:
        return
    with contextlib.suppress(RuntimeError):
        first = torch.autograd.grad(
            result, weights, create_graph=True, allow_unused=True
        )
        norms = [g.square().sum() for g in first if g is not None and g.requires_grad]
        if norms:
            (0.01 * torch.stack(norms).sum()).backward()


def checkpointed(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    result = checkpoint(model, x, use_reentrant=False).square().mean()
    if result.requires_grad:
        result.backward()
    return result.detach()


def with_packed_saves(model: nn.Module, x: torch.Tensor) -> None:
    """Keeps autograd's saved tensors on the CPU until the backward pass."""
    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(lambda t: (t.device, t.cpu()), lambda kept: kept[1].to(kept[0])):
        result = model(x).square().mean()
    if result.requires_grad:
        result.backward()


def second_derivative(weight: torch.Tensor) -> torch.Tensor:
    w = weight.detach().clone().requires_grad_()
    (first,) = torch.autograd.grad((w.sigmoid() * w).sum(), w, create_graph=True)
    return torch.autograd.grad(first.square().sum(), w)[0]


def forward_derivative(weight: torch.Tensor) -> torch.Tensor:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(weight.detach(), torch.ones_like(weight))
        return forward_ad.unpack_dual((dual * dual).tanh().cumsum(0)).tangent


def state_of(*objects: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields parameters, their gradients, buffers, and optimizer states, with names."""
    for each in objects:
        if isinstance(each, nn.Module):
            yield from each.state_dict().items()
            for name, parameter in each.named_parameters():
                if parameter.grad is not None:
                    yield name + ".grad", parameter.grad
        else:
            for number, state in each.state_dict()["state"].items():
                for name, value in state.items():
                    if isinstance(value, torch.Tensor):
                        yield f"{number}.{name}", value


def loop_scope(seen: list[tuple[str, torch.Tensor]]) -> dict[str, Any]:
    def report(*objects: Any) -> None:
        seen.extend((n, t.detach().cpu().clone()) for n, t in state_of(*objects))

    own = (
        First, Attend, Counting, Residual, Mean, through_file, in_thread, follow, scaled_call, penalize,
        checkpointed, with_packed_saves, second_derivative, forward_derivative, Heads, Cells, OverTime,
        Softmax, Spectrum, Twice, Taken, replace_data, through_vector, drawn_again,
    )  # fmt: skip
    return {
        "nn": nn, "F": F, "copy": copy, "optim": torch.optim, "report": report,
        "evaluate": evaluate, **{each.__name__: each for each in own},
    }  # fmt: skip
