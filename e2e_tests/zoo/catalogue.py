"""Models by name, with batches, losses and optimizers, and the function that trains them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from training.running import Outcome
from zoo import language, vision

Batch = dict[str, torch.Tensor]
Optimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]

LENGTH = 12


@dataclass(frozen=True)
class Entry:
    build: Callable[[], nn.Module]
    batch: Callable[[torch.Generator], Batch]
    loss: Callable[[nn.Module, Batch], torch.Tensor]
    optimizer: Optimizer
    #: The number of values that the model itself reads in each step.
    syncs: int = 0
    #: Seed of the weights: with a different seed, an activation may be so close to 0 that
    #: the last bit of a sum determines its gradient.
    seed: int = 3


def _sgd(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.005, momentum=0.9, weight_decay=1e-4)


def _adamw(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    # The gradient of the bias of attention's keys is rounding noise, because softmax
    # ignores a shift. This eps prevents Adam from scaling the noise up to full-size steps.
    return torch.optim.AdamW(parameters, lr=2e-3, eps=1e-5)


def _images(side: int) -> Callable[[torch.Generator], Batch]:
    return lambda generator: {
        "images": torch.randn(4, 3, side, side, generator=generator),
        "classes": torch.randint(10, (4,), generator=generator),
    }


def _pixels(generator: torch.Generator) -> Batch:
    return {
        "images": torch.randn(2, 3, 16, 16, generator=generator),
        "classes": torch.randint(3, (2, 16, 16), generator=generator),
    }


def _classify(model: nn.Module, batch: Batch) -> torch.Tensor:
    answer = model(batch["images"])
    return F.cross_entropy(getattr(answer, "logits", answer), batch["classes"])


def _tokens(generator: torch.Generator) -> torch.Tensor:
    return torch.randint(2, language.VOCABULARY, (4, LENGTH), generator=generator)


def _text(generator: torch.Generator) -> Batch:
    """Returns sequences that are their own targets; the model shifts the targets."""
    tokens = _tokens(generator)
    return {"input_ids": tokens, "labels": tokens}


def _attended_text(generator: torch.Generator) -> Batch:
    """Returns a batch with a mask, which prevents `transformers` from checking whether
    `position_ids` contain several sequences (`find_packed_sequence_indices`)."""
    batch = _text(generator)
    return batch | {"attention_mask": torch.ones_like(batch["input_ids"])}


def _causally_attended_text(generator: torch.Generator) -> Batch:
    """Returns a batch with the complete mask of scaled_dot_product_attention, which
    `transformers` uses without searching it for padding."""
    batch = _text(generator)
    seen = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    return batch | {"attention_mask": seen.expand(4, 1, LENGTH, LENGTH).clone()}


def _padded_text(generator: torch.Generator) -> Batch:
    """Returns a batch with masked characters to predict, and with padding at the sequences'
    ends, to which no position attends."""
    tokens = _tokens(generator)
    lengths = torch.randint(LENGTH // 2, LENGTH, (4, 1), generator=generator)
    attended = torch.arange(LENGTH) < lengths
    guessed = (torch.rand(4, LENGTH, generator=generator) < 0.3) & attended
    guessed[:, 0] = True
    return {
        "input_ids": tokens.masked_fill(guessed, 1).masked_fill(~attended, 0),
        "attention_mask": attended.long(),
        "labels": tokens.masked_fill(~guessed, -100),
    }


def _pairs(generator: torch.Generator) -> Batch:
    return {"input_ids": _tokens(generator), "labels": _tokens(generator)}


def _own_loss(model: nn.Module, batch: Batch) -> torch.Tensor:
    return model(**batch).loss


def _next_character(model: nn.Module, batch: Batch) -> torch.Tensor:
    tokens = batch["input_ids"].t()
    return F.cross_entropy(model(tokens[:-1]).flatten(0, 1), tokens[1:].flatten())


ENTRIES = {
    "resnet18": Entry(vision.resnet18, _images(48), _classify, _sgd),
    "resnet50": Entry(vision.resnet50, _images(48), _classify, _sgd, seed=2),
    "mobilenet": Entry(vision.MobileNet, _images(24), _classify, _sgd),
    "unet": Entry(vision.UNet, _pixels, _classify, _adamw),
    "vit": Entry(language.vit, _images(16), _classify, _adamw),
    # The model reads whether any token is padding (`_ignore_bidirectional_mask_sdpa`).
    "bert": Entry(language.bert, _padded_text, _own_loss, _adamw, syncs=1),
    # The model reads whether there are several sequences (`find_packed_sequence_indices`).
    "gpt2": Entry(language.gpt2, _text, _own_loss, _adamw, syncs=1),
    "opt": Entry(language.opt, _attended_text, _own_loss, _adamw),
    "llama": Entry(language.llama, _causally_attended_text, _own_loss, _adamw),
    "t5": Entry(language.t5, _pairs, _own_loss, _adamw),
    "lstm": Entry(language.LstmLanguageModel, _text, _next_character, _adamw),
}


def train(
    name: str,
    device: str,
    steps: int,
    each_step: Callable[[int], None] = lambda step: None,
    before_backward: Callable[[], None] = lambda: None,
) -> Outcome:
    """Trains a model; weights, data and dropout are equal on every device."""
    entry = ENTRIES[name]
    torch.manual_seed(entry.seed)
    model = entry.build().train().to(device)
    rule = entry.optimizer(list(model.parameters()))
    data = torch.Generator().manual_seed(5)
    batches = [entry.batch(data) for _ in range(steps)]
    outcome = Outcome()
    for step, batch in enumerate(batches):
        batch = {key: value.to(device) for key, value in batch.items()}
        rule.zero_grad()
        loss = entry.loss(model, batch)
        before_backward()
        loss.backward()
        rule.step()
        outcome.losses.append(loss.detach())
        each_step(step)
    outcome.losses = [loss.cpu() for loss in outcome.losses]
    outcome.gradients = {
        key: value.grad.cpu()
        for key, value in model.named_parameters()
        if value.grad is not None
    }
    state = model.state_dict()
    outcome.parameters = {key: value.cpu() for key, value in state.items()}
    return outcome
