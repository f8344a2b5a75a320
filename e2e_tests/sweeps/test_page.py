"""`docs/ops.md` matches the op table and the recorded sweep."""

from __future__ import annotations

from sweeps import page


def test_page_is_up_to_date() -> None:
    assert page.PAGE.read_text() == page.page(page.take([])), (
        "update it: cd e2e_tests && python -m sweeps.page"
    )


def test_nothing_recorded_differs() -> None:
    wrong = {
        entry: row
        for entry, row in page.take([]).items()
        if "wrong"
        in {s for d in row.values() if isinstance(d, dict) for s in d.values()}
    }
    from sweeps.exclusions import KNOWN_FAILURES

    assert set(wrong) <= set(KNOWN_FAILURES)
