"""Clocks of the host; a correction of its time backwards counts only once it has lasted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Clocks:
    """Time outside the records, in milliseconds."""

    host_ms: Callable[[], int]
    """Since the epoch, by the host's clock."""
    monotonic_ms: Callable[[], int]
    """Of a clock that never goes back; fetches are timed by it too."""


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class SteadyClock:
    """Milliseconds since the epoch that do not go back at once.

    It bounds record timestamps from the future. A host whose clock is set back by a day would have every
    record clamped to what was an hour from now yesterday; so what the clock said before goes on by itself. It
    may as well have been set right, after it had been ahead: when it has said less for `BELIEVED_SECONDS`, it
    is believed. Should it be wrong after all, the records tell (`core.merge.host_clock`).

    Parameters
    ----------
    wall_ms
        The host's clock.
    monotonic
        Seconds that never go back.
    """

    BELIEVED_SECONDS: Final = 3_600.0

    def __init__(
        self, wall_ms: Callable[[], int] = _wall_ms, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall_ms = wall_ms
        self._monotonic = monotonic
        self._ahead_ms = wall_ms() - int(monotonic() * 1_000)
        self._less_since: float | None = None

    def __call__(self) -> int:
        """Return the host's time, or what it would be had nobody set it back within the last hour."""
        now = self._monotonic()
        elapsed_ms = int(now * 1_000)
        ahead_ms = self._wall_ms() - elapsed_ms
        if ahead_ms >= self._ahead_ms:
            self._less_since = None
        elif self._less_since is None:
            self._less_since = now
        if self._less_since is None or now - self._less_since >= self.BELIEVED_SECONDS:
            self._ahead_ms, self._less_since = ahead_ms, None
        return self._ahead_ms + elapsed_ms

    def not_before(self, at_ms: int) -> None:
        """Raise the clock to at least this time, which records read before a restart carry."""
        self._ahead_ms = max(self._ahead_ms, at_ms - int(self._monotonic() * 1_000))
