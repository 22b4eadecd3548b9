"""Status of the daemon itself: readiness, the source, lag, losses, resources."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from streamwatch import __version__
from streamwatch.core.events import Partition
from streamwatch.core.merge import MergeProgress
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.durations import Durations
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import PartitionState, Schemas, Source
from streamwatch.daemon.source_positions import DataLossTotals
from streamwatch.telemetry import Telemetry

# Metrics of the process and its interpreter, under the names every exporter gives them.


_STATM = "/proc/self/statm"
_FDS = "/proc/self/fd"


def process_families(started_s: float) -> Sequence[Family]:
    """CPU time, memory, open files and start of this process; without those that the system does not report.

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
    """Resident memory in bytes; None where the system does not report it (Linux does)."""
    with suppress(OSError), open(_STATM, encoding="ascii") as statm:  # noqa: PTH123 - a third of Path.open's time
        return float(int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return None


def _open_files() -> float | None:
    """Number of open file descriptors, without the one used to count; None where it is not reported."""
    with suppress(OSError):
        return float(len(os.listdir(_FDS)) - 1)  # noqa: PTH208 - names are not asked for
    return None


class MetricsProvider(Protocol):
    """A part of the daemon that has metrics."""

    def families(self) -> Sequence[Family]:
        """Return its series."""
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


class Standby(Protocol):
    """One of several replicas, as the status needs it."""

    @property
    def role(self) -> str:
        """Part of this replica."""
        ...

    def unready(self) -> Sequence[str]:
        """Reasons why this replica could not take over."""
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
        self._clock = clock
        self._started = clock()
        self.stage: str | None = "starting"
        """Stage before reading starts or after it ended; None in between."""
        self.shown = False
        """Whether the results of the state that is open were published, or it has none."""
        self.partitions: Mapping[Partition, PartitionState] = {}
        """As of the last poll."""
        self.progress: MergeProgress | None = None
        """How far records were evaluated; None while state is closed."""
        self.polls = Durations()
        """Durations of polls."""
        self.evaluations = Durations()
        """Durations of turns in which records are evaluated."""
        self.standby: Standby | None = None
        """Part of this process as one of several replicas; None where it is alone."""
        self.results_stale: Callable[[], bool | None] = lambda: None
        """Returns whether the results shown are old; None where this daemon evaluates by itself."""

    @property
    def caught_up(self) -> bool:
        """Every partition was read to the end of its log as of a recent fetch."""
        states = self.partitions.values()
        return bool(states) and all(state.caught_up for state in states) and self._source.up

    def _evaluated(self, partition: Partition) -> int | None:
        return None if self.progress is None else self.progress.positions.get(partition)

    @property
    def role(self) -> str | None:
        """Part of this process as one of several replicas; None where it is alone."""
        return None if self.standby is None else self.standby.role

    def unready(self) -> Sequence[str]:
        """Reasons why the daemon is not ready.

        Empty when partitions are assigned, the results of the state that was opened are on `/metrics`, and no
        evaluated record waits for more than three intervals to be committed; of several replicas, when it
        could take over.
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
        if self.commits is not None and (overdue := self.commits.overdue) is not None:
            reasons.append(overdue)
        return reasons

    def families(self) -> Sequence[Family]:
        """The facts as series."""
        stale = self.results_stale()
        lag: list[tuple[tuple[str, ...], float]] = []
        lag_seconds: list[tuple[tuple[str, ...], float]] = []
        for partition, state in sorted(self.partitions.items()):
            key = str(partition.partition), partition.topic
            if (records := lag_of(state, self._evaluated(partition))) is None:
                continue
            lag.append((key, float(records)))
            last_ms = None if self.progress is None else self.progress.running_ms.get(partition)
            if last_ms is not None:
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
    """High watermark minus the position behind what was evaluated, never negative.

    None before the first fetch. Where nothing was evaluated yet, the position of reading counts.
    """
    position = state.position if evaluated is None else min(evaluated, state.position)
    return None if state.high_watermark < 0 else max(0, state.high_watermark - position)


# Clocks of the host; a correction of its time backwards counts only once it has lasted.


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

    It bounds record timestamps from the future. If the host's clock is set back by a day, every record would
    be clamped to an hour after the wrong time; so this clock goes on from the time before. The host's clock
    may also have been corrected after it was ahead: once it has been behind for `BELIEVED_SECONDS`, it is
    used. If it is wrong after all, the records show it (`core.merge.host_clock`).

    Parameters
    ----------
    wall_ms
        The host's clock.
    monotonic
        Monotonic clock in seconds.
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
