"""`Pipeline` with a compiled join: the same steps and results.

It keeps its entries itself: the store has nothing to lend. What lasts is its snapshot, which is that of a
`Pipeline`, and what every commit writes of the entries (`changes`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from streamwatch.core.events import Alarm, Event, Outcome
from streamwatch.core.join.caveats import Caveats, caveats
from streamwatch.core.join.compiled.cold.merging import Merge
from streamwatch.core.join.compiled.cold.store import ColdChanges
from streamwatch.core.join.compiled.durable.totals import JoinTotals
from streamwatch.core.join.compiled.durable.waiting_log import Changes
from streamwatch.core.join.compiled.join import BRING, DONE, LOOK, CompiledJoin
from streamwatch.core.join.compiled.layout import Arrays, Records
from streamwatch.core.join.compiled.outside.overflow import Overflow, Work
from streamwatch.core.join.compiled.rows import Digests
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.mismatch import ClassAgreement, Mismatch, mismatches
from streamwatch.core.join.reorder import OrderState
from streamwatch.core.join.series import counter_families, gauge_families, identities, model_families
from streamwatch.core.join.working_set import BatchResult, ReadSet, WorkingSet
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.pipeline import Evaluation, PipelineState, decoded, encoded
from streamwatch.core.predictions.active_hint import ActiveHint
from streamwatch.core.predictions.registers import PredictionRegisters
from streamwatch.core.records import RecordBatch
from streamwatch.core.series import Family
from streamwatch.core.specs import JoinSpec
from streamwatch.core.words import joined

NOTHING_HELD: Final = OrderState([], [], (-1, -1), 0)
"""Outcomes are evaluated as they are resolved."""


@dataclass(frozen=True, slots=True)
class PartialResult:
    """Result of some of the records that were given."""

    taken: int
    """Records joined and evaluated up to now, of those that were given."""
    outcomes: Sequence[Outcome]
    """Outcomes of this step."""
    alarms: Sequence[Alarm]
    retired: Sequence[tuple[int, str]]
    """Models that retired, each with the number of this step's outcomes that came before."""
    work: Work | None = None
    """To be done, in whatever thread, before the next step is made or anything is committed."""


