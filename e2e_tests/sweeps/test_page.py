"""`docs/ops.md` matches the op table and the recorded sweep."""

from __future__ import annotations

from sweeps import page


def test_page_is_up_to_date() -> None:
    assert page.PAGE.read_text() == page.page(page.take([])), (
        "update it: cd e2e_tests && python -m sweeps.page"
    )


def test_nothing_recorded_differs() -> None:
    wrong = [
        entry
        for entry, row in page.take([]).items()
        if any(isinstance(d, dict) and "wrong" in d.values() for d in row.values())
    ]
    assert not wrong
