"""The host's clock, without its corrections backwards."""

from __future__ import annotations

import time
from collections.abc import Callable


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class SteadyClock:
    """Milliseconds since the epoch that never go back.

    It bounds record timestamps from the future. A host whose clock is set back by a day would have every
    record clamped to what was an hour from now yesterday; so what the clock said before goes on by itself.

    Parameters
    ----------
    wall_ms
        The host's clock.
    monotonic
        Seconds that never go back.
    """

    def __init__(
        self, wall_ms: Callable[[], int] = _wall_ms, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall_ms = wall_ms
        self._monotonic = monotonic
        self._ahead_ms = wall_ms() - self._elapsed_ms()

    def __call__(self) -> int:
        """Return the host's time, or what it would be had nobody set it back."""
        elapsed_ms = self._elapsed_ms()
        self._ahead_ms = max(self._ahead_ms, self._wall_ms() - elapsed_ms)
        return self._ahead_ms + elapsed_ms

    def not_before(self, at_ms: int) -> None:
        """Raise the clock to at least this time, which records read before a restart carry."""
        self._ahead_ms = max(self._ahead_ms, at_ms - self._elapsed_ms())

    def _elapsed_ms(self) -> int:
        return int(self._monotonic() * 1000)
