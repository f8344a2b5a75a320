"""Limits the recordings of a function whose calls seldom repeat a program."""

from __future__ import annotations

# A recorded call takes several times as long as one without `capture`: its program is
# compiled at once, and its code is watched.
_RECORDINGS = 16
LONGEST_PAUSE = 256


class Budget:
    """Limits the recordings of a function whose calls seldom repeat a program.

    A recorded call uses up one recording, and a replay gives one back. If none is left, two
    calls are recorded after a pause, whose length doubles each time.
    """

    def __init__(self) -> None:
        self._left = _RECORDINGS
        self._pause = _RECORDINGS
        self._paused = 0

    def allows(self) -> bool:
        """Uses up one recording, or counts one call of the pause."""
        if self._left > 0:
            self._left -= 1
            return True
        self._paused += 1
        if self._paused == self._pause:
            self._left, self._paused = 2, 0
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return False

    def replayed(self) -> None:
        self._left += 1
        if self._left >= _RECORDINGS:
            self._left = self._pause = _RECORDINGS
