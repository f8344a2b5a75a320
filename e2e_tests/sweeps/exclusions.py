"""OpInfo entries that can't be compared, and known failures."""

from __future__ import annotations

#: Entry -> why eager has no unique result.
EXCLUDED: dict[str, str] = {
    "empty": "uninitialized memory",
    "empty_like": "uninitialized memory",
    "empty_permuted": "uninitialized memory",
    "empty_strided": "uninitialized memory",
    "new_empty": "uninitialized memory",
    "new_empty_strided": "uninitialized memory",
}

#: Entry -> why a sample fails or differs. A line is removed once the defect is fixed.
KNOWN_FAILURES: dict[str, str] = {}


def is_excluded(entry: str) -> bool:
    return entry in EXCLUDED
