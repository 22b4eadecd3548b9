"""Status of the daemon: readiness, lag, data loss, resources and clocks."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from streamwatch import __version__
from streamwatch.core.merge import MergeProgress
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.metric import Durations
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import PartitionState, Schemas, Source
from streamwatch.core.records.events import Partition
from streamwatch.daemon.source_positions import DataLossTotals
from streamwatch.telemetry import Telemetry

_STATM = "/proc/self/statm"
_FDS = "/proc/self/fd"


def process_families(started_s: float) -> Sequence[Family]:
    """CPU time, memory, open files and start of this process, under the names of Prometheus clients.

    Values that the system does not report have no sample.

    Parameters
    ----------
    started_s
        Start of the process in seconds since the epoch.
    """
    interpreter = platform.python_implementation(), platform.python_version()
    return [
        single("process_cpu_seconds_total", time.process_time()),
        single("process_resident_memory_bytes", _resident_bytes()),
        single("process_start_time_seconds", started_s),
        single("process_open_fds", _open_files()),
        family("python_info", [(interpreter, 1.0)]),
    ]


def _resident_bytes() -> float | None:
    """Resident memory in bytes; None on systems that, unlike Linux, do not report it in `/proc`."""
    with suppress(OSError), open(_STATM, encoding="ascii") as statm:  # noqa: PTH123 - a third of Path.open's time
        return float(int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return None


def _open_files() -> float | None:
    """Number of open file descriptors, except the one used to count; None if it is not reported."""
    with suppress(OSError):
        return float(len(os.listdir(_FDS)) - 1)  # noqa: PTH208 - names are not asked for
    return None


class MetricsProvider(Protocol):
    """A part of the daemon that has metrics."""

    def families(self) -> Sequence[Family]:
        """Return its series."""
        ...


def counted(source: Source) -> DataLossTotals:
    """Return the data loss that a source has found up to its last poll."""
    return DataLossTotals(dict(source.losses), dict(source.records_lost), source.position_unverified)


class Committing(MetricsProvider, Protocol):
    """Commits of the open state, as the status reads them (`Commits`)."""

    @property
    def overdue(self) -> str | None:
        """Reason for which evaluated records have not been committed for long; None if none wait long."""
        ...

    @property
    def waits_for_disk(self) -> bool:
        """Return whether they wait for the disk."""
        ...


class Standby(Protocol):
    """Publisher of one of several replicas, as the status reads it (`StandbyPublisher`)."""

    @property
    def role(self) -> str:
        """Role of this replica."""
        ...

    def unready(self) -> Sequence[str]:
        """Reasons why this replica could not take over."""
        ...


class DaemonStatus:
    """Current status for `/readyz` and `/metrics`; only counts of data loss are as of the last commit.

    Parameters
    ----------
    source
        Source of records, whose metrics are included.
    telemetry
        Counters of internal events, which are included.
    parts
        Further parts of the daemon whose metrics are included.
    schemas
        Knows whether records wait for schemas; None if no format needs any.
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
        """Whether the open state is on disk and survives a restart."""
        self.disk_low = False
        """Whether reading waits until the disk has free space."""
        self.commits: Committing | None = None
        """Commits; None while state is closed."""
        self.data_loss: DataLossTotals | None = None
        """Data loss as of the last durable commit; None before state is open."""
        self._clock = clock
        self._started = clock()
        self.stage: str | None = "starting"
        """Text on the current stage of start or stop; None while records are read."""
        self.shown = False
        """Whether results of the open state were shown on `/metrics`, or it has none."""
        self.partitions: Mapping[Partition, PartitionState] = {}
        """State of each partition as of the last poll."""
        self.evaluated_ms: int | None = None
        """Monotonic time up to which all that was in the logs is evaluated; None if none is known."""
        self.progress: MergeProgress | None = None
        """Progress of the evaluation; None while state is closed."""
        self.polls = Durations()
        """Durations of polls."""
        self.evaluations = Durations()
        """Durations of turns in which records are evaluated."""
        self.standby: Standby | None = None
        """Publisher of this replica; None without replicas."""
        self.results_stale: Callable[[], bool | None] = lambda: None
        """Returns whether the results of a distributed job are old; None if this daemon evaluates itself."""

    @property
    def caught_up(self) -> bool:
        """Return whether every partition was read to the end of its log as of a recent fetch."""
        states = self.partitions.values()
        return bool(states) and all(state.caught_up for state in states) and self._source.up

    def _evaluated(self, partition: Partition) -> int | None:
        return None if self.progress is None else self.progress.positions.get(partition)

    @property
    def role(self) -> str | None:
        """Role of this replica; None without replicas."""
        return None if self.standby is None else self.standby.role

    @property
    def stalled(self) -> str | None:
        """Reason of this host for which records are not evaluated or committed; None if there is none."""
        if self.stage is not None:
            return self.stage
        if self.disk_low:
            return "reading waits for room on the disk of the state"
        if self.commits is not None and self.commits.waits_for_disk:
            return self.commits.overdue
        return None

    def unready(self) -> Sequence[str]:
        """Return the reasons why the daemon is not ready.

        Empty if it neither starts nor stops, the source is reachable with partitions assigned, no records
        wait for schemas, results of the opened state are on `/metrics`, no evaluated record has waited for
        more than three commit intervals, and, with replicas, this one could take over.
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
        if self.standby is not None:
            reasons.extend(self.standby.unready())
            if self.disk_low and (stalled := self.stalled) is not None:
                reasons.append(stalled)
        if self.commits is not None and (overdue := self.commits.overdue) is not None:
            reasons.append(overdue)
        return reasons

    def families(self) -> Sequence[Family]:
        """Return the status as series."""
        stale = self.results_stale()
        lag: list[tuple[tuple[str, ...], float]] = []
        lag_seconds: list[tuple[tuple[str, ...], float]] = []
        for partition, state in sorted(self.partitions.items()):
            key = str(partition.partition), partition.topic
            if (records := lag_of(state, self._evaluated(partition))) is None:
                continue
            lag.append((key, float(records)))
            last_ms = -1 if self.progress is None else self.progress.running_ms.get(partition, -1)
            if last_ms >= 0:
                lag_seconds.append((key, max(0.0, self._clock() - last_ms / 1_000) if records else 0.0))
        return [
            family("build_info", [((__version__,), 1.0)]),
            single("ready", float(not self.unready())),
            single("caught_up", float(self.caught_up and not stale)),
            single("results_stale", None if stale is None else float(stale)),
            single("state_durable", float(self.durable)),
            single("state_disk_low", float(self.disk_low)),
            family("consumer_lag_records", lag),
            family("consumer_lag_seconds", lag_seconds),
            family("poll_duration_seconds", [((), self.polls.histogram())]),
            family("evaluation_duration_seconds", [((), self.evaluations.histogram())]),
            *self._source.families(self.data_loss),
            *(self._schemas.families() if self._schemas else ()),
            *(self.commits.families() if self.commits else ()),
            *(each for part in self._parts for each in part.families()),
            *self._telemetry.families(),
            *process_families(self._started),
        ]


def lag_of(state: PartitionState, evaluated: int | None = None) -> int | None:
    """High watermark of a partition minus the position after its last evaluated record, at least 0.

    Parameters
    ----------
    state
        State of the partition as of the last poll.
    evaluated
        Position after its last evaluated record; None: the position of reading is taken instead.

    Returns
    -------
    int | None
        Records; None before the first fetch.
    """
    position = state.position if evaluated is None else min(evaluated, state.position)
    return None if state.high_watermark < 0 else max(0, state.high_watermark - position)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Clocks of the host, in milliseconds."""

    host_ms: Callable[[], int]
    """Since the epoch, by the host's clock."""
    monotonic_ms: Callable[[], int]
    """Of a monotonic clock, by which fetches are timed, too."""


