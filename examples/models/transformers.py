"""A BERT-like encoder and an OPT-like decoder over characters."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from models.attention import SelfAttention
from models.data import PADDING, VOCABULARY


class EncoderLayer(nn.Module):
    """A layer like BERT's: norm after each residual sum, GELU."""

    def __init__(self, width: int, heads: int, dropout: float, fused: bool) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads, dropout, False, fused)
        self.attention_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)
        self.output_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        x = self.attention_norm(x + self.dropout(self.attention(x, padding)))
        hidden = self.contract(F.gelu(self.expand(x)))
        return self.output_norm(x + self.dropout(hidden))


class Encoder(nn.Module):
    """Predicts masked characters from the characters on both sides."""

    def __init__(
        self, width=32, heads=4, layers=2, length=24, dropout=0.1, fused=False
    ) -> None:
        super().__init__()
        self.characters = nn.Embedding(VOCABULARY, width, padding_idx=PADDING)
        self.positions = nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(width, heads, dropout, fused) for _ in range(layers)
        )
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, inputs: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        places = torch.arange(inputs.shape[1], device=inputs.device)
        x = self.characters(inputs) + self.positions(places)
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x, padding)
        return self.head(x)


class DecoderLayer(nn.Module):
    """A layer like OPT's: norm before each branch, ReLU."""

    def __init__(self, width: int, heads: int, dropout: float, fused: bool) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads, dropout, True, fused)
        self.hidden_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        hidden = self.contract(F.relu(self.expand(self.hidden_norm(x))))
        return x + self.dropout(hidden)


class Decoder(nn.Module):
    """Predicts the next character; the output projection is tied to the embedding."""

    def __init__(
        self, width=32, heads=4, layers=2, length=24, dropout=0.1, fused=False
    ) -> None:
        super().__init__()
        self.characters = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(length, width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            DecoderLayer(width, heads, dropout, fused) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        # The output projection uses this weight, too. With this standard deviation, the
        # initial logits are of order one.
        nn.init.normal_(self.characters.weight, std=width**-0.5)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        places = torch.arange(inputs.shape[1], device=inputs.device)
        x = self.dropout(self.characters(inputs) + self.positions(places))
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.characters.weight)
