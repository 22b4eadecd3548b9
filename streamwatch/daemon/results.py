"""The results of a distributed run, taken in as a daemon takes in records: whole batches, each once.

The topic is compacted and read from its beginning at every start; the state keeps which batch was reported
last, and which notifications are still to be delivered. Nothing is shown before the topic was read to its end
as of the start: after compaction only the whole of it belongs to one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

import msgspec

from streamwatch.core.buckets.contract import ALARM, BucketsSpec
from streamwatch.core.buckets.results import (
    LOSS,
    MARK,
    WATERMARK,
    BatchMark,
    DataLoss,
    ResultRecord,
    data_loss_of,
    mark_of,
    result_of,
    total_data_loss,
    watermark_of,
)
from streamwatch.core.buckets.view import RecordCounts, ResultsView
from streamwatch.core.estimators.state import RECENT
from streamwatch.core.events import Alarm, Partition, model_of
from streamwatch.core.join.caveats import details_with, details_with_caveats
from streamwatch.core.join.durable.packed import reading
from streamwatch.core.merge import MergeProgress
from streamwatch.core.merge.merge import progress_families
from streamwatch.core.merge.timestamps import FUTURE, REASONS
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.series import Family, Report
from streamwatch.core.ports import CommitBatch, Poll, Record
from streamwatch.daemon.merged_records import MismatchReporter, RejectedRecords, yield_to_loop
from streamwatch.edge.stores.kind import StateRefused
from streamwatch.telemetry import Telemetry

# Section of a commit about results: which batch was reported last.


RESULTS: Final = "results"
"""Section of a commit with the batch that was reported last."""


class LastReportedBatch(msgspec.Struct, frozen=True, array_like=True):
    """The last batch that was reported."""

    life: str = ""
    """Name of the state of the job that wrote it; empty before the first."""
    batch: int = 0
    data_loss: DataLoss = DataLoss()
    """What was missing of the job's topics up to there."""


_LAST_REPORTED: Final = msgspec.msgpack.Decoder(LastReportedBatch)


def last_reported_of(section: bytes | None) -> LastReportedBatch:
    """Read the section of a commit; raises PackedError if it is none."""
    with reading(f"the section {RESULTS!r}"):
        return LastReportedBatch() if section is None else _LAST_REPORTED.decode(section)


@dataclass(slots=True)
class ResultsCheckpoint:
    """Content of a commit of results: implements `Checkpointing`.

    Parameters
    ----------
    reported
        As of the last commit.
    commits
        Number of the last commit.
    """

    reported: LastReportedBatch
    commits: int = 0

    def changes(
        self, sections: Mapping[str, bytes], outbox: Mapping[str, bytes | None] | None = None
    ) -> CommitBatch:
        """Build the next commit."""
        self.commits += 1
        own = {RESULTS: msgspec.msgpack.encode(self.reported)}
        return CommitBatch({**own, **sections}, outbox=outbox or {})


# Progress of a distributed run, from its results topic.


STALE_INTERVALS: Final = 10
STALE_SECONDS: Final = 300.0


@dataclass(slots=True)
class NewestBatch:
    """Time of the newest batch of the job, for whoever asks whether it is old.

    Parameters
    ----------
    interval_seconds
        Time between two batches of the job.
    """

    interval_seconds: float
    written_ms: int | None = None
    """Time at which it was written; None before the first."""

    def is_stale(self, now_ms: int) -> bool:
        """Return whether it is older than ten intervals and than five minutes; not before the first."""
        if self.written_ms is None:
            return False
        most_seconds = max(STALE_INTERVALS * self.interval_seconds, STALE_SECONDS)
        return now_ms - self.written_ms > 1_000 * most_seconds


