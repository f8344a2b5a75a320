"""With frameworks that start several processes, the losses on device lazy equal those on
the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

LIGHTNING = """
import json, os, sys, torch, lightning
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    def training_step(self, batch, index):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.seen = batch[0].device.type
        self.log("loss", loss, sync_dist=True, on_epoch=True, on_step=False)
        return loss
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 0.05)

if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(32, 4)
    loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), 4)
    trainer = lightning.Trainer(
        accelerator=os.environ["DEVICE"], devices=2, strategy="ddp", max_epochs=2,
        logger=False, enable_progress_bar=False, enable_model_summary=False,
        enable_checkpointing=False)
    module = Module()
    trainer.fit(module, loader)
    if trainer.is_global_zero:
        losses = [trainer.callback_metrics["loss"].item()]
        open(sys.argv[1], "w").write(
            json.dumps([module.seen, trainer.world_size, losses]))
    # Otherwise a thread of Gloo may abort the process when Python ends (torch 2.13).
    torch.distributed.destroy_process_group()
"""


ACCELERATE = """
import json, os, sys, torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(32, 4)
loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), 4)
accelerator = Accelerator(cpu=os.environ["DEVICE"] == "cpu")
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), 0.05)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
losses = []
for _ in range(2):
    for batch, labels in loader:
        loss = nn.functional.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(accelerator.gather(loss.detach()).mean().item())
if accelerator.is_main_process:
    open(sys.argv[1], "w").write(
        json.dumps([batch.device.type, accelerator.num_processes, losses]))
accelerator.end_training()
"""

# The same program, which Accelerate's launcher for notebooks starts from Python.
NOTEBOOK = (
    "import socket\nfrom accelerate import notebook_launcher\n\ndef train():\n"
    + textwrap.indent(ACCELERATE.strip(), "    ")
    + """

if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    notebook_launcher(train, num_processes=2, use_port=str(port))
"""
)

TRAINER = """
import json, os, sys, torch
from torch import nn
from torch.utils.data import TensorDataset
from transformers import Trainer, TrainingArguments

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    def forward(self, x, labels):
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

torch.manual_seed(0)
x = torch.randn(32, 4)
data = [{"x": row, "labels": (row.sum() > 0).long()} for row in x]
arguments = TrainingArguments(
    output_dir=sys.argv[1] + ".d", num_train_epochs=2, per_device_train_batch_size=4,
    learning_rate=0.05, logging_steps=1, report_to=[], save_strategy="no",
    disable_tqdm=True, use_cpu=os.environ["DEVICE"] == "cpu")
trainer = Trainer(Classifier(), arguments, train_dataset=data)
trainer.train()
if trainer.is_world_process_zero():
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    device = next(trainer.model.parameters()).device.type
    open(sys.argv[1], "w").write(json.dumps([device, arguments.world_size, losses]))
# Otherwise a thread of Gloo may abort the process when Python ends (torch 2.13).
torch.distributed.destroy_process_group()
"""


def _run(text: str, device: str, folder: Path, launcher: tuple[str, ...] = ()) -> list:
    script, report = folder / f"{device}.py", folder / f"{device}.json"
    script.write_text(text)
    environment = {
        **os.environ,
        "DEVICE": device,
        "ACCELERATE_TORCH_DEVICE": device,
        "OMP_NUM_THREADS": "1",
    }
    result = subprocess.run(
        [sys.executable, *launcher, str(script), str(report)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        timeout=240,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(report.read_text())


def test_lightning(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    reports = {device: _run(LIGHTNING, device, tmp_path) for device in ("cpu", "lazy")}
    for device, (used, ranks, _) in reports.items():
        assert (used, ranks) == (device, 2)
    assert reports["lazy"][2] == pytest.approx(reports["cpu"][2], rel=1e-4)


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


LAUNCH = ("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2")
LAUNCH += ("--main_process_port", "0")


@pytest.mark.parametrize(
    "package, text, launcher",
    [
        ("accelerate", ACCELERATE, TORCHRUN),
        ("accelerate", ACCELERATE, LAUNCH),
        ("accelerate", NOTEBOOK, ()),
        ("transformers", TRAINER, TORCHRUN),
        ("transformers", TRAINER, LAUNCH),
    ],
    ids=["torchrun", "launch", "notebook", "trainer_torchrun", "trainer_launch"],
)
def test_accelerate(package: str, text: str, launcher, tmp_path: Path) -> None:
    pytest.importorskip(package)
    reports = {
        device: _run(text, device, tmp_path, launcher) for device in ("cpu", "lazy")
    }
    for device, (used, ranks, _) in reports.items():
        assert (used, ranks) == (device, 2)
    assert reports["lazy"][2] == pytest.approx(reports["cpu"][2], rel=1e-3)
