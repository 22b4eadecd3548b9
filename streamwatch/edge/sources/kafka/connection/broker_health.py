"""Whether brokers answer: told by their answers, not by the absence of errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.connection.connection import Connection
from streamwatch.telemetry import InternalEvent, KafkaLost, KafkaRecovered


class BrokerHealth:
    """Remembers when brokers last answered, and tells when they are lost and when they are back.

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
        self._answered_at = -math.inf
        self._lost_at: float | None = None
        self._fetches: dict[Partition, tuple[int, float]] = {}

    @property
    def silent_ms(self) -> float:
        """Time since a broker last answered anything."""
        return (self._monotonic() - self._answered_at) * 1_000

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
        self._answered_at = self._monotonic()
        if self._lost_at is not None:
            self._emit(KafkaRecovered(round(self._answered_at - self._lost_at, 3)))
            self._lost_at = None

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