def host_ms() -> int:
    """Read the host's clock, in milliseconds since the epoch; it may be set."""
    return time.time_ns() // 1_000_000


class SteadyClock:
    """Host time in milliseconds since the epoch that follows a correction backwards only after an hour.

    It decides which record times count as being from the future. If the host's clock were wrongly set back by
    a day, true times could be taken for such; therefore this clock continues from the time before. As the
    host's clock may also have been set back rightly, it is used once it has been behind for
    `BELIEVED_SECONDS`. If it is wrong nevertheless, the records show it (`core.merge.timestamps`).

    Parameters
    ----------
    wall_ms
        The host's clock.
    monotonic
        Monotonic clock in seconds.
    """

    BELIEVED_SECONDS: Final = 3_600.0

    def __init__(
        self, wall_ms: Callable[[], int] = host_ms, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.host_ms = wall_ms
        self._monotonic = monotonic
        self._ahead_ms = wall_ms() - int(monotonic() * 1_000)
        self._less_since: float | None = None

    def __call__(self) -> int:
        """Return the host's time, without corrections backwards within the last hour."""
        now = self._monotonic()
        elapsed_ms = int(now * 1_000)
        ahead_ms = self.host_ms() - elapsed_ms
        if ahead_ms >= self._ahead_ms:
            self._less_since = None
        elif self._less_since is None:
            self._less_since = now
        if self._less_since is None or now - self._less_since >= self.BELIEVED_SECONDS:
            self._ahead_ms, self._less_since = ahead_ms, None
        return self._ahead_ms + elapsed_ms

    def not_before(self, at_ms: int) -> None:
        """Raise the clock to at least this time, such as that of records read before a restart."""
        self._ahead_ms = max(self._ahead_ms, at_ms - int(self._monotonic() * 1_000))