@dataclass(slots=True)
class RunProgress:
    """The newest batch that was taken in, and the newest record times."""

    batch: int = 0
    """Number of the batch; 0 before the first."""
    written_ms: int = 0
    """Time of its mark in the topic."""
    mark: BatchMark = field(default_factory=lambda: BatchMark("", -1))
    running_ms: dict[Partition, int] = field(default_factory=dict[Partition, int])
    """Newest record time by partition of the job's topics."""
    host_is_behind: bool | None = None
    """Whether most records since the take before carried times from the future of the job's clock, and were
    corrected for it; None before there is one to compare with."""
    _counted: tuple[int, int] | None = None
    """Records evaluated up to the last take, and those of them from the future."""

    def note(self, records: RecordCounts) -> None:
        """Compare the counts of records, which are since the beginning, with those of the take before."""
        counted = sum(records.evaluated.values()), records.corrected.get(REASONS[FUTURE], 0)
        if self._counted is not None and counted[0] > self._counted[0]:
            evaluated, future = (now - before for now, before in zip(counted, self._counted, strict=True))
            self.host_is_behind = 2 * future > evaluated
        self._counted = counted

    def families(self) -> Sequence[Family]:
        """Series of the batch; without samples before the first."""
        mark, there = self.mark, self.batch > 0
        return [
            single("results_batch", float(self.batch) if there else None),
            single("results_batch_timestamp_seconds", self.written_ms / 1_000 if there else None),
            single("results_batch_end_timestamp_seconds", mark.end_ms / 1_000 if there else None),
            family(
                "results_waiting_records",
                [((topic,), float(records)) for topic, records in sorted(mark.waiting.items())],
            ),
        ]

    def of_records(self, records: RecordCounts, clock_ms: int) -> MergeProgress:
        """Counts of records as the series of a sequence show them."""
        counts = {each.name: getattr(records, each.name) for each in fields(RecordCounts)}
        return MergeProgress(clock_ms=clock_ms, running_ms=self.running_ms, **counts)


# Results as they are read, held until the mark of their batch: then it is whole.


@dataclass(slots=True)
class WholeBatches:
    """Holds results; of several of one name the latest counts."""

    whole: dict[tuple[str, str], ResultRecord] = field(default_factory=dict[tuple[str, str], ResultRecord])
    """Of batches that are whole and not taken in yet, by kind and name."""
    marked_ms: int = 0
    """Time of the mark that was read last."""
    _held: dict[tuple[str, str], ResultRecord] = field(default_factory=dict[tuple[str, str], ResultRecord])
    """Of a batch whose mark has yet to come."""

    def add(self, record: Record) -> None:
        """Hold a record of the topic.

        Raises
        ------
        ResultsFormatError
            If it is none of results.
        """
        if record.key is None:
            return  # no key is compacted away, and none of ours lacks it
        result = result_of(record.key, record.value)
        self._held[result.kind, result.name] = result
        if result.kind == MARK:
            self.marked_ms = record.timestamp
            self.whole |= self._held
            self._held.clear()

    def take(self) -> dict[tuple[str, str], ResultRecord]:
        """Hand over what is whole, with the latest mark."""
        whole, self.whole = self.whole, {}
        return whole

    def clear(self) -> None:
        """Drop everything."""
        self._held.clear()
        self.whole.clear()


_TURN: Final = 200
"""Results taken in before others have a turn."""


