"""Whether brokers answer: told by their answers, not by the absence of errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.connection.connection import Connection
from streamwatch.telemetry import InternalEvent, KafkaLost, KafkaRecovered

PULSES: Final = 8
"""Turns of the event loop, at least, in which no answer came in before brokers count as silent."""
MOST_PULSE_SECONDS: Final = 0.25


class BrokerHealth:
    """Remembers when brokers last answered, and tells when they are lost and when they are back.

    Silence is time in which the event loop turned and no answer came in. An answer that waits while the loop
    is busy, or the process stopped, is no silence of a broker's: a turn counts as two pulses at most.

    Parameters
    ----------
    alive_ms
        How long one answer counts as a sign of life.
    emit
        Where internal events go.
    monotonic
        Seconds that never go back.
    """

    def __init__(
        self, alive_ms: float, emit: Callable[[InternalEvent], None], monotonic: Callable[[], float]
    ) -> None:
        self._alive_ms = alive_ms
        self._emit = emit
        self._monotonic = monotonic
        self.pulse_seconds = min(alive_ms / 1_000 / PULSES, MOST_PULSE_SECONDS)
        """How often `turned` is to be called."""
        self._silent_seconds = math.inf
        self._turned_at = monotonic()
        self._lost_at: float | None = None
        self._fetches: dict[Partition, tuple[int, float]] = {}

    @property
    def silent_ms(self) -> float:
        """Time since a broker last answered anything, as far as an answer could be heard."""
        return self._silent_seconds * 1_000

    @property
    def alive(self) -> bool:
        """The last answer is recent."""
        return self.silent_ms <= self._alive_ms

    @property
    def lost(self) -> bool:
        """Brokers were told to be lost and not yet to be back."""
        return self._lost_at is not None

    def begin(self) -> None:
        """A new connection was opened: what the last one fetched says nothing of this one."""
        self._fetches.clear()
        self.answered()

    def answered(self) -> None:
        """A broker answered something."""
        self._silent_seconds = 0.0
        if self._lost_at is not None:
            self._emit(KafkaRecovered(round(self._monotonic() - self._lost_at, 3)))
            self._lost_at = None

    def turned(self) -> None:
        """Take note that the event loop has turned, after answers that came in were noted."""
        now = self._monotonic()
        self._silent_seconds += min(now - self._turned_at, 2 * self.pulse_seconds)
        self._turned_at = now

    def failed(self, reason: str, retry_in_seconds: float = 0.0) -> None:
        """Brokers did not answer, or not as they should."""
        if self._lost_at is None:
            self._lost_at = self._monotonic()
        self._emit(KafkaLost(reason, round(retry_in_seconds, 3)))

    def look(self, connection: Connection, partitions: Iterable[Partition]) -> None:
        """Notification fetches that were answered since the last look, be it with nothing."""
        now = self._monotonic()
        news = False
        for partition in partitions:
            _, stamp = connection.last_fetch(partition)
            if stamp and stamp != self._fetches.get(partition, (0, 0.0))[0]:
                self._fetches[partition] = (stamp, now)
                news = True
        if news:
            self.answered()

    def fetched_within(self, partition: Partition, milliseconds: float) -> bool:
        """Tell whether this partition's last fetch was answered that recently."""
        _, seen_at = self._fetches.get(partition, (0, -math.inf))
        return (self._monotonic() - seen_at) * 1_000 <= milliseconds
