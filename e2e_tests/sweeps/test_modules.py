"""Modules of `module_db` on device `lazy`: none fails or differs from eager.

Each run uses the first input of each module in training mode, with the gradients in a
separate program. `--full` uses all inputs, also in evaluation mode, and also with the
gradients in the same program.
"""

from __future__ import annotations

import pytest
from sweeps import modules


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    full = metafunc.config.getoption("--full")
    cases = [
        pytest.param(
            info,
            training,
            cut,
            id=f"{info.name}-{'train' if training else 'eval'}-{'cut' if cut else 'whole'}",
        )
        for info in modules.modules()
        for training in (True, False)
        for cut in (True, False)
        if full or (training and cut)
    ]
    metafunc.parametrize(("info", "training", "cut"), cases)


def test_module(
    info, training: bool, cut: bool, request: pytest.FixtureRequest
) -> None:
    if reason := modules.EXCLUDED.get(info.name):
        pytest.skip(reason)
    limit = None if request.config.getoption("--full") else 1
    outcome = modules.sweep(info, training, limit, cut)
    assert outcome.status in ("agrees", "fallback"), outcome.detail
