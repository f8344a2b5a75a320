"""Implements a training step for each PyTorch contender.

A step is the whole body of the user's loop: gradients set to None, forward, loss, backward,
AdamW. `step(batch)` returns the loss; `finish()` returns when all results are computed.
"""

from __future__ import annotations

from typing import Any

import torch
from workloads import LEARNING_RATE, Batch, Workload


class EagerStep:
    device, fused = "cpu", False

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.model = workload.model().to(self.device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=LEARNING_RATE, fused=self.fused or None
        )

    def place(self, batch: Batch) -> Batch:
        return tuple(tensor.to(self.device) for tensor in batch)

    def step(self, batch: Batch) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = self.workload.loss(self.model, batch)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def finish(self) -> None:
        pass

    def counts(self) -> dict[str, Any]:
        return {}


class FusedStep(EagerStep):
    fused = True


class TorchScriptStep(EagerStep):
    device = "lazy"

    def __init__(self, workload: Workload) -> None:
        import torch._lazy
        import torch._lazy.ts_backend

        torch._lazy.ts_backend.init()
        super().__init__(workload)

    def step(self, batch: Batch) -> torch.Tensor:
        loss = super().step(batch)
        torch._lazy.mark_step()
        return loss


class CompiledModelStep(FusedStep):
    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.model = torch.compile(self.model)


class CompiledFunctionStep(EagerStep):
    """The whole step as one compiled function of the parameters, the optimizer's state and
    the batch."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.parameters = dict(self.model.named_parameters())
        self.parameters = {k: v.detach() for k, v in self.parameters.items()}
        self.first = {k: torch.zeros_like(v) for k, v in self.parameters.items()}
        self.second = {k: torch.zeros_like(v) for k, v in self.parameters.items()}
        self.count = torch.zeros(())
        self.function = torch.compile(self._function)

    def _loss(self, parameters: dict[str, torch.Tensor], batch: Batch):
        def call(*inputs: torch.Tensor) -> torch.Tensor:
            return torch.func.functional_call(self.model, parameters, inputs)

        return self.workload.loss(call, batch)

    def _function(self, parameters, first, second, count, batch):
        gradients, loss = torch.func.grad_and_value(self._loss)(parameters, batch)
        count = count + 1
        new = ({}, {}, {})
        for name, gradient in gradients.items():
            m = first[name] * 0.9 + gradient * 0.1
            v = second[name] * 0.999 + gradient * gradient * 0.001
            size = LEARNING_RATE / (1 - 0.9**count)
            scale = (v / (1 - 0.999**count)).sqrt() + 1e-8
            kept = parameters[name] * (1 - LEARNING_RATE * 0.01)
            for table, value in zip(new, (kept - size * m / scale, m, v)):
                table[name] = value
        return (*new, count, loss)

    def step(self, batch: Batch) -> torch.Tensor:
        *state, loss = self.function(
            self.parameters, self.first, self.second, self.count, batch
        )
        self.parameters, self.first, self.second, self.count = state
        return loss


class LazyStep(EagerStep):
    device = "lazy"

    def __init__(self, workload: Workload) -> None:
        import torch_ltc  # noqa: F401 - autoload needs an installed package

        super().__init__(workload)

    def finish(self) -> None:
        import torch_ltc

        torch_ltc.wait_device_ops()

    def counts(self) -> dict[str, Any]:
        import torch_ltc

        values = torch_ltc.metrics()
        names = ("steps", "traced_ops", "compilations", "fallback_calls")
        return {name: values[name] for name in (*names, "implicit_syncs")}


class GeneralStep(LazyStep):
    """Runs the program for all sizes, which the first step builds by running two smaller
    batches before its own."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.smaller: list[Batch] = []

    def place(self, batch: Batch) -> Batch:
        if not self.smaller:
            self.smaller = [
                super(GeneralStep, self).place(tuple(t[:-cut] for t in batch))
                for cut in (2, 1)
            ]
        return super().place(batch)

    def step(self, batch: Batch) -> torch.Tensor:
        import torch_ltc

        smaller, self.smaller = self.smaller, []
        for other in smaller:
            super().step(other)
        loss = super().step(batch)
        if smaller and not torch_ltc.metrics()["programs_bound"]:
            raise RuntimeError("There is no program for all sizes.")
        return loss


class CapturedStep(LazyStep):
    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        import torch_ltc

        self.captured = torch_ltc.capture(super().step)

    def step(self, batch: Batch) -> torch.Tensor:
        return self.captured(batch)


STEPS = {
    "eager": EagerStep,
    "eager fused": FusedStep,
    "TorchScript LTC": TorchScriptStep,
    "compile": CompiledModelStep,
    "compile step": CompiledFunctionStep,
    "lazy": LazyStep,
    "lazy general": GeneralStep,
    "lazy captured": CapturedStep,
}
