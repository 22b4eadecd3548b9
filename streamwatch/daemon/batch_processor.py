"""Records in, state out: decode, merge, fetch, advance, keep, in turns that let health checks answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streamwatch.core.column_pipeline import ColumnPipeline
from streamwatch.core.commit.checkpoint import Checkpoint
from streamwatch.core.events import Alarm, Partition, Side
from streamwatch.core.fold_names import fold_of, model_of
from streamwatch.core.join.caveats import details_with_caveats
from streamwatch.core.join.compiled.outside.overflow import Work
from streamwatch.core.join.mismatch import details_with
from streamwatch.core.merge import Arrivals, Merge, MergeProgress, MergeSpec, Released, arrivals_of
from streamwatch.core.merge.elements import expanded_in_turns
from streamwatch.core.merge.series import held_families, progress_families
from streamwatch.core.ports import Decoder, Poll, Record, Store
from streamwatch.core.predictions.registers import details_with_predictions
from streamwatch.core.records import OBJECT
from streamwatch.core.results import Lost
from streamwatch.core.series import Family, Report
from streamwatch.daemon.evaluating import Evaluating, InColumns, RowByRow
from streamwatch.daemon.giving_way import yield_to_loop
from streamwatch.daemon.mismatch import MismatchReporter
from streamwatch.daemon.recent_records import RecentRecords
from streamwatch.daemon.rejected_records import RejectedRecords
from streamwatch.daemon.store_maintenance import StoreMaintenance
from streamwatch.daemon.turns import ROOM, in_turns, room_after
from streamwatch.telemetry import (
    HostClockBehind,
    HostClockRight,
    PartitionLeftBehind,
    RecordRejected,
    Telemetry,
)


@dataclass(frozen=True, slots=True)
class Topic:
    """Side of a topic, and the decoder of its records."""

    side: Side
    decoder: Decoder


@dataclass(frozen=True, slots=True)
class Clocks:
    """Time outside the records, in milliseconds."""

    host_ms: Callable[[], int]
    """Since the epoch, by the host's clock."""
    monotonic_ms: Callable[[], int]
    """Of a clock that never goes back; fetches are timed by it too."""


