"""Draws training loops: a model, an optimizer, some steps, and what scripts do between
steps. A loop is unrolled into lines, so that the shortest failing program can be found.
"""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass, field

from fuzz.loop_events import another_event
from fuzz.loop_parts import (
    ACTIVATIONS,
    ATTENTION,
    LOSSES,
    OPTIMIZERS,
    SCHEDULERS,
)
from fuzz.program import Line, Program

TIERS = ("compile", "compile", "interpret", "auto")


def draw_loop(seed: int) -> Program:
    return _Loop(seed).program()


@dataclass
class _Loop:
    seed: int
    lines: list[Line] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(f"loop {self.seed}")
        self.classes = self.random.randint(2, 4)

    def program(self) -> Program:
        model = self._model()
        self._add(f"model = {model}.to(torch.float64).to(device)")
        self._optimizer(any(part in model for part in ATTENTION))
        cuts = self.random.choice((0.0, 0.1, 0.4))
        for number in range(self.random.randint(2, 5)):
            for text in self._step(number):
                self._add(text)
                if self.random.random() < cuts:
                    self._add("mark_step()")
        self._add("report(model, optimizer)")
        longest = self.random.choice((0, 0, self.random.randint(5, 120)))
        return Program(self.seed, self.lines, longest, TIERS[self.seed % len(TIERS)])

    def _add(self, text: str) -> None:
        names = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)]
        reads = {n.id for n in names if isinstance(n.ctx, ast.Load)}
        writes = [n.id for n in names if isinstance(n.ctx, ast.Store)]
        self.lines.append(Line(text, reads, writes))

    def _one_of(self, *texts: str) -> str:
        return self.random.choice(texts)

    def _maybe(self, text: str, probability: float = 0.5) -> list[str]:
        return [text] if self.random.random() < probability else []

    # -- the model -------------------------------------------------------------

    def _model(self) -> str:
        self.kind = self._one_of("image", "sequence", "words", "flat")
        layers = getattr(self, f"_{self.kind}")()
        return f"nn.Sequential({', '.join(layers)})"

    def _image(self) -> list[str]:
        channels, size = self.random.randint(2, 4), self.random.choice((6, 7, 8))
        self.shape = [channels, size, size]
        layers: list[str] = []
        for _ in range(self.random.randint(1, 2)):
            kernel, out = self.random.choice((1, 3)), 4
            groups = 2 if channels % 2 == 0 and self.random.random() < 0.2 else 1
            mode = self._one_of("zeros", "zeros", "reflect", "circular")
            layers.append(
                f"nn.Conv2d({channels}, {out}, {kernel}, padding={kernel // 2}, groups={groups}, "
                f"bias={self.random.random() < 0.5}, padding_mode='{mode}')"
            )
            channels = out
            layers += self._maybe(
                self._one_of(
                    "nn.BatchNorm2d(4)", "nn.BatchNorm2d(4, momentum=None)", "nn.GroupNorm(2, 4)",
                    "nn.InstanceNorm2d(4, affine=True)", "nn.LocalResponseNorm(2)",
                ), 0.7,
            )  # fmt: skip
            layers.append(self._one_of(*ACTIVATIONS))
            layers += self._maybe(
                self._one_of("nn.MaxPool2d(2)", "nn.AvgPool2d(2, ceil_mode=True)", "nn.Dropout2d(0.2)",
                             "nn.Upsample(scale_factor=2)", "Residual(nn.Conv2d(4, 4, 3, padding=1), nn.Tanh())", "Counting()",
                             "nn.ConvTranspose2d(4, 4, 3, padding=1)", "nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=4)",
                             "nn.Upsample(scale_factor=1.5, mode='bilinear')", "nn.ReflectionPad2d(1)", "nn.LPPool2d(2, 2, 1)",
                             "nn.Sequential(nn.PixelUnshuffle(1), nn.ChannelShuffle(2))", "nn.Softmax2d()", "nn.ZeroPad2d((1, 0, 0, 1))",
                             "nn.MaxPool2d(3, 1, padding=1, dilation=1)", "nn.Sequential(nn.Conv2d(4, 8, 1), nn.GLU(1))",
                             "nn.Sequential(nn.Conv2d(4, 16, 1), nn.PixelShuffle(2))"),
            )  # fmt: skip
            if "MaxPool" in layers[-1] or "AvgPool" in layers[-1]:
                size //= 2
                if size < 4:
                    break
        return [*layers, "nn.AdaptiveAvgPool2d(2)", "nn.Flatten()", f"nn.Linear(16, {self.classes})"]  # fmt: skip

    def _over_time(self) -> list[str]:
        """Returns layers whose operand and result are sequences with 4 features."""
        choices = (
            "First(nn.LSTM(4, 4, batch_first=True))", "First(nn.GRU(4, 4, batch_first=True))",
            "First(nn.RNN(4, 2, batch_first=True, bidirectional=True))",
            "First(nn.LSTM(4, 4, 2, batch_first=True, dropout=0.3))", "Attend(4, 2, causal=True)",
            "Residual(nn.LayerNorm(4), Attend(4, 2, causal=False))", "nn.Linear(4, 4)",
            "nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True)",
            "nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True, norm_first=True)",
            "nn.RMSNorm(4)", "nn.LayerNorm(4)", "nn.Dropout(0.3)", "Counting()",
            "Heads(nn.MultiheadAttention(4, 2, batch_first=True, dropout=0.1))", "First(nn.LSTM(4, 6, proj_size=4, batch_first=True))",
            "Heads(nn.MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True), 1)", "Cells(nn.GRUCell(4, 4))", "Cells(nn.LSTMCell(4, 4))",
            "OverTime(nn.Conv1d(4, 4, 3, padding=1))", "OverTime(nn.BatchNorm1d(4))", "Spectrum()", "Residual(Softmax(), nn.Linear(4, 4))",
        )  # fmt: skip
        layers = self.random.sample(choices, self.random.randint(1, 3))
        return [*layers, self._one_of(*ACTIVATIONS[:-1])]

    def _sequence(self) -> list[str]:
        self.shape = [self.random.randint(3, 5), 4]
        return [*self._over_time(), "Mean()", f"nn.Linear(4, {self.classes})"]

    def _words(self) -> list[str]:
        self.shape = [self.random.randint(3, 5)]
        head = f"nn.Linear(4, {self.classes})"
        if self.random.random() < 0.2:
            mode = self._one_of("mean", "sum")
            return [f"nn.EmbeddingBag(7, 4, mode='{mode}')", "nn.Tanh()", head]
        options = self._one_of("", ", padding_idx=0", ", max_norm=1.0", ", scale_grad_by_freq=True")  # fmt: skip
        return [f"nn.Embedding(7, 4{options})", *self._over_time(), "Mean()", head]

    def _flat(self) -> list[str]:
        self.shape = [5]
        layers = ["nn.Linear(5, 6)"]
        for _ in range(self.random.randint(1, 3)):
            layers.append(
                self._one_of(
                    "nn.BatchNorm1d(6)", "nn.LayerNorm(6)", "nn.Dropout(0.4)", "nn.AlphaDropout(0.2)",
                    "Residual(nn.Linear(6, 6), nn.Tanh())", "nn.Sequential(nn.Linear(6, 12), nn.GLU())",
                    "nn.utils.parametrizations.weight_norm(nn.Linear(6, 6))", "Counting()", "Twice(nn.Bilinear(6, 6, 6))",
                    "nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6))", "Taken(6)", "nn.Unflatten(1, (2, 3)), nn.Flatten()",
                )
            )  # fmt: skip
            layers.append(self._one_of(*ACTIVATIONS[:-1]))
        return [*layers, f"nn.Linear(6, {self.classes})"]

    # -- the step --------------------------------------------------------------

    def _optimizer(self, has_attention: bool) -> None:
        parameters = "model.parameters()"
        if self.random.random() < 0.3:
            parameters = (
                "[{'params': [p for p in model.parameters() if p.dim() > 1], 'weight_decay': 0.01}, "
                "{'params': [p for p in model.parameters() if p.dim() < 2], 'lr': 0.002}]"
            )
        # The exact gradient of the keys' bias is zero, so its sign is that of a rounding
        # error.
        names = [n for n in OPTIMIZERS if not (has_attention and n.startswith("Rprop"))]
        chosen = self._one_of(*names).format(p=parameters)
        self._add(f"optimizer = optim.{chosen}")
        self.has_scheduler = self.random.random() < 0.4
        if self.has_scheduler:
            chosen = self._one_of(*SCHEDULERS)
            self._add(f"scheduler = optim.lr_scheduler.{chosen}")
        self.has_average = self.random.random() < 0.3
        if self.has_average:
            self._add("average = copy.deepcopy(model)")
        self._add("total = torch.zeros((), dtype=torch.float64, device=device)")
        self._add("history = torch.zeros(6, dtype=torch.float64, device=device)")
        self._add("recent = history[1:5].view(2, 2)")
        self.batch = self.random.randint(2, 4)
        self.loss = self.random.choice(LOSSES)
        self.clip = self._maybe(
            self._one_of(
                "nn.utils.clip_grad_norm_(model.parameters(), 0.5)",
                "nn.utils.clip_grad_value_(model.parameters(), 0.1)",
                "total += nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
            ), 0.4,
        )  # fmt: skip
        self.rounds = self.random.choice((1, 1, 1, 2))
        zero = f"optimizer.zero_grad(set_to_none={self.random.random() < 0.7})"
        self.zero = zero

    def _step(self, number: int) -> list[str]:
        if self.random.random() < 0.2:
            self.batch = self.random.randint(2, 5)
        lines = [self.zero]
        for part in range(self.rounds):
            at = f"{number}_{part}"
            shape = [self.batch, *self.shape]
            values = f"below(7, {self.random.randrange(99)}, {shape})"
            if self.kind != "words":
                values = f"noise({self.random.randrange(99)}, {shape}, torch.float64)"
            lines += [f"x{at} = {values}", f"loss{at} = {self._loss_of(at)}"]
            lines += self._maybe(self._event(number), 0.3)
            scaled = f"(loss{at} / {self.rounds})" if self.rounds > 1 else f"loss{at}"
            lines.append(f"{scaled}.backward()")
        self.last_loss, self.last_x = f"loss{at}", f"x{at}"
        lines += self._maybe(self._event(number), 0.2)
        lines += [*self.clip, "optimizer.step()"]
        lines += ["scheduler.step()"] if self.has_scheduler else []
        lines += ["follow(average, model, 0.3)"] if self.has_average else []
        lines.append(f"total += {self.last_loss}.detach()")
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            lines.append(self._event(number))
        return lines

    def _loss_of(self, at: str) -> str:
        seed, shape = self.random.randrange(99), [self.batch, self.classes]
        return self.loss.format(
            result=f"model(x{at})",
            classes=f"below({self.classes}, {seed}, [{self.batch}])",
            values=f"noise({seed}, {shape}, torch.float64)",
            bits=f"below(2, {seed}, {shape}).double()",
            signs=f"(below(2, {seed}, {shape}).double() * 2 - 1)",
            count=self.classes,
        )

    # -- between steps ---------------------------------------------------------

    def _event(self, number: int) -> str:
        at = f"{number}_{len(self.lines)}_{self.random.randrange(99)}"
        some = f"list(model.parameters())[{self.random.randrange(2)}]"
        own = random.Random(f"event {self.seed} {at}")
        if own.random() < 0.4:
            return another_event(own, some, at, getattr(self, "last_x", None))
        texts = [
            "mark_step()", "mark_step()", f"kept{at} = {some}.detach().view(-1)[:3]",
            f"kept{at} = {some}.data.flatten()[1:]", f"held{at} = [p.grad for p in model.parameters()]",
            f"{some}.data.mul_(0.9)", f"{some}.detach().view(-1)[:2].add_(0.1)",
            f"{some}.requires_grad_({self.random.random() < 0.6})", "optimizer.param_groups[0]['lr'] *= 0.7",
            f"state{at} = model.state_dict()", f"state{at} = copy.deepcopy(model.state_dict())",
            "model.load_state_dict(through_file(model.state_dict()))",
            "optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))",
            "optimizer.load_state_dict(through_file(optimizer.state_dict()))",
            f"twin{at} = copy.deepcopy(model); report(twin{at})", "report(model)", "report(model, optimizer)",
            "check('recent', recent)", "recent.mul_(0.5)", "history.copy_(history.roll(1))",
            f"history[{number}] = total", "history[total > 1e9] = 0", "repr(history)", "total.item()",
            "check('total', total)", f"torch.manual_seed({number})", f"shape{at} = str(history.shape)",
            "[p.grad.mul_(0.5) for p in model.parameters() if p.grad is not None]",
            f"hook{at} = {some}.register_hook(lambda g: g * 0.5) if {some}.requires_grad else None",
            "model.zero_grad()", "torch.save(model.state_dict(), '/dev/null')",
        ]  # fmt: skip
        if hasattr(self, "last_x"):
            inference = self.random.random() < 0.5
            call = f"evaluate(model, {self.last_x}, {inference})"
            texts += [
                f"check('eval', {call})", f"outcome{at} = {call}", f"check('eval', in_thread(lambda: {call}))",
                f"{self.last_loss}.item()", f"repr({self.last_loss})", f"check('loss', {self.last_loss})",
                f"history[{number}] = {self.last_loss}.detach()", f"in_thread(lambda: {self.last_loss}.item())",
            ] * 2  # fmt: skip
        if any("kept" in line.text for line in self.lines):
            names = [n for line in self.lines for n in line.writes if n[:4] == "kept"]
            name = self.random.choice(names)
            texts += [f"check('kept', {name})", f"{name}.mul_(0.9)"] * 3
        if any("state" in line.text for line in self.lines):
            names = [n for line in self.lines for n in line.writes if n[:5] == "state"]
            texts += [f"model.load_state_dict({self.random.choice(names)})"] * 3 if names else []  # fmt: skip
        return self.random.choice(texts)
