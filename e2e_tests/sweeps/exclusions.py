"""OpInfo entries that can't be compared, and known failures."""

from __future__ import annotations

#: Entry -> why eager has no unique answer.
EXCLUDED: dict[str, str] = {
    "empty": "uninitialised memory",
    "empty_like": "uninitialised memory",
    "empty_permuted": "uninitialised memory",
    "empty_strided": "uninitialised memory",
    "new_empty": "uninitialised memory",
    "new_empty_strided": "uninitialised memory",
}

#: Entry -> why a sample fails or differs. Remove the line together with the defect.
KNOWN_FAILURES: dict[str, str] = {}


def is_excluded(entry: str) -> bool:
    return entry in EXCLUDED
