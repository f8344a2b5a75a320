"""Model libraries: a few training steps on device lazy equal those on the CPU, and saved
models can be loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch_ltc
from comparison import assert_close
from torch import nn
from torch.nn import functional

TIERS = ("compile", "interpret")


def losses(
    device: str, model: nn.Module, loss: Callable[[int], torch.Tensor]
) -> list[float]:
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=1e-2
    )
    values = []
    for step in range(3):
        optimizer.zero_grad()
        value = loss(step)
        value.backward()
        optimizer.step()
        values.append(value.detach())
    return [value.item() for value in values]


def language_model() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=2, vocab_size=50, bos_token_id=0, eos_token_id=0
    )
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(config)


@pytest.mark.parametrize("tier", TIERS)
def test_peft(tier: str, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    tokens = torch.arange(20).view(2, 10) % 7

    def train(device: str) -> tuple[list[float], torch.Tensor, torch.Tensor]:
        config = peft.LoraConfig(
            task_type="CAUSAL_LM", r=4, lora_dropout=0.1, fan_in_fan_out=True
        )
        model = peft.get_peft_model(language_model(), config).to(device)
        x = tokens.to(device)
        found = losses(device, model, lambda step: model(input_ids=x, labels=x).loss)
        model.eval()
        logits = model(input_ids=x).logits.detach()
        model.save_pretrained(tmp_path / device)
        loaded = peft.PeftModel.from_pretrained(language_model(), tmp_path / device)
        loaded.eval().to(device)
        assert_close(loaded(input_ids=x).logits, logits)
        merged = model.merge_and_unload()(input_ids=x).logits.detach()
        return found, logits.cpu(), merged.cpu()

    with torch_ltc.config(tier=tier):
        torch.testing.assert_close(
            train("lazy"), train("cpu"), rtol=1e-3, atol=1e-4, check_stride=False
        )


@pytest.mark.parametrize("tier", TIERS)
def test_diffusers(tier: str, tmp_path: Path) -> None:
    diffusers = pytest.importorskip("diffusers")

    def train(device: str) -> tuple[list[float], torch.Tensor]:
        torch.manual_seed(0)
        model = diffusers.UNet2DModel(
            sample_size=8,
            in_channels=1,
            out_channels=1,
            block_out_channels=(8, 8),
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            layers_per_block=1,
            norm_num_groups=4,
            attention_head_dim=4,
        ).to(device)
        scheduler = diffusers.DDPMScheduler(num_train_timesteps=10)
        average = diffusers.training_utils.EMAModel(model.parameters(), decay=0.9)
        images = torch.rand(4, 1, 8, 8)

        def loss(step: int) -> torch.Tensor:
            average.step(model.parameters())
            noise = torch.randn(images.shape).to(device)
            times = torch.randint(0, 10, (4,)).to(device)
            noisy = scheduler.add_noise(images.to(device), noise, times)
            return functional.mse_loss(model(noisy, times).sample, noise)

        found = losses(device, model, loss)
        pipeline = diffusers.DDPMPipeline(unet=model, scheduler=scheduler)
        pipeline.set_progress_bar_config(disable=True)
        pipeline.save_pretrained(tmp_path / device)
        pipeline = diffusers.DDPMPipeline.from_pretrained(tmp_path / device).to(device)
        pipeline.set_progress_bar_config(disable=True)
        result = pipeline(
            batch_size=2,
            num_inference_steps=3,
            output_type="np",
            generator=torch.Generator().manual_seed(0),
        )
        return found, torch.as_tensor(result.images)

    with torch_ltc.config(tier=tier):
        assert_close(train("lazy"), train("cpu"), rtol=1e-3, atol=1e-3)


def test_timm() -> None:
    timm = pytest.importorskip(
        "timm",
        reason="timm needs a torchvision that can be loaded with this build of torch",
        exc_type=(ImportError, RuntimeError),
    )

    def train(device: str) -> list[float]:
        torch.manual_seed(0)
        model = timm.create_model("resnet10t", num_classes=3).to(device)
        average = timm.utils.ModelEmaV3(model, decay=0.9)
        criterion = timm.loss.SoftTargetCrossEntropy()
        x = torch.randn(4, 3, 32, 32).to(device)
        y = functional.one_hot(torch.arange(4) % 3, 3).float().to(device)

        def loss(step: int) -> torch.Tensor:
            average.update(model)
            return criterion(model(x), y)

        return losses(device, model, loss)

    assert train("lazy") == pytest.approx(train("cpu"), rel=1e-3)


LAYERS = ("GCNConv", "GATConv", "SAGEConv", "GINConv", "TransformerConv", "EdgeConv")


@pytest.mark.parametrize("name", LAYERS)
def test_graph_networks(name: str) -> None:
    pytest.importorskip("torch_geometric")
    from torch_geometric import nn as graphs
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader

    ring = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    generator = torch.Generator().manual_seed(0)
    data = [
        Data(
            x=torch.randn(5, 4, generator=generator),
            edge_index=ring,
            y=torch.tensor(i % 2),
        )
        for i in range(6)
    ]

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = getattr(graphs, name)
            inner = {"GINConv": (nn.Linear(4, 8),), "EdgeConv": (nn.Linear(8, 8),)}
            self.layer = layer(*inner.get(name, (4, 8)))
            self.norm, self.head = graphs.BatchNorm(8), nn.Linear(8, 2)

        def forward(self, batch) -> torch.Tensor:
            hidden = self.norm(self.layer(batch.x, batch.edge_index)).relu()
            pooled = graphs.global_mean_pool(hidden, batch.batch, batch.num_graphs)
            return self.head(
                pooled + graphs.global_max_pool(hidden, batch.batch, batch.num_graphs)
            )

    def train(device: str) -> list[float]:
        torch.manual_seed(0)
        model = Network().to(device)
        batches = [batch.to(device) for batch in DataLoader(data, 2)]

        def loss(step: int) -> torch.Tensor:
            return functional.cross_entropy(model(batches[step]), batches[step].y)

        return losses(device, model, loss)

    assert train("lazy") == pytest.approx(train("cpu"), rel=1e-3)
