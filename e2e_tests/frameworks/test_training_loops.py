"""Libraries with their own training loop: training on device lazy equals training on
the CPU, and their checkpoints can be loaded."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
import torch_ltc
from subprocesses import run_python
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


def points(number: int = 32) -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(number, 4, generator=generator)
    return TensorDataset(x, (x.sum(1) > 0).long())


def classifier() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


ACCELERATE = """
import sys, torch
from torch import nn
from accelerate import Accelerator
accelerator = Accelerator(gradient_accumulation_steps=2)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
x = torch.randn(32, 4)
data = torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long())
loader = torch.utils.data.DataLoader(data, 8)
model, optimizer, loader, schedule = accelerator.prepare(
    model, optimizer, loader, schedule)
def train():
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step(); schedule.step(); optimizer.zero_grad()
    return accelerator.gather_for_metrics(loss).item()
train()
accelerator.save_state(sys.argv[1])
accelerator.save_model(model, sys.argv[1] + "/model")
first = train()
accelerator.load_state(sys.argv[1])
print(accelerator.device.type, first, train())
"""


def test_accelerate(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    results = {}
    for device in ("cpu", "lazy"):
        program = (
            f"import sys; sys.argv = ['', {str(tmp_path / device)!r}]\n{ACCELERATE}"
        )
        output = run_python(program, ACCELERATE_TORCH_DEVICE=device).stdout
        name, *losses = output.split()
        assert name == device
        results[device] = [float(loss) for loss in losses]
        assert losses[0] == losses[1]  # training from the checkpoint repeats the steps
    assert results["lazy"] == pytest.approx(results["cpu"], rel=1e-4)


def lightning_module(lightning):
    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = classifier()

        def loss(self, batch) -> torch.Tensor:
            x, y = batch
            logits = self.net(x)
            self.seen = x.device.type, logits.dtype
            return functional.cross_entropy(logits.float(), y)

        def training_step(self, batch, index) -> torch.Tensor:
            loss = self.loss(batch)
            self.log("loss", loss, prog_bar=True)
            return loss

        def validation_step(self, batch, index) -> None:
            self.log("validation", self.loss(batch))

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 0.05)

    return Module()


def fit(lightning, folder: Path, **arguments):
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    trainer = lightning.Trainer(
        max_epochs=2,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[
            lightning.pytorch.callbacks.EarlyStopping("validation"),
            lightning.pytorch.callbacks.ModelCheckpoint(folder, monitor="validation"),
        ],
        **arguments,
    )
    module = lightning_module(lightning)
    loader = DataLoader(points(), 8)
    trainer.fit(module, loader, loader)
    best = trainer.checkpoint_callback.best_model_path
    again = lightning_module(lightning)
    trainer.validate(again, loader, ckpt_path=best, verbose=False)
    return module, trainer.callback_metrics["validation"].item()


def test_lightning_trainer(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    _, expected = fit(lightning, tmp_path / "cpu", accelerator="cpu")
    module, result = fit(lightning, tmp_path / "lazy", accelerator="lazy")
    assert module.seen == ("lazy", torch.float32)
    assert result == pytest.approx(expected, rel=1e-4)


def test_lightning_autocast(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    module, _ = fit(lightning, tmp_path, accelerator="lazy", precision="bf16-mixed")
    assert module.seen == ("lazy", torch.bfloat16)


def test_lightning_chooses_the_accelerator_of_torch(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    # In a program that has created a lazy tensor, the accelerator is device lazy.
    torch.ones(1, device="lazy").add(1)
    assert torch.accelerator.current_accelerator().type == "lazy"
    module, _ = fit(lightning, tmp_path, accelerator="auto")
    assert module.seen[0] == "lazy"


def test_lightning_has_one_device() -> None:
    lightning = pytest.importorskip("lightning")
    with pytest.raises(ValueError, match="There is one device lazy"):
        lightning.Trainer(accelerator="lazy", devices=[0, 1], logger=False)


def test_lightning_fabric() -> None:
    lightning = pytest.importorskip("lightning")

    def train(accelerator: str) -> float:
        fabric = lightning.Fabric(accelerator=accelerator, devices=1)
        fabric.launch()
        model = classifier()
        model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.1))
        for x, y in fabric.setup_dataloaders(DataLoader(points(), 8)):
            assert x.device.type == accelerator
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            fabric.backward(loss)
            fabric.clip_gradients(model, optimizer, max_norm=1.0)
            optimizer.step()
        return loss.item()

    assert train("lazy") == pytest.approx(train("cpu"), rel=1e-4)


def test_skorch(tmp_path: Path) -> None:
    skorch = pytest.importorskip("skorch")

    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = classifier()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x).softmax(1)

    x, y = (tensor.numpy() for tensor in points(64).tensors)

    def train(device: str) -> tuple[float, list[int]]:
        torch.manual_seed(0)
        net = skorch.NeuralNetClassifier(
            Module, max_epochs=4, lr=0.5, device=device, verbose=0, train_split=None
        ).fit(x, y)
        loss = net.history[-1]["train_loss"]
        path = tmp_path / device
        net.save_params(f_params=path)
        net.initialize().load_params(f_params=path)
        return loss, net.predict(x).tolist()

    loss, classes = train("lazy")
    expected_loss, expected_classes = train("cpu")
    assert loss == pytest.approx(expected_loss, rel=1e-4)
    assert classes == expected_classes


TRAINER = """
import json, os, sys, torch
from transformers import (BertConfig, BertForSequenceClassification, Trainer,
                          TrainingArguments)
