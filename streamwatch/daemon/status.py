"""Status of the daemon itself: readiness, the source, lag, losses, resources."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from streamwatch import __version__
from streamwatch.core.events import Partition
from streamwatch.core.metrics import family, single
from streamwatch.core.ports import PartitionState, Schemas, Source
from streamwatch.core.series import Family
from streamwatch.daemon.process import process_families
from streamwatch.daemon.source_positions import DataLossTotals
from streamwatch.telemetry import Telemetry


class MetricsProvider(Protocol):
    """A part of the daemon that tells about itself."""

    def families(self) -> Sequence[Family]:
        """As series."""
        ...


def counted(source: Source) -> DataLossTotals:
    """Read the losses a source has found up to its last poll."""
    return DataLossTotals(dict(source.losses), dict(source.records_lost), source.position_unverified)


class Committing(MetricsProvider, Protocol):
    """Commits of the state that is open, as the status needs them."""

    @property
    def overdue(self) -> str | None:
        """Reason for which evaluated records have not been committed for long; None if they have."""
        ...


class DaemonStatus:
    """Facts beside the reports, for `/readyz` and `/metrics`; all but the counts of logs wait for no commit.

    Parameters
    ----------
    source
        Asked how it is.
    telemetry
        Its counters are among the facts.
    parts
        Further parts of the daemon, asked about themselves.
    schemas
        Asked whether records wait for some; None where no format needs any.
    clock
        Seconds since the epoch.
    """

    def __init__(
        self,
        source: Source,
        telemetry: Telemetry,
        parts: Sequence[MetricsProvider] = (),
        *,
        schemas: Schemas | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._telemetry = telemetry
        self._parts = parts
        self._schemas = schemas
        self.durable = False
        """Whether what is shown survives a restart."""
        self.disk_low = False
        """Whether reading waits for room on the disk."""
        self.commits: Committing | None = None
        """Commits; None while state is closed."""
        self.data_loss: DataLossTotals | None = None
        """As of the last durable commit; None before state is open."""
        self._started = clock()
        self.stage: str | None = "starting"
        """Stage before reading starts or after it ended; None in between."""
        self.shown = False
        """Whether the results of the state that is open were published, or it has none."""
        self.partitions: Mapping[Partition, PartitionState] = {}
        """As of the last poll."""

    @property
    def caught_up(self) -> bool:
        """Every partition was read to the end of its log as of a recent fetch."""
        states = self.partitions.values()
        return bool(states) and all(state.caught_up for state in states) and self._source.up

    def unready(self) -> Sequence[str]:
        """Reasons why the daemon is not ready.

        Empty when partitions are assigned, the results of the state that was opened are on `/metrics`, and no
        evaluated record waits for more than three intervals to be committed.
        """
        if self.stage is not None:
            return [self.stage]
        reasons: list[str] = []
        if not self._source.up:
            reasons.append(f"{self._source.name} cannot be reached")
        if not self._source.assigned:
            reasons.append("no partitions are assigned yet")
        if self._schemas is not None and (waiting := self._schemas.waiting) is not None:
            reasons.append(f"records wait for their schemas: {waiting}")
        if not self.shown:
            reasons.append("the results of the state that was opened are not on /metrics yet")
        if self.commits is not None and (overdue := self.commits.overdue) is not None:
            reasons.append(overdue)
        return reasons

    def families(self) -> Sequence[Family]:
        """The facts as series."""
        lag = [
            ((str(partition.partition), partition.topic), float(records))
            for partition, state in sorted(self.partitions.items())
            if (records := lag_of(state)) is not None
        ]
        return [
            family("build_info", [((__version__,), 1.0)]),
            single("ready", float(not self.unready())),
            single("caught_up", float(self.caught_up)),
            single("state_durable", float(self.durable)),
            single("state_disk_low", float(self.disk_low)),
            family("consumer_lag_records", lag),
            *self._source.families(self.data_loss),
            *(self._schemas.families() if self._schemas else ()),
            *(self.commits.families() if self.commits else ()),
            *(each for part in self._parts for each in part.families()),
            *self._telemetry.families(),
            *process_families(self._started),
        ]


def lag_of(state: PartitionState) -> int | None:
    """High watermark minus position, never negative; None before the first fetch."""
    return None if state.high_watermark < 0 else max(0, state.high_watermark - state.position)
