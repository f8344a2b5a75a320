"""scaled_dot_product_attention is one op and its gradient another. For long sequences no
scores are stored; for short ones, tier `interpret` calls eager's kernels."""

from __future__ import annotations

import re

import pytest
import torch
import torch_ltc
from comparison import assert_close
from counting import counting
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

# Numeric and bool masks. Some exclude all keys of a query, or a key for all queries.
MASKS = {
    "none": lambda: None,
    "keys": lambda: torch.arange(140)[None, None, None] % 7 != 3,
    "pairs": lambda: torch.randn(2, 1, 150, 140).where(
        torch.arange(150)[:, None] != 5, -torch.inf
    ),
    "two dimensions": lambda: torch.arange(150)[:, None] > torch.arange(140),
}


def operands(device: str, gradients: bool) -> list[torch.Tensor]:
    torch.manual_seed(0)
    sizes = [(150, 12), (140, 12), (140, 20)]
    tensors = [torch.randn(2, 2, *size).to(device) for size in sizes]
    return [tensor.requires_grad_(gradients) for tensor in tensors]


def trained(device: str, twice: bool = False, **options) -> list[torch.Tensor]:
    """Returns the output and gradients and, if `twice`, second-order gradients."""
    inputs = operands(device, gradients=True)
    output = F.scaled_dot_product_attention(*inputs, **options)
    gradients = torch.autograd.grad(output.square().sum(), inputs, create_graph=twice)
    results = [output, *gradients]
    if twice:
        loss = sum(gradient.square().sum() for gradient in gradients)
        results += torch.autograd.grad(loss, inputs)
    return [result.detach().cpu() for result in results]


