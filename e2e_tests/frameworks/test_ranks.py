"""Frameworks that start and join several processes: the losses on device lazy are
those of the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ACCELERATE = """
import json, os, sys, torch
from torch import nn

def train(path):
    from accelerate import Accelerator, InitProcessGroupKwargs
    group = InitProcessGroupKwargs(backend="gloo")
    accelerator = Accelerator(kwargs_handlers=[group])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    x = torch.randn(32, 4)
    data = torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long())
    loader = torch.utils.data.DataLoader(data, 4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(2):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    losses = accelerator.gather_for_metrics(loss.detach().reshape(1)).tolist()
    if accelerator.is_main_process:
        report = [accelerator.device.type, accelerator.num_processes, losses]
        open(path, "w").write(json.dumps(report))
    accelerator.end_training()
"""

TRAINER = """
import json, sys, torch, torch.distributed as dist
from transformers import (BertConfig, BertForSequenceClassification, Trainer,
                          TrainingArguments)
class Sentences(torch.utils.data.Dataset):
    def __len__(self): return 24
    def __getitem__(self, i):
        tokens = torch.zeros(9, dtype=torch.long)
        tokens[:4 + i % 5] = 1 + torch.arange(4 + i % 5) * (i + 1) % 49
        return {"input_ids": tokens, "attention_mask": (tokens > 0).long(),
                "labels": i % 2}
torch.manual_seed(0)
config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2,
                    num_attention_heads=2, intermediate_size=32,
                    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
arguments = TrainingArguments(
    sys.argv[1] + ".out", num_train_epochs=2, per_device_train_batch_size=4,
    save_strategy="no", report_to=[], disable_tqdm=True, logging_strategy="no",
    ddp_backend="gloo")
trainer = Trainer(BertForSequenceClassification(config), arguments,
                  train_dataset=Sentences(), eval_dataset=Sentences())
losses = [trainer.train().training_loss, trainer.evaluate()["eval_loss"]]
if dist.get_rank() == 0:
    report = [trainer.args.device.type, dist.get_world_size(), losses]
    open(sys.argv[1], "w").write(json.dumps(report))
"""

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
"""


def _torchrun(script: str) -> list[str]:
    return ["torch.distributed.run", "--standalone", "--nproc-per-node=2", script]


WAYS = {
    "accelerate": (ACCELERATE + "\ntrain(sys.argv[1])", _torchrun),
    "transformers": (TRAINER, _torchrun),
    "lightning": (LIGHTNING, None),
}


def _run(name: str, device: str, folder: Path) -> list:
    text, launcher = WAYS[name]
    script, report = folder / f"{device}.py", folder / f"{device}.json"
    script.write_text(text)
    command = [sys.executable]
    command += ["-m", *launcher(str(script))] if launcher else [str(script)]
    environment = {
        **os.environ,
        "ACCELERATE_TORCH_DEVICE": device,
        "ACCELERATE_USE_CPU": "false" if device == "lazy" else "true",
        "DEVICE": device,
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    result = subprocess.run(
        [*command, str(report)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        timeout=240,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(report.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_two_processes(name: str, tmp_path: Path) -> None:
    pytest.importorskip(name)
    reports = {device: _run(name, device, tmp_path) for device in ("cpu", "lazy")}
    for device, (used, ranks, _) in reports.items():
        assert (used, ranks) == (device, 2)
    assert reports["lazy"][2] == pytest.approx(reports["cpu"][2], rel=1e-4)
