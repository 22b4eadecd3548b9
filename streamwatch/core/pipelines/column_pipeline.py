"""`ColumnPipeline`: the counterpart of `Pipeline` for records in columns, with a compiled join.

It evaluates the same events to the same outcomes. The difference is where the join's entries are: `Pipeline`
borrows them from the store for each batch, while here the compiled join holds all of them in memory (and the
rest in an `Overflow`). A restart continues from two things that commits write: `snapshot`, in the format of
`Pipeline.snapshot`, and the `changes` of the entries.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final

from streamwatch.core.events import Alarm, Event, Outcome
from streamwatch.core.join.caveats import Caveats, caveats
from streamwatch.core.join.compiled.cold.merging import Merge
from streamwatch.core.join.compiled.cold.store import ColdChanges
from streamwatch.core.join.compiled.durable.waiting_log import Changes
from streamwatch.core.join.compiled.join import CHECK_IDLE, DONE, LOAD_OLDEST, CompiledJoin
from streamwatch.core.join.compiled.layout import Arrays, Records
from streamwatch.core.join.compiled.outside.overflow import Overflow
from streamwatch.core.join.compiled.outside.work import Work
from streamwatch.core.join.compiled.rows import Digests
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.mismatch import Mismatch, mismatches
from streamwatch.core.join.models import joined_folds
from streamwatch.core.join.series import counter_families, gauge_families, identities, model_families
from streamwatch.core.join.working_set import BatchResult, ReadSet, WorkingSet
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.pipelines.column_agreement import ColumnAgreement
from streamwatch.core.pipelines.evaluation import Evaluation
from streamwatch.core.pipelines.join_totals import state_of, totals_of
from streamwatch.core.pipelines.partial_result import PartialResult, joined_outcomes
from streamwatch.core.pipelines.state import decoded, encoded
from streamwatch.core.predictions.active_hint import ActiveHint
from streamwatch.core.predictions.registers import PredictionRegisters
from streamwatch.core.records import RecordBatch
from streamwatch.core.series import Family
from streamwatch.core.specs import JoinSpec

MOST_AT_ONCE: Final = 4_096
"""Number of outcomes after which a step ends."""


class ColumnPipeline:
    """Joins record batches in columns and evaluates the outcomes of all models.

    Parameters
    ----------
    join
        Rules of the join; must satisfy `specs.columns_suffice`.
    monitors
        Estimators of all models. `fold` is called with an `OutcomeBatch` for outcomes joined here.
    digests
        Computes the 128-bit digests of ids.
    overflow
        Storage for entries that do not fit into the join's table; None keeps all entries in memory.

    Raises
    ------
    ValueError
        If `join` is beyond what `specs.columns_suffice` allows.
    """

    def __init__(
        self, join: JoinSpec, monitors: Evaluation, digests: Digests, overflow: Overflow | None = None
    ) -> None:
        self._spec = join
        self._join = CompiledJoin(join, digests, overflow)
        self._monitors = monitors
        self._agreement = ColumnAgreement(join.max_models)
        self._registers = PredictionRegisters(join.prediction_registers)
        self.clock_ms = -1
        """Record time at the last event taken, in milliseconds since the epoch; -1 before the first."""

    @property
    def counters(self) -> JoinCounters:
        """Counters of the join."""
        return self._join.counters

    def read_set(self, events: Sequence[Event]) -> ReadSet:
        """Return a read set that asks for no entries, so that callers can treat both pipelines alike."""
        return ReadSet(events, 0, 0)

    def steps(self, records: RecordBatch) -> Iterator[PartialResult]:
        """Join and evaluate records in order; each step yields a bounded number of outcomes.

        Exhaust the iterator before calling `steps` or `advance` again. `PartialResult.work` of a step has to
        be done before the next step is taken.
        """
        return self._steps(self._join.record_rows(records))

    def advance(self, events: Sequence[Event], found: WorkingSet) -> BatchResult:
        """Join and evaluate all of `events` in order, for callers that have event objects and not columns.

        `found` is handed back in the result unchanged.
        """
        parts: list[OutcomeBatch] = []
        alarms: list[Alarm] = []
        retired: list[tuple[int, str]] = []
        for step in self._steps(self._join.rows(events)):
            if step.work is not None:
                step.work()
            before = sum(map(len, parts))
            retired += [(before + after, model) for after, model in step.retired]
            alarms += step.alarms
            if isinstance(step.outcomes, OutcomeBatch):
                parts.append(step.outcomes)
        return BatchResult(events, found, (), (), (), joined_outcomes(parts), alarms, retired)

    @property
    def is_nearly_full(self) -> bool:
        """Tell whether the join's table should be enlarged (`with_more_room`, `use`) before the next step."""
        return self._join.is_nearly_full

    def with_more_room(self) -> Arrays:
        """Copy the join's arrays into larger ones, for `use`; a thread may do so between two steps."""
        return self._join.with_more_room()

    def use(self, arrays: Arrays) -> None:
        """Replace the join's arrays by those of `with_more_room`; no step may have been taken in between."""
        self._join.use(arrays)

    def _steps(self, rows: Records) -> Generator[PartialResult]:
        join = self._join
        at, why, reported = 0, CHECK_IDLE, 0
        # Scores are read first: the join keeps none of predictions that it resolves.
        scores = join.predicted_scores(rows) if self._registers else None
        yield from _only_work(at, join.prepare(rows))
        while why != DONE:
            parts: list[OutcomeBatch] = []
            alarms: list[Alarm] = []
            retired: list[tuple[int, str]] = []
            if why == LOAD_OLDEST:
                yield from _only_work(at, join.load_oldest(rows[at:]))
            why = CHECK_IDLE
            while why == CHECK_IDLE:
                before = at
                at, why = join.take(rows, at)
                if scores is not None:
                    self._registers.observe(join.accepted(rows, scores, before, at))
                for outcomes in join.take_outcomes(self._reached_ms(rows, at, why)):
                    if sum(map(len, parts)) > MOST_AT_ONCE:
                        yield PartialResult(reported, joined_outcomes(parts), alarms, retired)
                        parts, alarms, retired = [], [], []
                    alarms += self.evaluate(outcomes)
                    parts.append(outcomes)
                if why == CHECK_IDLE:
                    folded = sum(map(len, parts))
                    idle = join.retire(int(rows[at]["record_ms"]))
                    self._retire(idle)
                    retired += [(folded, model) for model in idle]
            if at:
                self.clock_ms = int(rows[at - 1]["record_ms"])
            if why == DONE:
                for work in join.finish():  # the last records count as taken only once this is done
                    yield PartialResult(reported, joined_outcomes(parts), alarms, retired, work)
                    parts, alarms, retired = [], [], []
                join.release_names()
            reported = at
            yield PartialResult(at, joined_outcomes(parts), alarms, retired)

    def _reached_ms(self, rows: Records, at: int, why: int) -> int:
        """Clock that the join has reached where it stopped, before row `at`.

        Whether a model is idle is asked when the clock has come to the row.
        """
        last = at if why == CHECK_IDLE else at - 1
        return int(rows[last]["record_ms"]) if last >= 0 else self.clock_ms

    def release_held(self, found: WorkingSet) -> BatchResult:
        """Evaluate all outcomes held for the order of predictions, at the end of the records.

        No deadline passes.
        """
        parts: list[OutcomeBatch] = []
        alarms: list[Alarm] = []
        for outcomes in self._join.release_held():
            alarms += self.evaluate(outcomes)
            parts.append(outcomes)
        return BatchResult((), found, (), (), (), joined_outcomes(parts), alarms)

    def evaluate(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate outcomes in order, joined here or elsewhere, and return the alarms they raised."""
        if isinstance(outcomes, OutcomeBatch):
            self._agreement.observe(outcomes, self._join.models.version)
        else:
            self._agreement.classes.observe(outcomes)
        self._registers.learn(outcomes)
        return self._monitors.fold(outcomes)

    def add_pairs(self, elsewhere: JoinCounters) -> None:
        """Count the pairs of outcomes that were joined elsewhere."""
        self._join.add_pairs(elsewhere)

    def _retire(self, idle: list[str]) -> None:
        monitored = set(self._monitors.models()) if idle else set[str]()
        for model in idle:
            self._agreement.forget(model)
            self._registers.forget(model)
            if model in monitored:
                self._monitors.retire(model)

    @property
    def start_ms(self) -> int | None:
        """Time at which reading began; see `Pipeline.start_ms`."""
        return self._join.start_ms

    @start_ms.setter
    def start_ms(self, start_ms: int | None) -> None:
        self._join.start_ms = start_ms

    def identities(self) -> list[str]:
        """Describe the sums of counters that do not hold; empty when every event is accounted for."""
        return identities(self._join)

    def mismatches(self) -> list[Mismatch]:
        """Models whose predictions and labels seem not to belong together, by name (`join.mismatch`)."""
        models = self._join.holdings().models
        return mismatches(self._agreement.classes, models, self.clock_ms - self._spec.early_horizon_ms)

    def caveats(self) -> dict[str, Caveats]:
        """Caveats beside verdicts, by model."""
        return caveats(joined_folds(self._join.holdings().models), self._spec, self.clock_ms)

    def prediction_details(self) -> dict[str, dict[str, object]]:
        """Details from the prediction registers, which need no labels, by model."""
        return self._registers.details()

    def active_hints(self) -> dict[str, ActiveHint]:
        """Early hints that are active, by model."""
        return self._registers.active_hints()

    def join_families(self) -> list[Family]:
        """Series of the join and of the prediction registers."""
        families = counter_families(self._join, self._monitors.records_over_limit)
        of_models = [*model_families(self._join, self.mismatches()), *self._registers.families()]
        return [*families, *gauge_families(self._join), *of_models]

    def families(self) -> list[Family]:
        """Every series, those of the estimators last."""
        return self.join_families() + self._monitors.families()

    def snapshot(self) -> bytes:
        """Encode the state without join entries and estimators, in the format of `Pipeline.snapshot`."""
        agreement, registers = self._agreement.classes.state(), self._registers.snapshot()
        return encoded(state_of(self._join.totals(), self.clock_ms, agreement, registers))

    def changes(self, commit: int) -> Changes:
        """Changes of the join's entries for commit number `commit`: values by key, None to remove a key.

        Each call assumes that the changes of the call before were committed.
        """
        return self._join.changes(commit)

    def run_changes(self) -> ColdChanges | None:
        """Changes outside the join's table, for the same commit as `changes`; None without an overflow."""
        return self._join.run_changes()

    @property
    def unmatched_outside(self) -> int:
        """Number of labels outside the join's table that have met no prediction."""
        return int(self._join.arrays.totals["cold_unmatched"][0])

    @property
    def entries_outside(self) -> int:
        """Number of the join's entries outside its table, those settled meanwhile included."""
        return self._join.entries_outside

    def plan_merge(self) -> Merge | None:
        """Plan the merge of several runs of entries outside the table into one; None if none is due.

        Call its `run` in a thread (steps may be taken meanwhile), then `finish_merge`.
        """
        return self._join.plan_merge()

    def finish_merge(self, merge: Merge) -> None:
        """Use the result of `merge` in place of the runs it merged; not while `steps` is iterated."""
        self._join.finish_merge(merge)

    def restore(self, snapshot: bytes, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Continue from the last commit's `snapshot`, and the items that `changes` has left in the store.

        Raises
        ------
        msgspec.DecodeError
            If `snapshot` is not one of this version.
        PackedError
            If `items` are not what `changes` gives, or do not belong to `snapshot`.
        """
        state = decoded(snapshot)
        self._join.restore(totals_of(state), items)
        self.clock_ms = state.clock_ms
        self._agreement.restore(state.agreement)
        self._registers.restore(state.predictions)


def _only_work(taken: int, pieces: Iterator[Work]) -> Iterator[PartialResult]:
    for work in pieces:
        yield PartialResult(taken, (), (), (), work)
