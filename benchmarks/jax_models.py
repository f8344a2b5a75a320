"""The models of the set "speed" in JAX, with PyTorch's weights under the same names."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def _linear(w, name, x):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def _cross_entropy(logits, targets):
    losses = -jnp.take_along_axis(
        jax.nn.log_softmax(logits), jnp.maximum(targets, 0)[:, None], 1
    )[:, 0]
    counted = targets != -100
    return jnp.sum(jnp.where(counted, losses, 0)) / jnp.sum(counted)


def _perceptron(w, x):
    numbers = sorted({int(name.split(".")[0]) for name in w})
    for number in numbers:
        x = _linear(w, str(number), x)
        x = x if number == numbers[-1] else jax.nn.relu(x)
    return x


def _convolution(w, name, x, stride=1, padding=0):
    y = lax.conv_general_dilated(
        x, w[name + ".weight"], (stride, stride), [(padding, padding)] * 2,
        dimension_numbers=("NCHW", "OIHW", "NCHW"),
    )  # fmt: skip
    bias = w.get(name + ".bias")
    return y if bias is None else y + bias[None, :, None, None]


def _pool(x):
    window = (1, 1, 2, 2)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


def _lenet(w, x):
    x = _pool(jax.nn.relu(_convolution(w, "conv1", x, padding=2)))
    x = _pool(jax.nn.relu(_convolution(w, "conv2", x)))
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(_linear(w, "fc1", x))
    return _linear(w, "fc3", jax.nn.relu(_linear(w, "fc2", x)))


def _batch_norm(w, new, name, x):
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    count = x.size // x.shape[1]
    for key, value in (("mean", mean), ("var", variance * count / (count - 1))):
        key = f"{name}.running_{key}"
        new[key] = 0.9 * w[key] + 0.1 * lax.stop_gradient(value)
    shape = (1, -1, 1, 1)
    scale = w[name + ".weight"] * lax.rsqrt(variance + 1e-5)
    shift = w[name + ".bias"] - mean * scale
    return x * scale.reshape(shape) + shift.reshape(shape)


def _resnet(w, new, x):
    x = _convolution(w, "stem", x, padding=1)
    x = jax.nn.relu(_batch_norm(w, new, "norm", x))
    for number in range(8):
        name = f"blocks.{number}"
        stride = 2 if number in (2, 4, 6) else 1
        hidden = _convolution(w, name + ".conv1", x, stride, 1)
        hidden = jax.nn.relu(_batch_norm(w, new, name + ".norm1", hidden))
        hidden = _convolution(w, name + ".conv2", hidden, 1, 1)
        hidden = _batch_norm(w, new, name + ".norm2", hidden)
        if name + ".shortcut.0.weight" in w:
            x = _convolution(w, name + ".shortcut.0", x, stride)
            x = _batch_norm(w, new, name + ".shortcut.1", x)
        x = jax.nn.relu(hidden + x)
    return _linear(w, "head", x.mean((2, 3)))


def _layer_norm(w, name, x):
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    x = (x - mean) * lax.rsqrt(variance + 1e-5)
    return x * w[name + ".weight"] + w[name + ".bias"]


def _attention(w, name, x, mask, heads=4):
    size, length, width = x.shape

    def split(part):
        return part.reshape(size, length, heads, -1).transpose(0, 2, 1, 3)

    query = split(_linear(w, name + ".query", x))
    key = split(x @ w[name + ".key.weight"].T)
    value = split(_linear(w, name + ".value", x))
    scores = query @ key.transpose(0, 1, 3, 2) * (width // heads) ** -0.5
    weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf))
    mixed = (weights @ value).transpose(0, 2, 1, 3).reshape(size, length, width)
    return _linear(w, name + ".output", mixed)


def _encoder(w, inputs, padding):
    x = w["characters.weight"][inputs] + w["positions.weight"][: inputs.shape[1]]
    x = _layer_norm(w, "norm", x)
    mask = ~padding[:, None, None, :]
    for number in range(4):
        name = f"layers.{number}"
        x = _layer_norm(
            w, name + ".attention_norm", x + _attention(w, name + ".attention", x, mask)
        )
        hidden = jax.nn.gelu(_linear(w, name + ".expand", x), approximate=False)
        hidden = _linear(w, name + ".contract", hidden)
        x = _layer_norm(w, name + ".output_norm", x + hidden)
    return _linear(w, "head", x)


def _decoder(w, inputs):
    length = inputs.shape[1]
    x = w["characters.weight"][inputs] + w["positions.weight"][:length]
    mask = jnp.tril(jnp.ones((length, length), bool))
    for number in range(4):
        name = f"layers.{number}"
        normed = _layer_norm(w, name + ".attention_norm", x)
        x = x + _attention(w, name + ".attention", normed, mask)
        hidden = _linear(w, name + ".expand", _layer_norm(w, name + ".hidden_norm", x))
        x = x + _linear(w, name + ".contract", jax.nn.relu(hidden))
    return _layer_norm(w, "norm", x) @ w["characters.weight"].T


def _chain(w, x):
    x = x * w["scale"] + w["shift"]
    x = jnp.tanh(x) * jax.nn.sigmoid(x) + 0.5 * x
    x = x / (1 + jnp.abs(x))
    return jnp.exp(-x * x)


def _norm_gelu(w, x):
    return jax.nn.gelu(_layer_norm(w, "norm", x + w["bias"]), approximate=False)


def _lstm(w, x):
    hidden = state = jnp.zeros((x.shape[0], 128))
    for step in range(x.shape[1]):
        gates = x[:, step] @ w["cell.weight_ih"].T + w["cell.bias_ih"]
        gates = gates + hidden @ w["cell.weight_hh"].T + w["cell.bias_hh"]
        i, f, g, o = jnp.split(gates, 4, -1)
        state = jax.nn.sigmoid(f) * state + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(state)
    return _linear(w, "head", hidden)


def _classifier(function):
    def loss(weights, state, batch):
        logits = function(weights, *batch[:-1])
        targets = batch[-1].reshape(-1)
        return _cross_entropy(logits.reshape(len(targets), -1), targets), state

    return loss


def _mean_square(function):
    return lambda weights, state, batch: (
        jnp.mean(jnp.square(function(weights, *batch))),
        state,
    )


def _resnet_loss(weights, state, batch):
    new = dict(state)
    logits = _resnet({**weights, **state}, new, batch[0])
    return _cross_entropy(logits, batch[1]), new


# Each function returns the loss and the new state (running statistics) for weights,
# state and batch.
LOSSES = {
    "perceptron 3x64": _classifier(_perceptron),
    "perceptron 784": _classifier(_perceptron),
    "LeNet": _classifier(_lenet),
    "ResNet-18": _resnet_loss,
    "BERT-like": _classifier(_encoder),
    "OPT-like": _classifier(_decoder),
    "pointwise chain": _mean_square(_chain),
    "layer norm + GELU": _mean_square(_norm_gelu),
    "LSTM, unrolled": _classifier(_lstm),
}
