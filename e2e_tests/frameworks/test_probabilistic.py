"""Libraries of probabilistic models give the CPU's results on device lazy."""

from __future__ import annotations

import pytest
import torch
from comparison import assert_close


def test_gpytorch() -> None:
    gpytorch = pytest.importorskip("gpytorch")

    class Process(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood) -> None:
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            kernel = gpytorch.kernels.RBFKernel() + gpytorch.kernels.MaternKernel()
            self.covariance = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, x):
            mean, covariance = self.mean(x), self.covariance(x)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    def fit(device: str) -> list[torch.Tensor]:
        x = torch.linspace(0, 1, 20).to(device)
        y = (x * 6).sin()
        likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
        model = Process(x, y, likelihood).to(device)
        marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimizer = torch.optim.Adam(model.parameters(), 0.1)
        model.train()
        for _ in range(4):
            optimizer.zero_grad()
            loss = -marginal(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval(), likelihood.eval()
        with torch.no_grad():
            predicted = likelihood(model(x + 0.01))
        return [loss.detach().cpu(), predicted.mean.cpu(), predicted.variance.cpu()]

    assert_close(fit("lazy"), fit("cpu"), rtol=1e-3, atol=1e-3)


def test_pyro() -> None:
    pyro = pytest.importorskip("pyro")
    from pyro import distributions, infer

    def infer_mean(device: str) -> list[float]:
        pyro.clear_param_store()
        pyro.set_rng_seed(0)
        data = (torch.randn(20) + 3).to(device)

        def number(value: float) -> torch.Tensor:
            return torch.tensor(value, device=device)

        def model(data: torch.Tensor) -> None:
            mean = pyro.sample("mean", distributions.Normal(number(0.0), number(10.0)))
            with pyro.plate("data", len(data)):
                pyro.sample("x", distributions.Normal(mean, 1.0), obs=data)

        def guide(data: torch.Tensor) -> None:
            location = pyro.param("location", number(0.0))
            scale = pyro.param(
                "scale", number(1.0), constraint=distributions.constraints.positive
            )
            pyro.sample("mean", distributions.Normal(location, scale))

        svi = infer.SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), infer.Trace_ELBO())
        losses = [svi.step(data) for _ in range(5)]
        torch.manual_seed(0)
        chain = infer.MCMC(
            infer.NUTS(model), num_samples=4, warmup_steps=4, disable_progbar=True
        )
        chain.run(data)
        return [*losses, chain.get_samples()["mean"].mean().item()]

    assert infer_mean("lazy") == pytest.approx(infer_mean("cpu"), rel=1e-3)
