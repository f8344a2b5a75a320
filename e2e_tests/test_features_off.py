"""For each feature that an option can switch off, a test fails without the feature.

Every run checks that the table lists all options that are on by default; `--full` runs
the tests without their features.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch_ltc

ROOT = Path(__file__).resolve().parent

# For each option: the value that switches the feature off, and a test that must fail then.
FEATURES = {
    "async_execution": (
        "false",
        "backend/test_async.py::test_the_caller_continues_while_the_step_runs",
    ),
    "auto_step": (
        "false",
        "package/test_step.py::test_optimizer_step_ends_the_step",
    ),
    "cache": (
        "false",
        "training/test_disk_cache.py::test_corrupt_entries_are_rebuilt_with_a_warning",
    ),
    "cache_packed_weights": (
        "false",
        "backend/test_packed_weights.py::test_from_the_second_step_on",
    ),
    "compile_failure": ("raise", "backend/test_compile_failure.py"),
    "defer_checks": (
        "false",
        "transforms/test_distribution_checks.py::test_no_reads",
    ),
    "donation": (
        "false",
        "backend/test_donation.py::test_in_place_update_overwrites",
    ),
    "dump_locations": (
        "false",
        "package/test_debug.py::test_texts_have_locations_unless_switched_off",
    ),
    "head_start": (
        "off",
        "backend/test_head_start.py::test_the_default_and_no_worker",
    ),
    "max_inspectable_programs": ("0", "package/test_debug.py"),
    "reuse_traces": (
        "false",
        "backend/test_trace_cache.py"
        "::test_a_steady_loop_reuses_all_from_the_third_step_on",
    ),
    "tier": (
        "interpret",
        "training/test_disk_cache.py::test_second_process_compiles_nothing",
    ),
    "varying_numbers": (
        "off",
        "backend/test_varying_numbers.py::test_gradients_of_a_moving_slice",
    ),
    "varying_sizes": (
        "off",
        "backend/test_general_programs.py::test_compile_log_names_sizes",
    ),
}
# Options that switch no feature off, such as limits and formats.
SETTINGS = {
    "cache_size_mb",
    "max_loaded_programs",
    "max_steps_in_flight",
    "max_trace_ops",
    "save_tensors_format",
}


def test_each_feature_that_is_on_by_default_has_a_test() -> None:
    on = {o["name"] for o in torch_ltc.config.options() if o["default"]}
    assert on == {*FEATURES, *SETTINGS}


@pytest.mark.full("runs a test in a subprocess")
@pytest.mark.parametrize("name", FEATURES)
def test_without_the_feature_a_test_fails(name: str) -> None:
    options = {option["name"]: option for option in torch_ltc.config.options()}
    value, test = FEATURES[name]
    variable = options[name]["environment"].split(", ")[0]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", test],
        cwd=ROOT,
        env={**os.environ, variable: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
