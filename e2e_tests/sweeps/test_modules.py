"""Modules of `module_db` on device `lazy`: nothing fails or differs from eager.

Each run takes the first input of each module in training, `--full` all inputs, in
evaluation too.
"""

from __future__ import annotations

import pytest
from sweeps import modules


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    full = metafunc.config.getoption("--full")
    cases = [
        pytest.param(
            info, training, id=f"{info.name}-{'train' if training else 'eval'}"
        )
        for info in modules.modules()
        for training in (True, False)
        if full or training
    ]
    metafunc.parametrize(("info", "training"), cases)


def test_module(info, training: bool, request: pytest.FixtureRequest) -> None:
    if reason := modules.EXCLUDED.get(info.name):
        pytest.skip(reason)
    limit = None if request.config.getoption("--full") else 1
    outcome = modules.sweep(info, training, limit)
    assert outcome.status in ("agrees", "fallback"), outcome.detail
