"""If a rank's collectives differ, or the rank is late or ends, the other ranks raise an
error instead of waiting."""

from __future__ import annotations

import datetime
import json
import signal

import pytest
from distributed.fault_cases import (
    be_late,
    compare_programs,
    die,
    end_with_the_store,
    fail_in_exchange,
    fail_unnoticed,
    import_during_op,
    leave_traced,
    notice_later,
    pause_after_collective,
    wait_shortly,
)
from distributed.launching import exit_codes, run_ranks


def test_programs_that_differ():
    run_ranks(compare_programs, 3)


def test_a_step_that_fails_during_an_exchange():
    run_ranks(fail_in_exchange, 2)


def test_a_late_rank(tmp_path):
    run_ranks(be_late, 3, str(tmp_path), timeout=datetime.timedelta(seconds=4))


def test_errors_are_noticed_without_reads():
    run_ranks(notice_later, 2)


def test_an_unnoticed_error_sets_the_exit_code():
    timeout = datetime.timedelta(seconds=6)
    assert exit_codes(fail_unnoticed, 2, timeout=timeout) == [1, 0]


def test_the_end_of_the_store():
    assert exit_codes(end_with_the_store, 3) == [0, 0, 0]


def test_a_wait_with_a_timeout(tmp_path):
    run_ranks(wait_shortly, 2, str(tmp_path))


def test_the_end_of_a_process_runs_its_collectives(tmp_path):
    run_ranks(leave_traced, 2, str(tmp_path))
    assert json.loads((tmp_path / "sum").read_text()) == [3.0] * 4


def test_a_pause_after_a_collective(tmp_path):
    run_ranks(pause_after_collective, 2, str(tmp_path))


@pytest.mark.parametrize("tier", ["auto", "compile"])
def test_an_op_that_imports_modules(tier):
    run_ranks(import_during_op, 2, tier)


@pytest.mark.parametrize("place", ["forward", "backward", "collective"])
def test_a_killed_rank(place, tmp_path):
    codes = exit_codes(die, 3, place, str(tmp_path))
    assert codes == [0, -signal.SIGKILL, 0]
    for rank in (0, 2):
        report = json.loads((tmp_path / f"rank{rank}.json").read_text())
        assert report["seconds"] < 20, report
        assert "all_reduce(sum) of 420 Float at " in report["error"], report
        assert f"failed on rank {rank} of 3 after " in report["error"], report
        assert "Rank 1 hasn't arrived: it is late or has ended." in report["error"]
