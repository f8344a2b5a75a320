"""A recurrent language model, and small models of `transformers`."""

from __future__ import annotations

import torch
import transformers
from torch import nn
from torch.nn import functional as F

VOCABULARY = 40
WIDTH, HEADS, LAYERS = 16, 4, 2


class LstmLanguageModel(nn.Module):
    """An embedding, two LSTM layers, and output weights tied to the embedding's. The state
    is passed from batch to batch (truncated backpropagation). Tokens are [length, batch].
    """

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, LAYERS, dropout=0.1)
        self.dropout = nn.Dropout(0.1)
        self.state: tuple[torch.Tensor, ...] | None = None

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        if self.state is None:
            zeros = torch.zeros(LAYERS, tokens.shape[1], WIDTH, device=tokens.device)
            self.state = (zeros, zeros.clone())
        hidden, state = self.lstm(self.dropout(self.embedding(tokens)), self.state)
        self.state = tuple(part.detach() for part in state)
        return F.linear(self.dropout(hidden), self.embedding.weight)


def vit() -> nn.Module:
    return transformers.ViTForImageClassification(
        transformers.ViTConfig(
            image_size=16,
            patch_size=4,
            hidden_size=WIDTH,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=2 * WIDTH,
            hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.1,
            num_labels=10,
        )
    )


def bert() -> nn.Module:
    return transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=WIDTH,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=2 * WIDTH,
            max_position_embeddings=32,
        )
    )


def gpt2() -> nn.Module:
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=32,
            n_embd=WIDTH,
            n_layer=LAYERS,
            n_head=HEADS,
            use_cache=False,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def opt() -> nn.Module:
    return transformers.OPTForCausalLM(
        transformers.OPTConfig(
            vocab_size=VOCABULARY,
            hidden_size=WIDTH,
            num_hidden_layers=LAYERS,
            ffn_dim=2 * WIDTH,
            num_attention_heads=HEADS,
            max_position_embeddings=32,
            word_embed_proj_dim=WIDTH,
            use_cache=False,
            attn_implementation="eager",
        )
    )


def llama() -> nn.Module:
    """A model with RMS norm, rotary positions, and two query heads for each key head."""
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=WIDTH,
            intermediate_size=2 * WIDTH,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=HEADS // 2,
            max_position_embeddings=32,
            use_cache=False,
        )
    )


def t5() -> nn.Module:
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=VOCABULARY,
            d_model=WIDTH,
            d_kv=WIDTH // HEADS,
            d_ff=2 * WIDTH,
            num_layers=LAYERS,
            num_heads=HEADS,
            use_cache=False,
            decoder_start_token_id=0,
        )
    )
