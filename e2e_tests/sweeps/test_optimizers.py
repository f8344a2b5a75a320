"""Optimizers of `optim_db` on device `lazy`: none fails or differs from eager.

Each run uses the first input of each optimizer with each implementation; `--full` uses
all inputs.
"""

from __future__ import annotations

import pytest
from sweeps import optimizers


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    limit = None if metafunc.config.getoption("--full") else 1
    cases = [
        pytest.param(
            info, one, id=f"{optimizers.optimizer_name(info)}-{number}-{one.desc}"
        )
        for info in optimizers.optimizers()
        for number, one in enumerate(optimizers.inputs_of(info, limit))
    ]
    metafunc.parametrize(("info", "one"), cases)


def test_optimizer(info, one) -> None:
    outcome = optimizers.sweep(info, one)
    assert outcome.status in ("agrees", "fallback", "rejected"), outcome.detail
