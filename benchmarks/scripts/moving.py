"""Loops whose sizes, offsets and counts vary from step to step. Each makes two passes
over the same 32 steps, reads a value in each step and yields it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

STEPS = 32

# The first optimizer of a process is created here, because the modules that torch imports
# for it take longer to load than a pass takes.
torch.optim.Adam([torch.zeros(1, requires_grad=True)])


def _passes(step: Callable[[int], Tensor]) -> Iterator[float]:
    for _ in range(2):
        for i in range(STEPS):
            yield step(i).item()


def _trained(parameters, loss_of: Callable[[int], Tensor]) -> Iterator[float]:
    optimizer = torch.optim.Adam(list(parameters), lr=1e-3)

    def step(i: int) -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(i)
        loss.backward()
        optimizer.step()
        return loss

    return _passes(step)


def encoder_lengths(device: str) -> Iterator[float]:
    """A transformer encoder; sequences of 9 to 116 tokens, batches of two sizes."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).to(device)
    x = torch.randn(8, 128, 64).to(device)

    def loss(i: int) -> Tensor:
        return model(x[: 8 if i % 2 else 5, : 9 + 111 * i // STEPS]).square().mean()

    return _trained(model.parameters(), loss)


def lstm_windows(device: str) -> Iterator[float]:
    """A language model on windows whose offsets and lengths vary."""
    words, width = 100, 64
    corpus = (torch.arange(8 * 4000) * 7 % words).view(4000, 8).to(device)
    embedding = nn.Embedding(words, width).to(device)
    rnn, head = nn.LSTM(width, width).to(device), nn.Linear(width, words).to(device)

    def loss(i: int) -> Tensor:
        begin, n = 61 * i, 12 + i
        output, _ = rnn(embedding(corpus[begin : begin + n]))
        target = corpus[begin + 1 : begin + n + 1]
        return F.cross_entropy(head(output).flatten(0, 1), target.flatten())

    layers = (embedding, rnn, head)
    return _trained((p for layer in layers for p in layer.parameters()), loss)


def buffer_writes(device: str) -> Iterator[float]:
    """Each step writes one row of a buffer and reads the whole buffer."""
    network = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    buffer, targets = torch.zeros(256, 16), torch.zeros(256)
    buffer, targets = buffer.to(device), targets.to(device)
    rows = torch.randn(STEPS, 16).to(device)

    def loss(i: int) -> Tensor:
        buffer[7 * i] = rows[i]
        targets[7 * i] = rows[i].sum()
        return F.mse_loss(network(buffer).squeeze(1), targets)

    return _trained(network.parameters(), loss)


def random_graphs(device: str) -> Iterator[float]:
    """Message passing on graphs whose numbers of nodes and edges vary."""
    width = 32
    message, head = nn.Linear(2 * width, width).to(device), nn.Linear(width, 1)
    head = head.to(device)
    graphs = []
    for i in range(STEPS):
        nodes = 40 + 3 * i
        edges = torch.randint(nodes, (2, 4 * nodes + i))
        graphs.append((torch.randn(nodes, width).to(device), edges.to(device)))

    def loss(i: int) -> Tensor:
        x, (source, target) = graphs[i][0], graphs[i][1]
        for _ in range(3):
            sent = message(torch.cat([x[source], x[target]], 1)).relu()
            x = x + torch.zeros_like(x).index_add_(0, target, sent)
        return head(x).square().mean()

    return _trained([*message.parameters(), *head.parameters()], loss)


def image_sizes(device: str) -> Iterator[float]:
    """A convolutional network on images whose batch size and height vary; the last batch
    is smaller."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10),
    ).to(device)  # fmt: skip
    images = torch.randn(24, 3, 64, 32).to(device)

    def loss(i: int) -> Tensor:
        batch = 5 if i == STEPS - 1 else 8 + i % 16
        return model(images[:batch, :, : 20 + i]).square().mean()

    return _trained(model.parameters(), loss)


def greedy_decoding(device: str) -> Iterator[float]:
    """Attention over keys and values that grow by one token at each step."""
    width, heads = 64, 4
    project, out = nn.Linear(width, 3 * width).to(device), nn.Linear(width, 50)
    out, words = out.to(device), nn.Embedding(50, width).to(device)

    @torch.no_grad()
    def decode() -> Iterator[float]:
        token = torch.zeros(4, 1, dtype=torch.long, device=device)
        keys = values = torch.zeros(4, heads, 0, width // heads, device=device)
        for _ in range(STEPS):
            parts = project(words(token)).view(4, 1, 3, heads, -1).transpose(1, 3)
            query, key, value = parts.unbind(2)
            keys, values = torch.cat([keys, key], 2), torch.cat([values, value], 2)
            seen = F.scaled_dot_product_attention(query, keys, values)
            token = out(seen.transpose(1, 2).flatten(2)).argmax(2)
            yield token.sum().item()

    for _ in range(2):
        yield from decode()


def moving_numbers(device: str) -> Iterator[float]:
    """Ops with number arguments that vary: shifts, offsets, counts, widths."""
    weight = nn.Parameter(torch.randn(64, 48).to(device))
    x = torch.randn(64, 48).to(device)

    def loss(i: int) -> Tensor:
        y = (x * weight).roll(i, 0).narrow(1, i % 16, 32)
        y = y + torch.arange(64, device=device)[:, None] * (0.01 * i)
        y = F.pad(y, (i % 5, 4 - i % 5)).unfold(1, 4 + i % 4, 2).mean(2)
        y = y.repeat_interleave(1 + i % 3, 1)
        return sum(part.square().mean() for part in y.chunk(2 + i % 4))

    return _trained([weight], loss)


def packed_sequences(device: str) -> Iterator[float]:
    """A GRU over batches of sequences whose lengths vary."""
    rnn = nn.GRU(24, 32, batch_first=True).to(device)
    x = torch.randn(6, 40, 24).to(device)
    lengths = [
        torch.randint(3, 25, (6,)).sort(descending=True)[0] for _ in range(STEPS)
    ]

    def loss(i: int) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths[i], batch_first=True)
        return rnn(packed)[1].square().mean()

    return _trained(rnn.parameters(), loss)


def evaluated_epochs(device: str) -> Iterator[float]:
    """Every fourth step first evaluates the model at a different batch size."""
    model = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 10)).to(device)
    x, y = torch.randn(200, 32).to(device), torch.randint(10, (200,)).to(device)

    def loss(i: int) -> Tensor:
        if i % 4 == 0:
            with torch.no_grad():
                assert (model(x[: 100 + i]).argmax(1) == y[: 100 + i]).sum() >= 0
        batch = 16 + i
        return F.cross_entropy(model(x[:batch]), y[:batch])

    return _trained(model.parameters(), loss)


def random_crops(device: str) -> Iterator[float]:
    """Crops at varying places, half of them flipped."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 256, 10)
    ).to(device)
    images = torch.randn(16, 3, 24, 24).to(device)

    def loss(i: int) -> Tensor:
        top, left = 5 * i % 8, 3 * i % 8
        crop = images[:, :, top : top + 16, left : left + 16]
        return model(crop.flip(3) if i % 2 else crop).square().mean()

    return _trained(model.parameters(), loss)


def beam_search(device: str) -> Iterator[float]:
    """Beams of growing length, reordered by their scores."""
    words, width, beams = 40, 32, 5
    embedding, head = nn.Embedding(words, width).to(device), nn.Linear(width, words)
    head = head.to(device)

    @torch.no_grad()
    def search() -> Iterator[float]:
        tokens = torch.zeros(beams, 1, dtype=torch.long, device=device)
        scores = torch.zeros(beams, device=device)
        for _ in range(STEPS):
            logits = head(embedding(tokens).mean(1)).log_softmax(1)
            best, index = (scores[:, None] + logits).flatten().topk(beams)
            tokens = torch.cat([tokens[index // words], (index % words)[:, None]], 1)
            scores = best
            yield best[0].item()

    for _ in range(2):
        yield from search()


MOVING = {
    function.__name__: function
    for function in (
        encoder_lengths,
        lstm_windows,
        buffer_writes,
        random_graphs,
        image_sizes,
        greedy_decoding,
        moving_numbers,
        packed_sequences,
        evaluated_epochs,
        random_crops,
        beam_search,
    )
}
