"""Decompositions for packed sequences: `torch.nn.utils.rnn.pack_padded_sequence` and
`pad_packed_sequence`.

The batch sizes are a CPU tensor, as recurrent networks require. Packing gathers elements of
the padded tensor, and unpacking those of the packed one, so that the same ops are traced
for all lengths.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def _check(sequences: Tensor, lengths: Tensor, batch: int) -> None:
    """Raises the errors of PyTorch's kernel (torch 2.13), with its messages."""
    if lengths.device.type != "cpu" or lengths.dtype != torch.int64:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.dim()}D {lengths.device.type} {lengths.dtype} tensor"
        )
    if sequences.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.numel() != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got "
            f"{lengths.numel()} (batch_size={batch})"
        )
    if bool((lengths <= 0).any()):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element "
            "in 'lengths' that is <= 0"
        )
    if bool((lengths[1:] > lengths[:-1]).any()):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when "
            "`enforce_sorted` is True. You can pass `enforce_sorted=False` to "
            "pack_padded_sequence and/or pack_sequence to sidestep this "
            "requirement if you do not need ONNX exportability."
        )


def pack_padded_sequence(
    sequences: Tensor, lengths: Tensor, batch_first: bool
) -> tuple[Tensor, Tensor]:
    if batch_first:
        sequences = sequences.transpose(0, 1)
    batch = sequences.shape[1]
    _check(sequences, lengths, batch)
    steps = torch.arange(int(lengths[0]))
    is_inside = steps.unsqueeze(1) < lengths  # [step, sequence]
    positions = steps.unsqueeze(1) * batch + torch.arange(batch)
    chosen = positions[is_inside].to(sequences.device)
    data = sequences.flatten(0, 1).index_select(0, chosen)
    return data, is_inside.sum(1)


def pad_packed_sequence(
    data: Tensor,
    batch_sizes: Tensor,
    batch_first: bool,
    padding_value: complex,
    total_length: int,
) -> tuple[Tensor, Tensor]:
    """Returns the padded sequences and their lengths. Raises ValueError for arguments that
    PyTorch's kernel must handle or reject."""
    sizes = batch_sizes.tolist()
    elements = data.shape[0]
    is_packed = sizes == sorted(sizes, reverse=True) and sizes[-1] > 0
    if not is_packed or sum(sizes) != elements or 0 < total_length < len(sizes):
        raise ValueError("not the sizes of packed sequences")
    batch, steps = sizes[0], max(len(sizes), total_length)
    is_inside = torch.zeros(steps, batch, dtype=torch.bool)
    is_inside[: len(sizes)] = torch.arange(batch) < batch_sizes.unsqueeze(1)
    # The filler comes after all elements.
    positions = torch.full((steps, batch), elements)
    positions[is_inside] = torch.arange(elements)
    filler = data.new_full((1, *data.shape[1:]), padding_value)
    chosen = positions.flatten().to(data.device)
    padded = torch.cat([data, filler]).index_select(0, chosen)
    padded = padded.unflatten(0, (steps, batch))
    lengths = is_inside.sum(0)
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pack_functional(
    sequences: Tensor, lengths: Tensor, batch_first: bool
) -> tuple[Tensor, Tensor]:
    """The kernel of `_pack_padded_sequence` at key Functionalize, where PyTorch's fallback
    would return batch sizes that aren't a plain CPU tensor. In inference mode, no kernel
    at a higher key runs before it."""
    if sequences.device.type == "lazy":
        return pack_padded_sequence(sequences, lengths, batch_first)

    def unwrapped(value: Any) -> Any:
        if not torch._is_functional_tensor(value):
            return value
        torch._sync(value)
        return torch._from_functional_tensor(value)

    op = torch.ops.aten._pack_padded_sequence.default
    with torch._C._ExcludeDispatchKeyGuard(
        torch._C.DispatchKeySet(torch._C.DispatchKey.Functionalize)
    ):
        results = op(unwrapped(sequences), unwrapped(lengths), batch_first)
    return tuple(map(torch._to_functional_tensor, results))