@pytest.mark.parametrize("mask", MASKS)
def test_values(mask: str) -> None:
    torch.manual_seed(1)
    allowed = MASKS[mask]()

    def attend(device: str) -> torch.Tensor:
        here = None if allowed is None else allowed.to(device)
        inputs = operands(device, gradients=False)
        return F.scaled_dot_product_attention(*inputs, attn_mask=here).cpu()

    with counting() as counts:
        mine = attend("lazy")
    assert counts.fallback_calls == 0
    assert_close(mine, attend("cpu"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [None, 0.2])
def test_causal_training(scale: float | None) -> None:
    with counting() as counts:
        mine = trained("lazy", is_causal=True, scale=scale)
    assert counts.fallback_calls == 0
    eager = trained("cpu", is_causal=True, scale=scale)
    assert_close(mine, eager, rtol=1e-4, atol=1e-4)


def test_gradients_of_gradients() -> None:
    mine = trained("lazy", is_causal=True, twice=True)
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernel has no second-order gradient
        eager = trained("cpu", is_causal=True, twice=True)
    assert_close(mine, eager, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("mask", ["keys", "pairs"])
def test_gradients_next_to_a_mask(mask: str) -> None:
    """Calls the ops directly, because with a mask, scaled_dot_product_attention only uses
    them at sizes that are too large for a test."""
    torch.manual_seed(1)
    addend = MASKS[mask]()
    if addend.dtype == torch.bool:
        addend = torch.zeros(addend.shape).masked_fill(~addend, -torch.inf)

    def run(device: str) -> list[torch.Tensor]:
        inputs = operands(device, gradients=False)
        here = addend.to(device)
        results = torch.ops.torch_ltc.attention(*inputs, here, False)
        grad = torch.cos(results[0])
        gradients = torch.ops.torch_ltc.attention_backward(
            grad, *inputs, *results, here, False
        )
        return [value.cpu() for value in (*results, *gradients)]

    assert_close(run("lazy"), run("cpu"), rtol=1e-4, atol=1e-4)


def test_training_on_long_sequences() -> None:
    allowed = torch.arange(2048)[None, None, None] < 1900

    def run(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        x = torch.randn(1, 4, 2048, 4).to(device).requires_grad_()
        output = F.scaled_dot_product_attention(x, x, x, attn_mask=allowed.to(device))
        (gradient,) = torch.autograd.grad(output.square().sum(), x)
        return [output.detach().cpu(), gradient.cpu()]

    mine = run("lazy")
    names = [row["name"] for row in torch_ltc.debug.commands(-1)]
    assert not any("mm" in name for name in names)
    assert_close(mine, run("cpu"), rtol=1e-4, atol=1e-4)


def commands_of(length: int) -> tuple[list[str], int]:
    """Runs causal attention and its gradient. Returns the names of the program's commands
    and its peak memory without the inputs, in bytes."""
    inputs = [torch.randn(1, 4, length, 8, device="lazy") for _ in range(3)]
    inputs = [x.requires_grad_() for x in inputs]
    torch_ltc.mark_step()
    torch_ltc.wait_device_ops()
    output = F.scaled_dot_product_attention(*inputs, is_causal=True)
    gradients = torch.autograd.grad(output.square().sum(), inputs)
    torch_ltc.sync(gradients)
    torch_ltc.wait_device_ops()
    memory = torch_ltc.debug.memory(-1)
    names = [row["name"] for row in torch_ltc.debug.commands(-1)]
    return names, memory["peak_bytes"] - memory["input_bytes"]


def test_scores_are_not_stored() -> None:
    names, extra = commands_of(512)
    assert sum("attention" in name for name in names) == 2
    assert not any("mm" in name or "softmax" in name for name in names)
    assert len(names) <= 5
    assert extra < 512 * 512 * 4  # a quarter of the bytes of four heads' scores


def test_short_ones_are_products() -> None:
    names, _ = commands_of(64)
    assert not any("torch_ltc.attention" in name for name in names)
    # The scores are computed once, although the gradient's formula computes them too.
    assert sum(bool(re.search(r" \d+x\d+x\d+$", name)) for name in names) == 6


def test_a_forced_fallback_has_the_same_values() -> None:
    with torch_ltc.config(force_fallback="torch_ltc::attention*"):
        eagerly = trained("lazy", is_causal=True)
    ops = {entry["op"] for entry in torch_ltc.fallbacks()}
    assert {"torch_ltc::attention", "torch_ltc::attention_backward"} <= ops
    assert_close(eagerly, trained("cpu", is_causal=True), rtol=1e-4, atol=1e-4)


def test_other_compilers_get_the_parts() -> None:
    inputs = [torch.randn(1, 4, 300, 8, device="lazy") for _ in range(3)]
    output = F.scaled_dot_product_attention(*inputs)
    for stage in ("tosa", "stablehlo"):
        text = torch_ltc.debug.dump(output, stage)
        assert "attention" not in text
    kernels = torch_ltc.debug.dump(output, "kernels")
    assert "ltc.attention " in kernels


SHORT_MASKS = {
    "none": lambda: None,
    "keys": lambda: torch.arange(7)[None, None, None] % 7 != 3,
    "no key": lambda: torch.arange(5)[:, None] + torch.zeros(1, 7) > 0,
    "added": lambda: torch.randn(2, 1, 5, 7),
    "one dimension fewer": lambda: torch.randn(3, 5, 7),
}


def short_operands(device: str, layout: str, dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(0)
    tensors = [torch.randn(2, 3, n, 8, dtype=dtype) for n in (5, 7, 7)]
    if layout == "heads inside":
        tensors = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors]
    if layout == "columns":
        tensors = [x.mT.contiguous().mT for x in tensors]
    if layout == "other values":
        tensors[2] = torch.randn(2, 3, 7, 4, dtype=dtype)
    return [x.to(device) for x in tensors]


@pytest.mark.parametrize("tier", ["interpret", "compile"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", ["rows", "heads inside", "columns", "other values"])
@pytest.mark.parametrize("mask", [*SHORT_MASKS, "causal", "scale"])
def test_short_without_gradient(mask, layout, dtype, mode, tier) -> None:
    options: dict = {"is_causal": mask == "causal"}
    if mask == "scale":
        options["scale"] = 0.3
    allowed = SHORT_MASKS.get(mask, SHORT_MASKS["none"])()
    if allowed is not None and allowed.is_floating_point():
        allowed = allowed.to(dtype)

    def attend(device: str) -> torch.Tensor:
        with mode():
            here = None if allowed is None else allowed.to(device)
            inputs = short_operands(device, layout, dtype)
            return F.scaled_dot_product_attention(*inputs, attn_mask=here, **options)

    with torch_ltc.config(tier=tier), counting() as counts:
        mine = attend("lazy")
        value = mine.cpu()
    eager = attend("cpu")
    assert counts.fallback_calls == 0
    assert mine.stride() == eager.stride()
    assert mine.is_inference() == eager.is_inference()
    assert_close(value, eager, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_short_without_gradient_is_one_op(mode) -> None:
    """Without gradients, attention on short sequences is traced as one op; torch's
    decomposition has 27."""
    inputs = short_operands("lazy", "rows", torch.float32)
    torch_ltc.mark_step()
    before = torch_ltc.metrics()["traced_ops"]
    with mode():
        output = F.scaled_dot_product_attention(*inputs, is_causal=True)
    assert torch_ltc.metrics()["traced_ops"] == before + 1
    output.cpu()


def short_trained(device: str, mask, layout, dtype, **options) -> list[torch.Tensor]:
    """Returns the output and the gradients of q, k and v."""
    torch.manual_seed(1)
    allowed = SHORT_MASKS.get(mask, SHORT_MASKS["none"])()
    if allowed is not None:
        allowed = allowed.to(device, dtype if allowed.is_floating_point() else None)
    inputs = short_operands(device, layout, dtype)
    inputs = [x.requires_grad_() for x in inputs]
    output = F.scaled_dot_product_attention(
        *inputs,
        attn_mask=allowed,
        is_causal=mask == "causal",
        scale=0.3 if mask == "scale" else None,
    )
    return [output, *torch.autograd.grad(output.square().sum(), inputs, **options)]


@pytest.mark.parametrize("tier", ["interpret", "compile"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", ["rows", "heads inside", "columns", "other values"])
@pytest.mark.parametrize("mask", [*SHORT_MASKS, "causal", "scale"])
def test_short_with_gradient(mask, layout, dtype, tier) -> None:
    with torch_ltc.config(tier=tier), counting() as counts:
        mine = short_trained("lazy", mask, layout, dtype)
        values = [x.detach().cpu() for x in mine]
    eager = short_trained("cpu", mask, layout, dtype)
    assert counts.fallback_calls == 0
    assert [x.stride() for x in mine] == [x.stride() for x in eager]
    assert_close(values, [x.detach() for x in eager], rtol=1e-4, atol=1e-5)


def test_short_with_gradient_is_two_ops() -> None:
    inputs = short_operands("lazy", "rows", torch.float32)
    inputs = [x.requires_grad_() for x in inputs]
    seed = torch.ones_like(inputs[0])
    torch_ltc.mark_step()
    before = torch_ltc.metrics()["traced_ops"]
    output = F.scaled_dot_product_attention(*inputs, is_causal=True)
    assert torch_ltc.metrics()["traced_ops"] == before + 1
    gradients = torch.autograd.grad(output, inputs, seed)
    assert torch_ltc.metrics()["traced_ops"] == before + 2
    torch_ltc.sync(gradients)


@pytest.mark.parametrize("mask", ["none", "keys", "causal", "scale"])
def test_short_gradients_of_gradients(mask: str) -> None:
    def run(device: str) -> list[torch.Tensor]:
        results = short_trained(device, mask, "rows", torch.float64, create_graph=True)
        loss = sum(x.square().sum() for x in results[1:])
        loss.backward()
        return [x.detach().cpu() for x in (*results, loss)]

    mine = run("lazy")
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernel has no second-order gradient
        eager = run("cpu")
    assert_close(mine, eager)


#: Memory layouts of q, k and v, whose sizes are (2, 4, length, 8).
LAYOUTS = {
    "of heads": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "row-major": lambda x: x,
    "of features": lambda x: x.permute(3, 0, 1, 2).contiguous().permute(1, 2, 3, 0),
}


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("case", ["plain", "causal", "masked", "float64", "grouped"])
@pytest.mark.parametrize("length", [5, 160])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides(layout: str, length: int, case: str, inference: bool) -> None:
    def run(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        dtype = torch.float64 if case == "float64" else torch.float32
        shared = 2 if case == "grouped" else 4
        q, k, v = (
            LAYOUTS[layout](torch.randn(2, heads, length, 8, dtype=dtype).to(device))
            for heads in (4, shared, shared)
        )
        mask = torch.ones(length, length, device=device).tril().bool()
        with torch.inference_mode(inference):
            result = F.scaled_dot_product_attention(
                q, k, v, attn_mask=mask if case == "masked" else None,
                is_causal=case == "causal", enable_gqa=case == "grouped",
            )  # fmt: skip
            result.select(0, 0).mul_(2)
            result.add_(1)
        return result

    eager, lazy = run("cpu"), run("lazy")
    assert lazy.stride() == eager.stride()
    assert lazy.is_inference() == eager.is_inference()
    assert_close(lazy, eager.clone(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tangents_of_views(layout: str) -> None:
    def run(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        x, tangent = (
            LAYOUTS[layout](torch.randn(2, 4, 5, 8).to(device)) for _ in range(2)
        )
        with torch.autograd.forward_ad.dual_level():
            x = torch.autograd.forward_ad.make_dual(x, tangent)
            joined = F.scaled_dot_product_attention(x, x, x).transpose(1, 2).flatten(2)
            return list(torch.autograd.forward_ad.unpack_dual(joined))

    mine = run("lazy")
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernel has no tangents
        eager = run("cpu")
    assert_close(mine, eager)