class BatchProcessor:
    """Brings what polls deliver into one sequence, and the sequence through the core into the store.

    Parameters
    ----------
    checkpoint
        The core and its estimators, and what remembers what commits need.
    store
        Where state lives.
    topics
        What each topic carries, and how to decode it; in the order of the settings.
    telemetry
        Told of rejected records and of partitions that are not waited for.
    clocks
        The host's clocks.
    merge
        How long records wait for others.
    progress
        Where the sequence goes on, of a state that was restored.
    rejected
        Given every invalid record.
    upkeep
        Keeps entries outside the join's table in order; None where there are none.
    """

    def __init__(  # noqa: PLR0913  # one for each thing it works with
        self,
        checkpoint: Checkpoint,
        store: Store,
        topics: Mapping[str, Topic],
        telemetry: Telemetry,
        clocks: Clocks,
        merge: MergeSpec | None = None,
        progress: MergeProgress | None = None,
        *,
        rejected: RejectedRecords | None = None,
        upkeep: StoreMaintenance | None = None,
    ) -> None:
        self.pipeline = pipeline = checkpoint.pipeline
        self.progress = progress or MergeProgress()
        self._monitors = checkpoint.monitors
        self._evaluating: Evaluating = RowByRow(checkpoint, store)
        if isinstance(pipeline, ColumnPipeline):
            self._evaluating = InColumns(pipeline, checkpoint if store.durable else None)
        self._topics = topics
        self._telemetry = telemetry
        self._clocks = clocks
        sides: dict[str, Side] = {name: topic.side for name, topic in topics.items()}
        self._merge = Merge(merge or MergeSpec(), sides, self.progress)
        self._recent = RecentRecords()
        self.rejected = rejected or RejectedRecords()
        self._turns: Iterator[Released] = iter(())
        self.upkeep = upkeep
        self._work: Work | None = None
        self._ready: Released | None = None
        self._taken = 0
        self._room = ROOM
        self._read: Mapping[Partition, int] = {}
        self._host_was_behind = False
        self._mismatches = MismatchReporter(telemetry)
        self._uncommitted = self._uncommitted_scores = 0
        self._alarms: list[Alarm] = []
        self._retired: list[str] = []
        self.records = 0
        """Records read since the start."""

    @property
    def positions(self) -> Mapping[Partition, int]:
        """Positions after what was evaluated."""
        return self.progress.positions

    @property
    def uncommitted(self) -> int:
        """Events evaluated since `settle`."""
        return self._uncommitted

    @property
    def uncommitted_scores(self) -> int:
        """Scores of predictions and outcomes evaluated since `settle`; 0 where nothing is durable."""
        return self._uncommitted_scores

    @property
    def has_ready(self) -> bool:
        """Tell whether released records wait to be evaluated."""
        return self._ready is not None

    @property
    def has_report(self) -> bool:
        """Tell whether there is something to be shown: always."""
        return True

    @property
    def lost(self) -> Lost:
        """Nothing but what the source finds."""
        return Lost()

    def settle(self) -> tuple[Sequence[Alarm], Sequence[str]]:
        """Hand over alarms and retired models since the last commit, which are being committed."""
        self._uncommitted = self._uncommitted_scores = 0
        alarms, self._alarms = self._alarms, []
        retired, self._retired = self._retired, []
        return alarms, retired

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Tell whether something is yet to be evaluated that was read by then."""
        return self._ready is not None or self._merge.holds_from_before(arrived_ms)

    def crowded(self) -> frozenset[Partition]:
        """Name the partitions that are so far ahead of others that no more should be asked of them."""
        return self._merge.crowded()

    def flush(self, moved: frozenset[Partition]) -> None:
        """Release what is held of these partitions, whose logs are no longer there; nothing may be ready."""
        self._begin(self._merge.flush(sorted(moved), self._clocks.host_ms()))

    def forget_records(self, partitions: frozenset[Partition]) -> None:
        """Recognise these logs no longer by what was read of them: they are others now."""
        for partition in partitions:
            self._recent.forget(partition)

    def take_newest(self) -> Mapping[Partition, Record]:
        """Hand over the last records evaluated since the last call, by which the logs are recognised."""
        return self._recent.take(self.progress.take_newest())

    async def receive(self, poll: Poll, *, connected: bool = True) -> None:
        """Decode what a poll delivered and release what may go; nothing may be ready.

        Parameters
        ----------
        poll
            Records by partition, and the state of every partition.
        connected
            Whether brokers answer.
        """
        self._meet(poll)
        clocks = self._clocks
        for turn, delivered in enumerate(in_turns(poll.records, lambda: self._room)):
            if turn:
                await yield_to_loop()
            decoded = {
                partition: self._decoded(partition, records) for partition, records in delivered.items()
            }
            self._room = room_after(decoded.values())
            self._merge.add(decoded, clocks.monotonic_ms())
        self._merge.found({partition: state.at_end_ms for partition, state in poll.partitions.items()})
        self._read = {partition: state.position for partition, state in poll.partitions.items()}
        self._begin(self._merge.in_turns(clocks.monotonic_ms(), clocks.host_ms(), connected=connected))

    async def make_room(self) -> None:
        """Make the room that the next of the released records need, if that takes long."""
        await self._evaluating.make_room()

    def evaluate(self) -> int:
        """Evaluate the next of the released records, so many as fit a turn; the number of alarms raised.

        Work that was not taken since the last call is done first.
        """
        if (work := self.take_work()) is not None:
            work()
        ready = self._ready
        if ready is None:
            return 0
        done = self._evaluating.take(ready.records, self._taken, ready.end_of_record)
        self.progress.note(ready.part(self._taken, self._taken + done.taken))
        for event in done.invalid:
            self._telemetry.emit(RecordRejected(event.topic, event.partition, event.offset, event.reason))
            self.rejected.release(event)
        self._taken += done.taken
        self._uncommitted += done.taken + done.changed
        self._uncommitted_scores += done.scores
        self._work = done.work
        self._alarms += done.alarms
        self._note_retired(done.retired)
        if self._taken == len(ready):
            self._next_turn()
        return len(done.alarms)

    def take_work(self) -> Work | None:
        """Hand over what has to be done before `evaluate` goes on, or anything is committed; for a thread."""
        work, self._work = self._work, None
        return work

    def report_in_slices(self) -> Generator[None, None, Report]:
        """Build the report, giving way between slices of models."""
        families = self.pipeline.join_families() + progress_families(self.progress)
        families += yield from self._monitors.families_in_slices()
        found = self.pipeline.mismatches()
        self._mismatches.tell(found)
        details = details_with((yield from self._monitors.details_in_slices()), found)
        details = details_with_caveats(details, self.pipeline.caveats())
        details = details_with_predictions(details, self.pipeline.prediction_details())
        return Report(
            families,
            self._clocks.host_ms(),
            details,
            tuple(self._monitors.recent_alarms),
            self._monitors.pasts(),
            self._monitors.history_days,
        )

    def families(self) -> Sequence[Family]:
        """Records held by the merge, the partitions waited for, and dead letters."""
        return [*held_families(self._merge, self._clocks.monotonic_ms()), *self.rejected.families()]

    def _begin(self, turns: Iterable[Released]) -> None:
        self._turns = expanded_in_turns(turns)
        self._next_turn()

    def _next_turn(self) -> None:
        """Have the next of what is released at hand, if there is more."""
        self._taken = 0
        self._ready = next(self._turns, None)
        self._tell()
        if self._ready is None:
            self._recent.let_go(self.progress.newest)
            self._advance_positions()

    def _note_retired(self, names: Sequence[str]) -> None:
        """Remember models that retired; one that predicts in folds has when its last fold has."""
        alive = {model_of(name) for name in self._monitors.models()} if names else set[str]()
        for name in names:
            model = model_of(name)
            if fold_of(name) is None or model not in alive:
                self._retired.append(model)

    def _advance_positions(self) -> None:
        """Go on where reading stands in partitions of which nothing is held: past control records, too."""
        for partition, position in self._read.items():
            if self._merge.is_empty(partition):
                self.progress.positions[partition] = position

    def _meet(self, poll: Poll) -> None:
        """Take up partitions seen for the first time, and forget those that are no longer there."""
        for partition in poll.moved:  # an offset of the log before says nothing of this one
            self.progress.newest.pop(partition, None)
        for partition, state in poll.partitions.items():
            if partition not in self.progress.positions or partition in poll.moved:
                records = poll.records.get(partition, ())
                self.progress.positions[partition] = records[0].offset if records else state.position
        if poll.partitions:
            self._merge.set_partitions(list(poll.partitions))
            for partition in self.progress.positions.keys() - poll.partitions.keys():
                self.progress.forget(partition)

    def _decoded(self, partition: Partition, records: Sequence[Record]) -> Arrivals:
        batch = self._topics[partition.topic].decoder.decode_batch(records)
        self._recent.add(partition, records)
        self.records += len(records)
        if batch.objects:
            self.rejected.keep(records, batch, np.flatnonzero(batch.rows["side"] == OBJECT))
        return arrivals_of(records, batch)

    def _tell(self) -> None:
        """Say who is not waited for any more, and whether the host's clock is believed."""
        for partition in self._merge.left_behind:
            self.progress.left_behind += 1
            self._telemetry.emit(PartitionLeftBehind(partition.topic, partition.partition))
        self._merge.left_behind.clear()
        if self._merge.host_is_behind != self._host_was_behind:
            self._host_was_behind = self._merge.host_is_behind
            self._telemetry.emit(HostClockBehind() if self._host_was_behind else HostClockRight())