class Sentences(torch.utils.data.Dataset):
    def __len__(self): return 24
    def __getitem__(self, i):
        tokens = torch.zeros(9, dtype=torch.long)
        tokens[:4 + i % 5] = 1 + torch.arange(4 + i % 5) * (i + 1) % 49
        return {"input_ids": tokens, "attention_mask": (tokens > 0).long(),
                "labels": i % 2}
def trainer(folder):
    torch.manual_seed(0)
    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2,
                        num_attention_heads=2, intermediate_size=32)
    arguments = TrainingArguments(
        folder, num_train_epochs=2, per_device_train_batch_size=6, save_steps=4,
        eval_strategy="steps", eval_steps=4, report_to=[], disable_tqdm=True,
        optim="adamw_torch_fused", logging_strategy="no", bf16=sys.argv[2] == "bf16",
        use_cpu=os.environ["ACCELERATE_TORCH_DEVICE"] == "cpu")
    return Trainer(BertForSequenceClassification(config), arguments,
                   train_dataset=Sentences(), eval_dataset=Sentences())
folder = sys.argv[1]
whole = trainer(folder)
losses = [whole.train().training_loss, whole.evaluate()["eval_loss"]]
again = trainer(folder)
again.train(resume_from_checkpoint=folder + "/checkpoint-4")
losses.append(again.evaluate()["eval_loss"])
again.save_model(folder + "/model")
loaded = BertForSequenceClassification.from_pretrained(folder + "/model")
assert torch.equal(loaded.classifier.weight, again.model.classifier.weight.cpu())
shape = again.predict(Sentences()).predictions.shape
print("RESULT", json.dumps([whole.args.device.type, list(shape), losses]))
"""


@pytest.mark.parametrize("precision, tolerance", [("float32", 1e-4), ("bf16", 1e-2)])
def test_transformers_trainer(precision: str, tolerance: float, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("transformers")
    import json

    losses = {}
    for device in ("cpu", "lazy"):
        arguments = ["", str(tmp_path / device), precision]
        program = f"import sys; sys.argv = {arguments}\n{TRAINER}"
        output = run_python(
            program, timeout=300, ACCELERATE_TORCH_DEVICE=device, HF_HUB_OFFLINE="1"
        ).stdout
        used, shape, losses[device] = json.loads(output.split("RESULT")[1])
        assert used == device and shape == [24, 2]
        # A run that resumes from a checkpoint ends with the loss of the uninterrupted run.
        assert losses[device][2] == pytest.approx(losses[device][1], rel=tolerance / 10)
    assert losses["lazy"] == pytest.approx(losses["cpu"], rel=tolerance)


def test_generation() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=2, vocab_size=50, bos_token_id=0, eos_token_id=0
    )
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval()
    prompt = torch.tensor([[3, 7, 11], [5, 9, 2]])

    def generate(device: str) -> list[list[list[int]]]:
        model.to(device)
        ways = [{"do_sample": False}, {"do_sample": False, "num_beams": 2}]
        results = []
        for way in [*ways, {"do_sample": True, "top_k": 5}]:
            torch.manual_seed(0)
            results.append(
                model.generate(
                    prompt.to(device),
                    attention_mask=torch.ones_like(prompt).to(device),
                    max_new_tokens=5,
                    pad_token_id=0,
                    **way,
                ).tolist()
            )
        return results

    assert generate("cpu") == generate("lazy")
    torch_ltc.wait_device_ops()
