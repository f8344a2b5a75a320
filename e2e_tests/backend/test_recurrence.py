"""In nn.LSTM, nn.GRU and nn.RNN, each direction of a layer is one op and its gradient another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
from torch import nn


def _relu(*sizes: int, **arguments: object) -> nn.RNN:
    return nn.RNN(*sizes, nonlinearity="relu", **arguments)


KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN, "relu": _relu}

FORMS = {
    "plain": {},
    "two layers": {"num_layers": 2},
    "both directions": {"bidirectional": True, "num_layers": 2},
    "batch first": {"batch_first": True},
    "no bias": {"bias": False},
    "dropout": {"num_layers": 3, "dropout": 0.5},
}

Result = Callable[[torch.Tensor, list[torch.Tensor]], torch.Tensor]

USES: dict[str, Result] = {
    "output": lambda output, states: output.square().sum(),
    "last state": lambda output, states: states[0].square().sum(),
    "all": lambda output, states: sum(
        (value * (n + 1)).square().sum() for n, value in enumerate([output, *states])
    ),
}


def train(
    device: str,
    kind: str,
    sizes: tuple[int, int] = (5, 3),
    dtype: torch.dtype = torch.float32,
    use: str = "all",
    given: bool = True,
    twice: bool = False,
    **arguments: object,
) -> list[torch.Tensor]:
    """Returns results, gradients and, if `twice`, second-order gradients."""
    torch.manual_seed(0)
    length, batch = sizes
    network = KINDS[kind](6, 4, **arguments).to(dtype)
    x = torch.randn(length, batch, 6, dtype=dtype)
    if arguments.get("batch_first"):
        x = x.transpose(0, 1)
    count = network.num_layers * (2 if network.bidirectional else 1)
    states = [torch.randn(count, batch, 4, dtype=dtype) for _ in range(2)]
    network = network.to(device)
    x = x.to(device).requires_grad_()
    states = [
        s.to(device).requires_grad_() for s in states[: 2 if kind == "lstm" else 1]
    ]
    torch.manual_seed(1)
    passed = (tuple(states) if kind == "lstm" else states[0]) if given else None
    output, last = network(x, passed)
    lasts = list(last) if kind == "lstm" else [last]
    loss = USES[use](output, lasts)
    leaves = [x, *(states if given else []), *network.parameters()]
    gradients = torch.autograd.grad(loss, leaves, create_graph=twice, allow_unused=True)
    results = [output, *lasts, *gradients]
    if twice:
        second = sum(g.square().sum() for g in gradients)
        results += torch.autograd.grad(second, leaves)
    if device == "lazy":
        torch_ltc.mark_step()
    return [None if value is None else value.detach().cpu() for value in results]


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_forms(kind: str, form: str, tier: str) -> None:
    with torch_ltc.config(tier=tier):
        ours = train("lazy", kind, **FORMS[form])
    assert_close(ours, train("cpu", kind, **FORMS[form]))


@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (7, 1)])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", KINDS)
def test_uses(kind: str, use: str, sizes: tuple[int, int]) -> None:
    for given in (True, False):
        arguments = {"sizes": sizes, "use": use, "given": given}
        assert_close(train("lazy", kind, **arguments), train("cpu", kind, **arguments))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_other_dtypes(kind: str, dtype: torch.dtype) -> None:
    close = {} if dtype == torch.float64 else {"rtol": 0.03, "atol": 0.2}
    assert_close(
        train("lazy", kind, dtype=dtype), train("cpu", kind, dtype=dtype), **close
    )


@pytest.mark.parametrize("kind", KINDS)
def test_autocast(kind: str) -> None:
    def run(device: str) -> list[torch.Tensor]:
        with torch.autocast(device, dtype=torch.bfloat16):
            return train(device, kind)

    ours, expected = run("lazy"), run("cpu")
    assert [t.dtype for t in ours] == [t.dtype for t in expected]
    assert_close(ours, expected, rtol=0.05, atol=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_gradients(kind: str) -> None:
    arguments = {"dtype": torch.float64, "twice": True, "bidirectional": True}
    assert_close(train("lazy", kind, **arguments), train("cpu", kind, **arguments))


@pytest.mark.parametrize("kind", KINDS)
def test_costs(kind: str) -> None:
    """The number of ops doesn't depend on the length of the sequences."""
    counted = []
    for length in (4, 40):
        with counting() as counts:
            train("lazy", kind, sizes=(length, 3))
        counted.append(counts.traced_ops)
        assert not counts.fallback_calls
    assert counted[0] == counted[1] <= 45


@pytest.mark.parametrize("kind", KINDS)
def test_forward_mode(kind: str) -> None:
    torch.manual_seed(0)
    networks = {"cpu": KINDS[kind](6, 4).double()}
    networks["lazy"] = KINDS[kind](6, 4).double().to("lazy")
    networks["lazy"].load_state_dict(networks["cpu"].state_dict())
    x, tangent = torch.randn(2, 3, 2, 6).double()

    def derivative(device: str) -> torch.Tensor:
        def function(value: torch.Tensor) -> torch.Tensor:
            return networks[device](value)[0]

        point = (x.to(device),)
        return torch.func.jvp(function, point, (tangent.to(device),))[1].cpu()

    assert_close(derivative("lazy"), derivative("cpu"))