class ResultsProcessor:
    """Implements `Processor` for the results topic.

    Parameters
    ----------
    spec
        How the stream is cut.
    checkpoint
        Notes the batch that was taken in.
    telemetry
        Receives internal events about models whose classes do not fit.
    host_ms
        The host's clock, in milliseconds since the epoch.
    newest
        Notes when the newest batch was written.
    """

    def __init__(
        self,
        spec: BucketsSpec,
        checkpoint: ResultsCheckpoint,
        telemetry: Telemetry,
        host_ms: Callable[[], int],
        newest: NewestBatch | None = None,
    ) -> None:
        self._newest = newest or NewestBatch(0.0)
        self._spec = spec
        self._checkpoint = checkpoint
        self._host_ms = host_ms
        self._mismatches = MismatchReporter(telemetry)
        self.view = ResultsView(spec)
        self.progress = MergeProgress()
        self.rejected = RejectedRecords()
        self.maintenance = None
        self.records = 0
        self.uncommitted = 0
        self._batches = WholeBatches()
        self._at_end = False
        self._life = ""
        self._lost: dict[str, DataLoss] = {}
        self._alarms: list[Alarm] = []
        self._retired: list[str] = []
        self._held_records = 0
        self._run = RunProgress()

    @property
    def positions(self) -> Mapping[Partition, int]:
        """Positions after what was taken in."""
        return self.progress.positions

    @property
    def uncommitted_scores(self) -> int:
        """None: results hold no scores to be committed."""
        return 0

    @property
    def has_ready(self) -> bool:
        """Never: `receive` takes in all that is whole."""
        return False

    @property
    def has_report(self) -> bool:
        """Return whether a whole batch was taken in."""
        return bool(self._life)

    @property
    def is_empty(self) -> bool:
        """Return whether the topic was read to its end and holds no whole batch."""
        return self._at_end and not self._life

    @property
    def data_loss(self) -> DataLoss:
        """Records missing of the job's topics, as far as batches were taken in."""
        return self._checkpoint.reported.data_loss

    def settle(self) -> tuple[Sequence[Alarm], Sequence[str]]:
        """Hand over alarms since the last commit, and models that are no longer there."""
        self.uncommitted = 0
        alarms, self._alarms = self._alarms, []
        retired, self._retired = self._retired, []
        return alarms, retired

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Return whether what was read is yet to be taken in."""
        del arrived_ms
        return bool(self._batches.whole)

    def crowded(self) -> frozenset[Partition]:
        """None: there is one partition."""
        return frozenset()

    def flush(self, moved: frozenset[Partition]) -> None:
        """Begin anew: the topic is another one, read from its beginning."""
        del moved
        self._begin("")
        self._batches.clear()
        self._at_end = False

    def forget_records(self, partitions: frozenset[Partition]) -> None:
        """Nothing is remembered of single records."""
        del partitions

    def take_newest(self) -> Mapping[Partition, Record]:
        """None: a start reads the topic from its beginning."""
        return {}

    async def receive(self, poll: Poll, *, connected: bool = True) -> None:
        """Take in the batches that are whole, once the topic was read to its end.

        Raises
        ------
        ResultsFormatError
            If a record is none of results.
        StateRefused
            If the topic ends before a batch that was reported.
        """
        del connected
        for records in poll.records.values():
            for record in records:
                self._batches.add(record)
            self.records += len(records)
        states = poll.partitions.values()
        self._at_end = self._at_end or (bool(states) and all(state.caught_up for state in states))
        if self._at_end and self._batches.whole:
            await self._take()
        for partition, state in poll.partitions.items():
            self.progress.positions[partition] = state.position

    async def make_room(self) -> None:
        """Nothing to be done."""

    def evaluate(self) -> int:
        """Nothing is ever ready."""
        return 0

    def take_work(self) -> None:
        """None: nothing is done in threads."""
        return

    def report_in_slices(self) -> Generator[None, None, Report]:
        """Build the report, giving way between slices of models."""
        view = self.view
        monitors = view.monitors
        totals = view.totals
        families = view.join_families() + progress_families(
            self._run.of_records(totals.records, totals.clock_ms)
        )
        families += yield from monitors.families_in_slices()
        found = view.mismatches()
        self._mismatches.report(found)
        details = details_with((yield from monitors.details_in_slices()), found)
        details = details_with_caveats(details, view.caveats(), families)
        alarms = sorted(view.alarms.values(), key=lambda alarm: (alarm.event_ms, alarm.model, alarm.outcome))
        return Report(
            families,
            self._host_ms(),
            details,
            tuple(alarms[-RECENT:]),
            monitors.pasts(),
            monitors.history_days,
        )

    def families(self) -> Sequence[Family]:
        """Series of how far the job is, and of events that wait in buckets for the time of a later batch."""
        held = [single("merge_held_records", float(self._held_records))] if self.has_report else []
        behind = self._run.host_is_behind
        clock = single("host_clock_behind", None if behind is None else float(behind))
        return [*held, clock, *self._run.families()]

    async def _take(self) -> None:
        """Take in what is whole: nothing is committed or shown in between."""
        whole = self._batches.take()
        mark = whole.pop((MARK, ""))
        if mark.life != self._life:
            self._begin(mark.life)
        reported = self._checkpoint.reported
        same = mark.life == reported.life
        if same and mark.batch < reported.batch:
            raise StateRefused(
                f"the results topic ends with batch {mark.batch}, but batch {reported.batch} was seen "
                "before: results were lost; set another state.directory to start afresh with what there is"
            )
        before = self._models()
        for number, ((kind, name), result) in enumerate(sorted(whole.items()), 1):
            if result.body and result.life != mark.life:
                continue  # of a job before this one
            if kind == WATERMARK:
                partition, self._run.running_ms[partition] = watermark_of(result.body)
                continue
            if kind == LOSS:
                self._lost[name] = data_loss_of(result.body)
                continue
            self.view.take(kind, name, result.body)
            if kind == ALARM and result.body and not (same and result.batch <= reported.batch):
                self._alarms.append(self.view.alarms[name])
            if number % _TURN == 0:
                await yield_to_loop()
        totals = self.view.totals
        self._held_records = totals.held_records
        self._run.note(totals.records)
        self._alarms.sort(key=lambda alarm: alarm.event_ms)
        self._retired += sorted(before - self._models())
        self.uncommitted += len(whole)
        run = self._run
        run.batch, run.written_ms, run.mark = mark.batch, self._batches.marked_ms, mark_of(mark.body)
        self._newest.written_ms = run.written_ms
        self._checkpoint.reported = LastReportedBatch(
            mark.life, mark.batch, total_data_loss(self._lost.values())
        )

    def _models(self) -> set[str]:
        return {model_of(name) for name in self.view.monitors.models()}

    def _begin(self, life: str) -> None:
        self._life = life
        self.view = ResultsView(self._spec)
        self._run = RunProgress()
        self._lost.clear()
