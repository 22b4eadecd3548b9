"""Results of a distributed (Spark) job, read by a daemon from their topic: whole batches, each once.

The topic is compacted and read from its beginning at every start; the state keeps the last reported batch and
the pending notifications. Nothing is shown before the topic was read to its end as of the start: compaction
removes records of earlier batches, so that only all of its records together are the results of one moment.
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
from streamwatch.core.join.caveats import details_with, details_with_caveats
from streamwatch.core.join.durable.packed import reading
from streamwatch.core.merge import MergeProgress
from streamwatch.core.merge.merge import progress_families
from streamwatch.core.merge.timestamps import FUTURE, REASONS
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.series import Family, Report
from streamwatch.core.ports import CommitBatch, Poll, Record
from streamwatch.core.records.events import Alarm, Partition, model_of
from streamwatch.daemon.merged_records import MismatchReporter, RejectedRecords, yield_to_loop
from streamwatch.edge.stores.kind import StateRefused
from streamwatch.telemetry import Telemetry

RESULTS: Final = "results"
"""Section of a commit with the batch that was reported last."""


class LastReportedBatch(msgspec.Struct, frozen=True, array_like=True):
    """The last batch of the job that was reported."""

    life: str = ""
    """Identifier of the job's state; empty before the first batch."""
    batch: int = 0
    """Number of the batch."""
    data_loss: DataLoss = DataLoss()
    """Data loss that the job found in its topics up to this batch."""


_LAST_REPORTED: Final = msgspec.msgpack.Decoder(LastReportedBatch)


def last_reported_of(section: bytes | None) -> LastReportedBatch:
    """Decode the section `results` of a commit; raises PackedError for other bytes."""
    with reading(f"the section {RESULTS!r}"):
        return LastReportedBatch() if section is None else _LAST_REPORTED.decode(section)


@dataclass(slots=True)
class ResultsCheckpoint:
    """Builds the commits of a state of results, which have the last reported batch; like `Checkpoint`."""

    reported: LastReportedBatch
    """Last batch that was reported."""
    commits: int = 0
    """Number of the last commit."""

    def changes(
        self, sections: Mapping[str, bytes], outbox: Mapping[str, bytes | None] | None = None
    ) -> CommitBatch:
        """Build the next commit."""
        self.commits += 1
        own = {RESULTS: msgspec.msgpack.encode(self.reported)}
        return CommitBatch({**own, **sections}, outbox=outbox or {})


STALE_INTERVALS: Final = 10
STALE_SECONDS: Final = 300.0
"""Results are stale if the newest batch is older than this many intervals of the job and seconds."""


@dataclass(slots=True)
class NewestBatch:
    """Time of the job's newest batch, and whether it is stale.

    Parameters
    ----------
    interval_seconds
        Time between two batches of the job.
    """

    interval_seconds: float
    written_ms: int | None = None
    """Time at which the batch was written, since the epoch; None before the first."""

    def is_stale(self, now_ms: int) -> bool:
        """Return whether the batch is older than ten intervals and five minutes; false before the first."""
        if self.written_ms is None:
            return False
        most_seconds = max(STALE_INTERVALS * self.interval_seconds, STALE_SECONDS)
        return now_ms - self.written_ms > 1_000 * most_seconds


@dataclass(slots=True)
class RunProgress:
    """The newest batch of the job, and the newest record times."""

    batch: int = 0
    """Number of the batch; 0 before the first."""
    written_ms: int = 0
    """Record time of the batch's mark in the topic."""
    mark: BatchMark = field(default_factory=lambda: BatchMark("", -1))
    """Mark of the batch: the record that ends it."""
    running_ms: dict[Partition, int] = field(default_factory=dict[Partition, int])
    """Newest record time by partition of the job's topics."""
    host_is_behind: bool | None = None
    """Whether most records evaluated since the previous `note` had times in the future of the job's clock;
    None before two calls of `note`."""
    _counted: tuple[int, int] | None = None
    """Records evaluated up to the last `note`, and those of them with times in the future."""

    def note(self, records: RecordCounts) -> None:
        """Compare counts of records, which are since the beginning, with those of the previous call."""
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
        """Convert counts of the job's records to progress, for the metrics of a merge."""
        counts = {each.name: getattr(records, each.name) for each in fields(RecordCounts)}
        return MergeProgress(clock_ms=clock_ms, running_ms=self.running_ms, **counts)