class ColumnPipeline:
    """Join, record time and evaluation of all models, in columns.

    Parameters
    ----------
    join
        One that columns suffice for.
    monitors
        What evaluates outcomes; handed `OutcomeBatch`es.
    digests
        What makes the ids' digests.
    overflow
        What takes entries of the join that do not fit into its table; None where all of them are in memory.

    Raises
    ------
    ValueError
        If outcomes are to wait for the order of predictions, or to be compared.
    """

    def __init__(
        self, join: JoinSpec, monitors: Evaluation, digests: Digests, overflow: Overflow | None = None
    ) -> None:
        self._spec = join
        self._join = CompiledJoin(join, digests, overflow)
        self._monitors = monitors
        self._agreement = ClassAgreement(join.max_models)
        self._registers = PredictionRegisters(join.prediction_registers)
        self._settled = np.zeros(0, np.bool_)  # by number: models whose classes need no look any more
        self._names: Sequence[str] = ()
        self._version = 0
        self.clock_ms = -1
        """Clock at the last event that was taken; -1 before the first."""

    @property
    def counters(self) -> JoinCounters:
        """Counters of the join."""
        return self._join.counters

    def read_set(self, events: Sequence[Event]) -> ReadSet:
        """Compute what must be fetched: nothing, but whoever asks may go on as with any store."""
        return ReadSet(events, 0, 0)

    def steps(self, records: RecordBatch) -> Iterator[PartialResult]:
        """Join and evaluate records in order, a bounded number of outcomes at a step.

        All steps must be made before other records are given.
        """
        return self._steps(self._join.record_rows(records))

    def advance(self, events: Sequence[Event], found: WorkingSet) -> BatchResult:
        """Join and evaluate events in order, all of them: where records are no columns."""
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
        return BatchResult(events, found, (), (), (), _together(parts), alarms, retired)

    @property
    def is_nearly_full(self) -> bool:
        """Tell whether the join is better given more room before the next step."""
        return self._join.is_nearly_full

    def with_more_room(self) -> Arrays:
        """Compute what `use` is given; a thread may do so between two steps."""
        return self._join.with_more_room()

    def use(self, arrays: Arrays) -> None:
        """Go on with more room; no step may have been made since it was computed."""
        self._join.use(arrays)

    def _steps(self, rows: Records) -> Generator[PartialResult]:
        join = self._join
        at, why, told = 0, LOOK, 0
        scores = join.predicted_scores(rows) if self._registers else None  # of those resolved none are kept
        for work in join.prepare(rows):
            yield PartialResult(at, (), (), (), work)
        while why != DONE:
            parts: list[OutcomeBatch] = []
            alarms: list[Alarm] = []
            retired: list[tuple[int, str]] = []
            if why == BRING:
                for work in join.bring_back(rows[at:]):
                    yield PartialResult(at, (), (), (), work)
            why = LOOK
            while why == LOOK:
                before = at
                at, why = join.take(rows, at)
                if scores is not None:
                    self._registers.observe(join.accepted(rows, scores, before, at))
                outcomes = join.take_outcomes()
                if len(outcomes):
                    alarms += self.evaluate(outcomes)
                    parts.append(outcomes)
                if why == LOOK:
                    folded = sum(map(len, parts))
                    idle = join.retire(int(rows[at]["record_ms"]))
                    self._retire(idle)
                    retired += [(folded, model) for model in idle]
            if at:
                self.clock_ms = int(rows[at - 1]["record_ms"])
            if why == DONE:
                for work in join.finish():  # the last records count as taken with the last step
                    yield PartialResult(told, _together(parts), alarms, retired, work)
                    parts, alarms, retired = [], [], []
                join.release_names()
            told = at
            yield PartialResult(at, _together(parts), alarms, retired)

    def release_held(self, found: WorkingSet) -> BatchResult:
        """Nothing is held for its order."""
        return BatchResult((), found, (), (), ())

    def evaluate(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate outcomes in order, joined elsewhere or here; the alarms they raised."""
        if isinstance(outcomes, OutcomeBatch):
            self._observe(outcomes)
        else:
            self._agreement.observe(outcomes)
        self._registers.learn(outcomes)
        return self._monitors.fold(outcomes)

    def _observe(self, outcomes: OutcomeBatch) -> None:
        """Look at the classes of models that have not shown yet that they agree with their labels."""
        names = outcomes.models
        version = self._join.models.version
        if self._names is not names or self._version != version or len(self._settled) < len(names):
            self._names, self._version = names, version
            self._settled = np.zeros(2 * len(names), np.bool_)
        numbers = outcomes.records["model"]
        is_open = ~self._settled[numbers]
        if is_open.any():
            self._agreement.observe(outcomes.only(is_open))
            for number in np.unique(numbers[is_open]).tolist():
                self._settled[number] = self._agreement.is_settled(names[int(number)])

    def _retire(self, idle: list[str]) -> None:
        monitored = set(self._monitors.models()) if idle else set[str]()
        for model in idle:
            self._agreement.forget(model)
            self._registers.forget(model)
            self._settled[:] = False
            if model in monitored:
                self._monitors.retire(model)

    @property
    def start_ms(self) -> int | None:
        """Time at which reading began, as `Pipeline.start_ms` says."""
        return self._join.start_ms

    @start_ms.setter
    def start_ms(self, start_ms: int | None) -> None:
        self._join.start_ms = start_ms

    def identities(self) -> list[str]:
        """Sums of counters that do not hold, in words; empty when every event is accounted for."""
        return identities(self._join)

    def mismatches(self) -> list[Mismatch]:
        """Mismatches of models, by name."""
        models = self._join.holdings().models
        return mismatches(self._agreement, models, self.clock_ms - self._spec.early_horizon_ms)

    def caveats(self) -> dict[str, Caveats]:
        """Caveats beside verdicts, by model."""
        return caveats(self._join.holdings().models, self._spec, self.clock_ms)

    def prediction_details(self) -> dict[str, dict[str, object]]:
        """Details of models that are known from their predictions as they arrive, by name."""
        return self._registers.details()

    def active_hints(self) -> dict[str, ActiveHint]:
        """Early hints that are active, by model."""
        return self._registers.active_hints()

    def join_families(self) -> list[Family]:
        """Series of the join, and of predictions as they arrive."""
        families = counter_families(self._join, self._monitors.records_over_limit)
        of_models = [*model_families(self._join, self.mismatches()), *self._registers.families()]
        return [*families, *gauge_families(self._join), *of_models]

    def families(self) -> list[Family]:
        """Every series, those of the estimators last."""
        return self.join_families() + self._monitors.families()

    def snapshot(self) -> bytes:
        """Everything but the entries and the estimators, as `Pipeline.snapshot` has it."""
        totals = self._join.totals()
        return encoded(
            PipelineState(
                self.clock_ms,
                totals.passed_ms,
                totals.counters,
                totals.join_models,
                totals.dedup,
                NOTHING_HELD,
                totals.early,
                totals.unmatched,
                totals.retained,
                totals.start_ms,
                totals.oldest_pending_ms,
                self._agreement.state(),
                predictions=self._registers.snapshot(),
            )
        )

    def changes(self, commit: int) -> Changes:
        """Compute what commit `commit` writes of the entries, by key; None removes a key.

        Every call has to be followed by its commit.
        """
        return self._join.changes(commit)

    def run_changes(self) -> ColdChanges | None:
        """Compute what the same commit writes of entries outside the join's table; None if none can be."""
        return self._join.run_changes()

    @property
    def unmatched_outside(self) -> int:
        """Labels outside the join's table that have met nobody."""
        return int(self._join.arrays.totals["cold_unmatched"][0])

    @property
    def entries_outside(self) -> int:
        """Entries of the join outside its table, dead ones included."""
        return self._join.entries_outside

    def upkeep(self) -> Merge | None:
        """Plan what keeps entries outside the table in few runs; None if nothing is due.

        Its `run` belongs into a thread, beside everything else, and `finish_upkeep` goes after it.
        """
        return self._join.upkeep()

    def finish_upkeep(self, merge: Merge) -> None:
        """Use what `upkeep` planned; not while steps are being made."""
        self._join.finish_upkeep(merge)

    def restore(self, snapshot: bytes, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Continue from the last commit's snapshot, and what all commits have written of the entries.

        Raises
        ------
        msgspec.DecodeError
            If it is not a snapshot of this version.
        PackedError
            If the items are not what commits write, or not those of this snapshot.
        """
        state = decoded(snapshot)
        self._join.restore(
            JoinTotals(
                state.passed_ms,
                state.counters,
                state.join_models,
                state.dedup,
                state.early,
                state.unmatched,
                state.retained,
                state.start_ms,
                state.oldest_pending_ms,
            ),
            items,
        )
        self.clock_ms = state.clock_ms
        self._agreement.restore(state.agreement)
        self._registers.restore(state.predictions)
        self._settled = np.zeros(0, np.bool_)


def _together(parts: Sequence[OutcomeBatch]) -> Sequence[Outcome]:
    if len(parts) <= 1:
        return parts[0] if parts else ()
    scores = {number: scores for part in parts for number, scores in part.scores.items()}
    segments = {number: values for part in parts for number, values in part.scored_segments.items()}
    records = joined([part.records for part in parts])
    last = parts[-1]
    return OutcomeBatch(records, last.models, last.classes, scores, last.segments, segments)
