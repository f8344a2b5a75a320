"""Text: recurrent networks, encoders and decoders, adapters, tagging."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _text(length: int, symbols: int) -> Tensor:
    """Symbols, three quarters of which follow from the two preceding symbols."""
    generator = torch.Generator().manual_seed(7)
    text = torch.randint(symbols, (length,), generator=generator)
    for i in range(2, length):
        if text[i] % 4:
            text[i] = (3 * text[i - 1] + text[i - 2]) % symbols
    return text


def character_network(device: str) -> Iterator[float]:
    """A GRU that keeps its state from one chunk of text to the next; yields the mean of
    the losses so far."""
    text = _text(6000, 40).to(device)
    embedding = nn.Embedding(40, 32).to(device)
    gru, head = nn.GRU(32, 64).to(device), nn.Linear(64, 40).to(device)
    parameters = [*embedding.parameters(), *gru.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=2e-3)
    columns = text.view(8, -1).t()
    state, total = None, 0.0
    for step in range(100):
        start = (step * 7) % (len(columns) - 26)
        x, y = columns[start : start + 25], columns[start + 1 : start + 26]
        optimizer.zero_grad()
        output, state = gru(embedding(x), state)
        loss = F.cross_entropy(head(output).flatten(0, 1), y.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 5.0)
        optimizer.step()
        state = state.detach()
        total += loss.item()
        yield total / (step + 1)


class _Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(60, 48), nn.Embedding(60, 48)
        self.places = nn.Embedding(32, 48)
        self.transformer = nn.Transformer(48, 4, 2, 2, 96, 0.1, batch_first=True)
        self.head = nn.Linear(48, 60)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        def place(x: Tensor, table: nn.Embedding) -> Tensor:
            return table(x) + self.places(torch.arange(x.shape[1], device=x.device))

        mask = nn.Transformer.generate_square_subsequent_mask(
            target.shape[1], device=target.device
        )
        hidden = self.transformer(
            place(source, self.source),
            place(target, self.target),
            tgt_mask=mask,
            tgt_is_causal=True,
            src_key_padding_mask=source == 0,
        )
        return self.head(hidden)


def translation(device: str) -> Iterator[float]:
    """Encoder and decoder, padding, label smoothing, a warm-up schedule."""
    model = _Translator().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
    warm_up = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1, (s + 1) / 20)
    )
    for _ in range(60):
        source = torch.randint(1, 60, (16, 20))
        source[::3, 14:] = 0
        target = source.flip(1)
        source, target = source.to(device), target.to(device)
        optimizer.zero_grad()
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(
            logits.flatten(0, 1),
            target[:, 1:].flatten(),
            ignore_index=0,
            label_smoothing=0.1,
        )
        loss.backward()
        optimizer.step()
        warm_up.step()
        yield loss.item()


def masked_language_model(device: str) -> Iterator[float]:
    """BERT's task: symbols masked by `torch.where`; gradients accumulate over two
    batches."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, 0.1, "gelu", batch_first=True)
    body = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).to(device)
    embedding, head = nn.Embedding(50, 64).to(device), nn.Linear(64, 50).to(device)
    head.weight = embedding.weight
    parameters = {*embedding.parameters(), *body.parameters(), *head.parameters()}
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01)
    text = _text(8000, 49).view(-1, 32) + 1
    for step in range(80):
        x = text[(step * 8) % 200 : (step * 8) % 200 + 8].to(device)
        hidden = torch.rand(x.shape, device=device) < 0.15
        output = head(body(embedding(torch.where(hidden, 0, x))))
        labels = torch.where(hidden, x, -100)
        loss = F.cross_entropy(output.flatten(0, 1), labels.flatten()) / 2
        loss.backward()
        if step % 2:
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad()
        yield loss.item()


class _Adapted(nn.Module):
    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down = nn.Linear(linear.in_features, rank, bias=False)
        self.up = nn.Linear(rank, linear.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) + 2.0 * self.up(self.down(x))


def low_rank_adaptation(device: str) -> Iterator[float]:
    """Frozen layers with adapters, batches of three lengths."""
    embedding = nn.Embedding(50, 64).requires_grad_(False)
    layers = [_Adapted(nn.Linear(64, 64), 4) for _ in range(4)]
    body = nn.Sequential(*(part for layer in layers for part in (layer, nn.GELU())))
    model = nn.Sequential(embedding, body, nn.Linear(64, 50)).to(device)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=5e-3)
    text = _text(4000, 50)
    for step in range(90):
        length = (16, 24, 40)[step % 3]
        start = step * 37 % 3000
        x = text[start : start + 4 * length + 1].to(device)
        optimizer.zero_grad()
        logits = model(x[:-1].view(4, length))
        loss = F.cross_entropy(logits.flatten(0, 1), x[1:])
        loss.backward()
        optimizer.step()
        yield loss.item()


def tagging(device: str) -> Iterator[float]:
    """A bidirectional LSTM over padded sentences; each step reads the number of correct
    tags."""
    embedding = nn.Embedding(80, 32, padding_idx=0).to(device)
    lstm = nn.LSTM(32, 32, bidirectional=True, batch_first=True).to(device)
    head = nn.Linear(64, 5).to(device)
    parameters = [*embedding.parameters(), *lstm.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    for _ in range(60):
        words = torch.randint(1, 80, (16, 20))
        words[::2, 15:] = 0
        tags = torch.where(words > 0, words % 5, -100)
        words, tags = words.to(device), tags.to(device)
        optimizer.zero_grad()
        logits = head(lstm(embedding(words))[0])
        loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten())
        loss.backward()
        optimizer.step()
        ((logits.argmax(-1) == tags) & (tags >= 0)).sum().item()
        yield loss.item()
