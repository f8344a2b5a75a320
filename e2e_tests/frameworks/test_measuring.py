"""torchmetrics and TensorBoard accept lazy tensors."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from comparison import assert_close
from torch import nn

METRICS = {
    "Accuracy": {"task": "multiclass", "num_classes": 3},
    "F1Score": {"task": "multiclass", "num_classes": 3, "average": "macro"},
    "ConfusionMatrix": {"task": "multiclass", "num_classes": 3},
    "AUROC": {"task": "multiclass", "num_classes": 3},
    "Recall": {"task": "binary"},
    "CalibrationError": {"task": "binary"},
    "MeanMetric": {},
    "MeanSquaredError": {},
    "PearsonCorrCoef": {},
}


@pytest.mark.parametrize("name", METRICS)
def test_torchmetrics(name: str) -> None:
    torchmetrics = pytest.importorskip("torchmetrics")
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.rand(3, 12, 3, generator=generator).softmax(-1)
    classes = torch.randint(0, 3, (3, 12), generator=generator)
    task = METRICS[name].get("task")

    def measure(device: str) -> torch.Tensor:
        metric = getattr(torchmetrics, name)(**METRICS[name]).to(device)
        for p, c in zip(probabilities.to(device), classes.to(device), strict=True):
            if task == "multiclass":
                metric.update(p, c)
            elif task == "binary":
                metric.update(p[:, 0], (c > 0).long())
            elif name == "MeanMetric":
                metric.update(p)
            else:
                metric.update(p[:, 0], c.float())
        result = metric.compute()
        metric.reset()
        assert result.device.type == device
        return result.cpu()

    assert_close(measure("lazy"), measure("cpu"))


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    model, x = nn.Linear(3, 2).to("lazy"), torch.ones(2, 3, device="lazy")
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", model(x).sum() * 0 + 3, 7)
        writer.add_histogram("weight", model.weight, 7)
        writer.add_image("image", torch.rand(3, 4, 4).to("lazy"), 7)
        writer.add_graph(model, x)
        writer.add_embedding(torch.rand(4, 3).to("lazy"))
        writer.add_pr_curve("curve", torch.ones(2).to("lazy"), torch.rand(2).to("lazy"))
    written = EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.value) for e in written.Scalars("loss")] == [(7, 3.0)]
    assert written.Histograms("weight")[0].histogram_value.num == 6
    assert written.Images("image")[0].width == 4
    assert written.Graph().node