@dataclass(slots=True)
class WholeBatches:
    """Holds results until the mark that ends their batch was read; the latest result of a name counts."""

    whole: dict[tuple[str, str], ResultRecord] = field(default_factory=dict[tuple[str, str], ResultRecord])
    """Results of whole batches since the last `take`, by kind and name."""
    marked_ms: int = 0
    """Record time of the last mark."""
    _held: dict[tuple[str, str], ResultRecord] = field(default_factory=dict[tuple[str, str], ResultRecord])
    """Results of the batch whose mark was not read yet, by kind and name."""

    def add(self, record: Record) -> None:
        """Add a record of the topic.

        Raises
        ------
        ResultsFormatError
            If it is not a record of results.
        """
        if record.key is None:
            return  # not written by the job: all of its records have keys
        result = result_of(record.key, record.value)
        self._held[result.kind, result.name] = result
        if result.kind == MARK:
            self.marked_ms = record.timestamp
            self.whole |= self._held
            self._held.clear()

    def take(self) -> dict[tuple[str, str], ResultRecord]:
        """Return the results of whole batches, including the latest mark, and forget them."""
        whole, self.whole = self.whole, {}
        return whole

    def clear(self) -> None:
        """Drop everything."""
        self._held.clear()
        self.whole.clear()


_TURN: Final = 200
"""Results evaluated before the event loop may turn."""


class ResultsProcessor:
    """Evaluates the results topic; like `BatchProcessor`, which evaluates records.

    Parameters
    ----------
    spec
        Buckets of the job: how its stream of records is divided.
    checkpoint
        Updated with the batch that was evaluated.
    telemetry
        Receives internal events about models whose predicted and true classes do not match.
    host_ms
        The host's clock, in milliseconds since the epoch.
    newest
        Updated with the time of the newest batch.
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
        """Positions of reading in the results topic."""
        return self.progress.positions

    @property
    def uncommitted_scores(self) -> int:
        """Return 0: results contain no scores to be committed."""
        return 0

    @property
    def has_ready(self) -> bool:
        """Return False: `receive` evaluates all whole batches."""
        return False

    @property
    def may_commit(self) -> bool:
        """Return True: `receive` evaluates whole batches."""
        return True

    @property
    def has_report(self) -> bool:
        """Return whether a whole batch was evaluated."""
        return bool(self._life)

    @property
    def is_empty(self) -> bool:
        """Return whether the topic was read to its end and holds no whole batch."""
        return self._at_end and not self._life

    @property
    def data_loss(self) -> DataLoss:
        """Data loss that the job found in its topics, up to the last evaluated batch."""
        return self._checkpoint.reported.data_loss

    def settle(self) -> tuple[Sequence[Alarm], Sequence[str]]:
        """Return the alarms and the names of retired models since the last call, for a commit."""
        self.uncommitted = 0
        alarms, self._alarms = self._alarms, []
        retired, self._retired = self._retired, []
        return alarms, retired

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Return whether a whole batch was read and not evaluated yet."""
        del arrived_ms
        return bool(self._batches.whole)

    def crowded(self) -> frozenset[Partition]:
        """Return no partition: the topic has only one."""
        return frozenset()

    def flush(self, moved: frozenset[Partition]) -> None:
        """Forget all results, as the topic was replaced and is read from its beginning."""
        del moved
        self._begin("")
        self._batches.clear()
        self._at_end = False

    def forget_records(self, partitions: frozenset[Partition]) -> None:
        """Do nothing: single records are not remembered."""
        del partitions

    def take_newest(self) -> Mapping[Partition, Record]:
        """Return no records: every start reads the topic from its beginning."""
        return {}

    async def receive(self, poll: Poll, *, connected: bool = True) -> None:
        """Evaluate the whole batches, once the topic was read to its end.

        Raises
        ------
        ResultsFormatError
            If a record is not one of results.
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
        """Do nothing: there are no tables to enlarge."""

    def evaluate(self) -> int:
        """Return 0: nothing is ever ready."""
        return 0

    def take_work(self) -> None:
        """Return None: no work is done in threads."""
        return

    def report_in_slices(self) -> Generator[None, None, Report]:
        """Build the report as a generator, which yields between slices of models and returns the report."""
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
        """Series of the job's newest batch and clock, and events that wait in buckets for a later batch."""
        held = [single("merge_held_records", float(self._held_records))] if self.has_report else []
        behind = self._run.host_is_behind
        clock = single("host_clock_behind", None if behind is None else float(behind))
        return [*held, clock, *self._run.families()]

    async def _take(self) -> None:
        """Evaluate the whole batches, with no commit or report in between."""
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
                continue  # written by an earlier job
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
