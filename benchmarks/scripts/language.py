"""Language models (recurrent, GPT-like) and a classifier of padded sentences."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _corpus(length: int, words: int) -> Tensor:
    """Word indices with some structure to learn."""
    generator = torch.Generator().manual_seed(1)
    noise = torch.randint(words, (length,), generator=generator)
    return torch.where(noise % 3 == 0, noise, torch.arange(length) * 7 % words)


class _WordModel(nn.Module):
    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, width, 2, dropout=0.2)
        self.decoder = nn.Linear(width, words)

    def forward(self, tokens: Tensor, state: tuple) -> tuple:
        output, state = self.rnn(self.embedding(tokens), state)
        return self.decoder(output), state


def word_language_model(device: str) -> Iterator[float]:
    """Truncated backpropagation through time over slices of a corpus on the device."""
    words, width, batch, length = 200, 64, 8, 20
    corpus = _corpus(16000, words).view(batch, -1).t().contiguous().to(device)
    model = _WordModel(words, width).to(device)
    state = tuple(torch.zeros(2, batch, width, device=device) for _ in range(2))
    for i in range(0, 60 * length, length):
        n = min(length, len(corpus) - 1 - i)
        data, target = corpus[i : i + n], corpus[i + 1 : i + 1 + n].reshape(-1)
        state = tuple(part.detach() for part in state)
        model.zero_grad()
        output, state = model(data, state)
        loss = F.cross_entropy(output.view(-1, words), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(parameter.grad, alpha=-1.0)
        yield loss.item()


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.first(x)).split(width, dim=2)
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.second(x))


class _Gpt(nn.Module):
    def __init__(self, words: int, width: int, layers: int, length: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[_Block(width, 4) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.places(places)
        return self.head(self.norm(self.blocks(x)))


def nano_gpt(device: str) -> Iterator[float]:
    """Trains on random windows of a corpus in host memory; evaluates every 20 steps."""
    words, length, batch = 96, 64, 12
    corpus = _corpus(20000, words)
    model = _Gpt(words, 96, 3, length).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)

    def get_batch() -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(corpus) - length - 1, (batch,))
        x = torch.stack([corpus[i : i + length] for i in starts])
        y = torch.stack([corpus[i + 1 : i + 1 + length] for i in starts])
        return x.to(device), y.to(device)

    for step in range(60):
        if step % 20 == 0:
            model.eval()
            with torch.no_grad():
                for _ in range(3):
                    x, y = get_batch()
                    F.cross_entropy(model(x).view(-1, words), y.view(-1)).item()
            model.train()
        x, y = get_batch()
        loss = F.cross_entropy(model(x).view(-1, words), y.view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        yield loss.item()


def padded_batches(device: str) -> Iterator[float]:
    """Classifies sentences; each batch is padded to its longest sentence."""
    words, width = 150, 64
    generator = torch.Generator().manual_seed(2)
    lengths = torch.randint(9, 60, (320,), generator=generator).tolist()
    sentences = [torch.randint(1, words, (n,), generator=generator) for n in lengths]
    classes = torch.tensor([int(s.float().mean() > words / 2) for s in sentences])
    embedding = nn.Embedding(words, width, padding_idx=0).to(device)
    layer = nn.TransformerEncoderLayer(width, 4, 128, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device)
    head = nn.Linear(width, 2).to(device)
    parameters = [*embedding.parameters(), *encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    for _ in range(2):
        for begin in range(0, len(sentences), 10):
            part = sentences[begin : begin + 10]
            x = nn.utils.rnn.pad_sequence(part, batch_first=True).to(device)
            y = classes[begin : begin + 10].to(device)
            mask = x == 0
            hidden = encoder(embedding(x), src_key_padding_mask=mask)
            hidden = hidden.masked_fill(mask.unsqueeze(-1), 0).sum(1)
            loss = F.cross_entropy(head(hidden), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()
