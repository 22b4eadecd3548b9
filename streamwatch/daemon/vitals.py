"""What is true of the daemon itself right now: is it ready, is Kafka there, how far behind, how large."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from streamwatch import __version__
from streamwatch.core.events import Partition
from streamwatch.core.ports import PartitionState, Source
from streamwatch.core.series import Family
from streamwatch.daemon.places import LogCounts
from streamwatch.telemetry import Telemetry

_STATM = "/proc/self/statm"


class Feed(Source, Protocol):
    """A source that also says how it is."""

    @property
    def up(self) -> bool:
        """Whether the brokers answer."""
        ...

    @property
    def assigned(self) -> bool:
        """Whether every partition of the configured topics has a position."""
        ...

    @property
    def losses(self) -> Mapping[str, int]:
        """Times the log was found changed under the reader, by cause, as of the last poll."""
        ...

    @property
    def records_lost(self) -> Mapping[str, int]:
        """Records known to be lost thereby, by cause, as of the last poll."""
        ...

    @property
    def fingerprint_unverifiable(self) -> int:
        """Times the log could not be recognised, as of the last poll."""
        ...

    def count_from(
        self, losses: Mapping[str, int], records_lost: Mapping[str, int], unverifiable: int
    ) -> None:
        """Go on counting from what is durable: what was found since will be found again."""
        ...

    def durable(self, positions: Mapping[Partition, int]) -> None:
        """What was read up to here is durable: lag tools may know."""
        ...


class Told(Protocol):
    """A part of the daemon that tells about itself."""

    def families(self) -> Sequence[Family]:
        """As series."""
        ...


def counted(feed: Feed) -> LogCounts:
    """What a source has found of the logs up to its last poll."""
    return LogCounts(dict(feed.losses), dict(feed.records_lost), feed.fingerprint_unverifiable)


class Vitals:
    """Facts beside the reports, for `/readyz` and `/metrics`; all but the counts of logs wait for no commit.

    Parameters
    ----------
    feed
        Asked how it is.
    telemetry
        Its counters are among the facts.
    parts
        Further parts of the daemon, asked about themselves.
    clock
        Seconds since the epoch.
    """

    def __init__(
        self,
        feed: Feed,
        telemetry: Telemetry,
        parts: Sequence[Told] = (),
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._feed = feed
        self._telemetry = telemetry
        self._parts = parts
        self.durable = False
        """Whether what is shown survives a restart."""
        self.disk_low = False
        """Whether reading waits for room on the disk."""
        self.commits: Told | None = None
        """How committing goes."""
        self.log_counts: LogCounts | None = None
        """As of the last durable commit; None before state is open."""
        self._started = clock()
        self.stage: str | None = "starting"
        """What has yet to be done before reading starts, or that it ended; None in between."""
        self.partitions: Mapping[Partition, PartitionState] = {}
        """As of the last poll."""

    @property
    def caught_up(self) -> bool:
        """Every partition was read to the end of its log as of a recent fetch."""
        states = self.partitions.values()
        return bool(states) and all(state.caught_up for state in states) and self._feed.up

    def unready(self) -> Sequence[str]:
        """Why the daemon is not ready; empty when state is open and partitions are assigned."""
        if self.stage is not None:
            return [self.stage]
        reasons: list[str] = []
        if not self._feed.up:
            reasons.append("Kafka cannot be reached")
        if not self._feed.assigned:
            reasons.append("no partitions are assigned yet")
        return reasons

    def families(self) -> Sequence[Family]:
        """The facts as series."""
        return [
            Family(
                "build_info",
                "gauge",
                "Always 1; the label says which version runs.",
                ("version",),
                [((__version__,), 1.0)],
            ),
            _gauge("kafka_up", "1 while the brokers answer.", float(self._feed.up)),
            _gauge("ready", "1 when state is open and partitions are assigned.", float(not self.unready())),
            _gauge("caught_up", "1 when every partition has been read to its end.", float(self.caught_up)),
            _gauge("state_durable", "1 when state survives a restart.", float(self.durable)),
            _gauge("state_disk_low", "1 while reading waits for room on the disk.", float(self.disk_low)),
            Family(
                "consumer_lag_records",
                "gauge",
                "Records of a partition not read yet: its high watermark minus the position.",
                ("partition", "topic"),
                [
                    ((str(partition.partition), partition.topic), float(lag))
                    for partition, state in sorted(self.partitions.items())
                    if (lag := lag_of(state)) is not None
                ],
            ),
            *_of_logs(self.log_counts),
            _gauge("start_timestamp_seconds", "When this process started.", self._started),
            Family(
                "cpu_seconds_total",
                "counter",
                "CPU time this process has used.",
                (),
                [((), time.process_time())],
            ),
            *(self.commits.families() if self.commits else ()),
            *(family for part in self._parts for family in part.families()),
            *_memory(),
            *self._telemetry.families(),
        ]


def lag_of(state: PartitionState) -> int | None:
    """High watermark minus position, never negative; None before the first fetch."""
    return None if state.high_watermark < 0 else max(0, state.high_watermark - state.position)


def _gauge(name: str, help_text: str, value: float) -> Family:
    return Family(name, "gauge", help_text, (), [((), value)])


def _of_logs(counts: LogCounts | None) -> Sequence[Family]:
    """Without samples before state is open: a scrape must not see 0 where the life before had counted."""
    found = counts or LogCounts()
    return [
        _counts("losses_total", "Times the log was found changed under the reader.", found.losses),
        _counts("records_lost_total", "Records known to be lost in the log.", found.records_lost),
        Family(
            "fingerprint_unverifiable_total",
            "counter",
            "Times the log could not be recognised, since the record remembered is no longer in it.",
            (),
            [] if counts is None else [((), float(found.fingerprint_unverifiable))],
        ),
    ]


def _counts(name: str, help_text: str, by_cause: Mapping[str, int]) -> Family:
    return Family(
        name,
        "counter",
        help_text,
        ("cause",),
        [((cause,), float(n)) for cause, n in sorted(by_cause.items())],
    )


def _memory() -> Sequence[Family]:
    """Resident memory where the system tells it (Linux)."""
    try:
        with open(_STATM, encoding="ascii") as statm:  # noqa: PTH123  # a third of Path.open's time
            pages = int(statm.read().split()[1])
    except OSError:
        return []
    return [
        _gauge(
            "resident_memory_bytes",
            "Memory this process holds.",
            float(pages * os.sysconf("SC_PAGE_SIZE")),
        )
    ]
