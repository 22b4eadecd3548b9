"""The results of a distributed run, taken in as a daemon takes in records: whole batches, each once.

What the topic says is read from its beginning at every start, as it is compacted; the state keeps which
batch was told of last, and who has yet to be told of what. Nothing is shown before the topic was read to
the end that it had: of what was compacted only the whole is of one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final

from streamwatch.core.buckets.contract import ALARM
from streamwatch.core.buckets.spec import BucketsSpec
from streamwatch.core.buckets.view import ResultsView
from streamwatch.core.events import Alarm, Partition
from streamwatch.core.fold_names import model_of
from streamwatch.core.join.caveats import details_with_caveats
from streamwatch.core.join.mismatch import details_with
from streamwatch.core.merge import MergeProgress
from streamwatch.core.merge.series import progress_families
from streamwatch.core.metrics import single
from streamwatch.core.ports import Poll, Record
from streamwatch.core.results import (
    LOSS,
    MARK,
    WATERMARK,
    DataLoss,
    data_loss_of,
    mark_of,
    total_data_loss,
    watermark_of,
)
from streamwatch.core.series import Family, Report
from streamwatch.daemon.giving_way import yield_to_loop
from streamwatch.daemon.processing.mismatch import MismatchReporter
from streamwatch.daemon.processing.rejected_records import RejectedRecords
from streamwatch.daemon.results.checkpoint import LastReportedBatch, ResultsCheckpoint
from streamwatch.daemon.results.progress import RunProgress
from streamwatch.daemon.results.whole_batches import WholeBatches
from streamwatch.edge.stores.errors import StateRefused
from streamwatch.telemetry import Telemetry

SHOWN_ALARMS: Final = 100
"""Latest alarms in a report."""
_TURN: Final = 200
"""Results taken in before others have a turn."""


class ResultsProcessor:
    """Implements `Processor` for the results topic.

    Parameters
    ----------
    spec
        How the stream is cut.
    checkpoint
        Told which batch was taken in.
    telemetry
        Told of models whose classes do not fit.
    host_ms
        The host's clock, in milliseconds since the epoch.
    """

    def __init__(
        self,
        spec: BucketsSpec,
        checkpoint: ResultsCheckpoint,
        telemetry: Telemetry,
        host_ms: Callable[[], int],
    ) -> None:
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
        """Tell whether a whole batch was taken in."""
        return bool(self._life)

    @property
    def is_empty(self) -> bool:
        """Tell whether the topic was read to its end and holds no whole batch."""
        return self._at_end and not self._life

    @property
    def data_loss(self) -> DataLoss:
        """Records missing of the job's topics, as far as batches were taken in."""
        return self._checkpoint.told.data_loss

    def settle(self) -> tuple[Sequence[Alarm], Sequence[str]]:
        """Hand over alarms since the last commit, and models that are no longer there."""
        self.uncommitted = 0
        alarms, self._alarms = self._alarms, []
        retired, self._retired = self._retired, []
        return alarms, retired

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Tell whether what was read is yet to be taken in."""
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
            If the topic ends before a batch that was told of.
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
        self._mismatches.tell(found)
        details = details_with((yield from monitors.details_in_slices()), found)
        details = details_with_caveats(details, view.caveats())
        alarms = sorted(view.alarms.values(), key=lambda alarm: (alarm.event_ms, alarm.model, alarm.outcome))
        return Report(
            families,
            self._host_ms(),
            details,
            tuple(alarms[-SHOWN_ALARMS:]),
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
        told = self._checkpoint.told
        same = mark.life == told.life
        if same and mark.batch < told.batch:
            raise StateRefused(
                f"the results topic ends with batch {mark.batch}, but batch {told.batch} was seen before: "
                "results were lost; set another state.directory to start afresh with what there is"
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
            if kind == ALARM and result.body and not (same and result.batch <= told.batch):
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
        self._checkpoint.told = LastReportedBatch(mark.life, mark.batch, total_data_loss(self._lost.values()))

    def _models(self) -> set[str]:
        return {model_of(name) for name in self.view.monitors.models()}

    def _begin(self, life: str) -> None:
        self._life = life
        self.view = ResultsView(self._spec)
        self._run = RunProgress()
        self._lost.clear()