@pytest.mark.parametrize("kind", KINDS)
def test_other_backends_get_the_steps(kind: str) -> None:
    with torch_ltc.config(cache=False):
        network = KINDS[kind](6, 4).to("lazy")
        output = network(torch.randn(3, 2, 6).to("lazy"))[0]
        text = torch_ltc.debug.dump(output, stage="torch")
    assert text.count("aten.clamp" if kind == "relu" else "aten.tanh") >= 3
    assert "torch_ltc." not in text


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_sizes_are_rejected_as_by_eager(kind: str) -> None:
    def error_of(device: str) -> tuple[str, str]:
        network = KINDS[kind](6, 4).to(device)
        with pytest.raises(RuntimeError) as raised:
            network(torch.ones(3, 2, 5, device=device))
        return type(raised.value).__name__, str(raised.value).splitlines()[0]

    assert error_of("lazy") == error_of("cpu")


LENGTHS = {
    "different": [7, 4, 4, 2, 1],
    "equal": [3, 3],
    "single": [4],
    "mostly padding": [40, 1, 1, 1, 1, 1],
}


def train_packed(
    device: str,
    kind: str,
    lengths: list[int],
    dtype: torch.dtype = torch.float32,
    given: bool = True,
    twice: bool = False,
    **arguments: object,
) -> list[torch.Tensor]:
    torch.manual_seed(0)
    network = KINDS[kind](6, 4, **arguments).to(dtype)
    x = torch.randn(max(lengths), len(lengths), 6, dtype=dtype)
    count = network.num_layers * (2 if network.bidirectional else 1)
    states = [torch.randn(count, len(lengths), 4, dtype=dtype) for _ in range(2)]
    network, x = network.to(device), x.to(device).requires_grad_()
    states = [
        s.to(device).requires_grad_() for s in states[: 2 if kind == "lstm" else 1]
    ]
    torch.manual_seed(1)
    passed = (tuple(states) if kind == "lstm" else states[0]) if given else None
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths))
    output, last = network(packed, passed)
    lasts = list(last) if kind == "lstm" else [last]
    results = [output.data, *lasts]
    loss = sum((t * (n + 1)).square().sum() for n, t in enumerate(results))
    leaves = [x, *(states if given else []), *network.parameters()]
    gradients = torch.autograd.grad(loss, leaves, create_graph=twice)
    results += gradients
    if twice:
        second = sum(g.square().sum() for g in gradients)
        results += torch.autograd.grad(second, leaves)
    return [t.detach().cpu() for t in results]


@pytest.mark.parametrize("form", [form for form in FORMS if form != "batch first"])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences(kind: str, lengths: str, form: str) -> None:
    for given in (True, False):
        arguments = {"lengths": LENGTHS[lengths], "given": given, **FORMS[form]}
        assert_close(
            train_packed("lazy", kind, **arguments),
            train_packed("cpu", kind, **arguments),
        )


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_packed_gradients(kind: str) -> None:
    arguments = {"lengths": [4, 2, 1], "dtype": torch.float64, "twice": True}
    assert_close(
        train_packed("lazy", kind, bidirectional=True, **arguments),
        train_packed("cpu", kind, bidirectional=True, **arguments),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_costs_of_packed_sequences(kind: str) -> None:
    """The number of ops doesn't depend on the lengths of the sequences."""
    counted = []
    for lengths in ([4, 3, 2], [30, 25, 20], [28, 27, 20]):
        with counting() as counts:
            train_packed("lazy", kind, lengths)
        counted.append(counts.traced_ops)
        assert not counts.fallback_calls
    assert counted[0] == counted[1] == counted[2] <= 100


@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences_with_detect_nan(kind: str) -> None:
    """The padding of shorter sequences is finite, so that detect_nan reports nothing."""
    with torch_ltc.config(detect_nan=True):
        ours = train_packed("lazy", kind, [5, 2, 1])
    assert_close(ours, train_packed("cpu", kind, [5, 2, 1]))


@pytest.mark.parametrize("sizes", [[2, 3], [3, 0], [3, 1], []])
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_batch_sizes_are_rejected_as_by_eager(
    kind: str, sizes: list[int]
) -> None:
    def error_of(device: str) -> tuple[str, str] | list[torch.Size]:
        network = KINDS[kind](6, 4).to(device)
        packed = nn.utils.rnn.PackedSequence(
            torch.ones(5, 6, device=device), torch.tensor(sizes, dtype=torch.long)
        )
        try:
            return [t.shape for t in network(packed)[0][:2]]
        except (RuntimeError, IndexError) as error:
            return type(error).__name__, str(error).split(" [aten")[0].splitlines()[0]

    assert error_of("lazy") == error_of("cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_programs_of_varying_lengths(kind: str) -> None:
    torch.lazy.empty_cache()
    with torch_ltc.config(tier="compile", varying_sizes="auto", cache=False):
        torch_ltc.reset_metrics()
        for length in (5, 9, 2, 30, 17, 6, 8, 12, 25, 40, 3):
            arguments = {"sizes": (length, 3), "bidirectional": True}
            assert_close(
                train("lazy", kind, **arguments), train("cpu", kind, **arguments)
            )
        assert torch_ltc.metrics()["compilations"] <= 4


def test_long_padding_of_relu() -> None:
    """The states after a sequence's end are finite even if ReLU's states grow."""
    results = []
    for device in ("lazy", "cpu"):
        network = _relu(6, 4, bias=False)
        network.weight_ih_l0.data.fill_(0.1)
        network.weight_hh_l0.data.copy_(3 * torch.eye(4))
        network = network.to(device)
        x = torch.ones(120, 2, 6, device=device)
        x[:, 0] = -1  # the states of the long sequence are 0
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([120, 3]))
        last = network(packed)[1]
        gradients = torch.autograd.grad(last.sum(), list(network.parameters()))
        results.append([t.cpu() for t in (last, *gradients)])
    assert all(t.isfinite().all() for t in results[0])
    assert_close(*results)
