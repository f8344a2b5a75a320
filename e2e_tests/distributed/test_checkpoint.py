"""Distributed checkpoints of training on device lazy equal eager's; any number of ranks can
resume from them."""

from __future__ import annotations

import pytest
from distributed.checkpoint_cases import load, save
from distributed.launching import run_ranks


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("checkpoints"))
    run_ranks(save, 2, folder)
    return folder


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_files_are_eagers(folder, ranks):
    run_ranks(load, ranks, folder)
