"""Sets up a test session: before torch is imported, selects a disk cache for the session,
so that tests neither use nor fill the user's cache."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import shutil
import sys
import tempfile
import traceback

if "TORCH_LTC_TEST_SESSION" not in os.environ:
    # Workers of pytest-xdist are children of the process that executes this block, and
    # inherit the variables.
    _folder = tempfile.mkdtemp(prefix="torch_ltc-tests-")
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    os.environ["TORCH_LTC_TEST_SESSION"] = _folder
    os.environ["TORCH_LTC_CACHE_DIR"] = os.path.join(_folder, "cache")
    # Tests check compiled programs; the tests of the tiers set the option themselves.
    os.environ.setdefault("TORCH_LTC_TIER", "compile")
    if "PYTEST_XDIST_WORKER_COUNT" not in os.environ:
        # OpenMP threads that spin on processors that other workers need would slow the
        # session down by an order of magnitude.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
import torch
import torch_ltc


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="sweeps take all samples, variants and dtypes instead of the first",
    )


def pytest_configure(config: pytest.Config) -> None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    threads = max(1, len(os.sched_getaffinity(0)) // workers)
    torch.set_num_threads(threads)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("full")
    if marker and not item.config.getoption("--full"):
        pytest.skip(": ".join(("needs --full", *marker.args)))


def pytest_sessionstart(session: pytest.Session) -> None:
    reason = torch_ltc.unavailable_reason()
    if reason:
        pytest.exit(reason, returncode=3)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Removes two stack walks from torch (2.13) that took a fifth of the sweeps' time,
    because pytest's stack is deep: `torch.manual_seed` formats and keeps the stack for each
    device that it doesn't initialize, and OpInfo searches the stack for a unittest when it
    creates samples."""
    for device in (torch.cuda, torch.xpu, torch.mtia):
        device._lazy_call = lambda *_, **__: None
    if common := sys.modules.get("torch.testing._internal.common_utils"):
        common.extract_test_fn = lambda: None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """Clears the frames of a failed test. pytest keeps the frames alive, and with them
    the test's tensors; their pending ops would be part of every later test's step."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
    return report


def _settle() -> None:
    """Runs pending ops and waits for them. Drops ops that can't run: the test that
    created them has reported the error."""
    for action in (torch_ltc.mark_step, torch_ltc.wait_device_ops):
        with contextlib.suppress(RuntimeError, IndexError):
            action()


@pytest.fixture(autouse=True)
def clean_backend(request: pytest.FixtureRequest):
    """Runs pending ops and scheduled steps before and after each test. Fails a test if
    one of its programs couldn't be compiled: the interpreter, which then runs the
    program, would hide the failure."""
    torch.manual_seed(0)
    gc.collect()
    # Objects that outlived the last test are mostly modules: if the collector searched them
    # again for each test, a fast test would spend most of its time in the collector.
    gc.freeze()
    _settle()
    rejected = torch_ltc.metrics()["compile_failures"]
    yield
    _settle()
    if not request.node.get_closest_marker("compile_failures"):
        # The count is smaller if a test has reset the metrics.
        assert torch_ltc.metrics()["compile_failures"] <= rejected, [
            row["reason"]
            for row in torch_ltc.compile_log()
            if row["origin"] == "interpreted"
        ]


@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> str:
    """Returns the path of a new cache folder for the processes that the test starts."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TORCH_LTC_CACHE_DIR", str(folder))
    return str(folder)
