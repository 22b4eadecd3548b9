"""`Pipeline`: joins the records of the merged sequence, applies deadlines and evaluates the outcomes.

It does no I/O. Every record carries the clock at its position in the sequence (`record_ms`, never
decreasing). Deadlines up to that clock are handled before the record is joined, so the result does not depend
on how records are cut into batches. The compiled join holds the entries in memory, and the rest in an
`Overflow`. A restart continues from these parts of a commit: `Pipeline.snapshot`, `CompiledJoin.changes` and,
with an overflow, `CompiledJoin.run_changes`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec
import numpy as np

from streamwatch.core.join.caveats import (
    AgreementState,
    Caveats,
    ClassAgreement,
    Mismatch,
    caveats,
    mismatches,
)
from streamwatch.core.join.cold.overflow import Overflow, Work
from streamwatch.core.join.durable.packed import fitting, reading
from streamwatch.core.join.durable.totals import JoinTotals
from streamwatch.core.join.join import CHECK_IDLE, DONE, LOAD_OLDEST, CompiledJoin
from streamwatch.core.join.layout import Records
from streamwatch.core.join.models import ModelActivity, joined_folds
from streamwatch.core.join.rows import Digests
from streamwatch.core.join.series import (
    Holdings,
    Joining,
    counter_families,
    gauge_families,
    identities,
    model_families,
)
from streamwatch.core.metrics.series import Family
from streamwatch.core.predictions.registers import PredictionRegisters
from streamwatch.core.records.batch import RecordBatch, joined
from streamwatch.core.records.events import Alarm, Event, Name, Outcome, model_of
from streamwatch.core.records.outcomes import NO_OUTCOMES, OutcomeBatch, joined_pairs
from streamwatch.core.records.scores import joined_lists
from streamwatch.core.specs import JoinSpec

# State of a pipeline as commits contain it.


@dataclass(frozen=True, slots=True)
class PipelineState:
    """State of a pipeline, without the join's entries and the estimators (saved by model)."""

    clock_ms: int
    join: JoinTotals
    agreement: AgreementState = field(default_factory=AgreementState)
    predictions: dict[Name, bytes] = field(default_factory=dict[str, bytes])
    """State of prediction registers, by section."""


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")  # counts come in any order
_DECODER = msgspec.msgpack.Decoder(PipelineState)
_SECTION: Final = "the section 'pipeline'"


def encoded(state: PipelineState) -> bytes:
    """Encode a state for a commit; equal states give equal bytes."""
    return _ENCODER.encode(state)


def decoded(snapshot: bytes) -> PipelineState:
    """Decode what `encoded` gave; raises PackedError if it is not of this version."""
    with reading(_SECTION):
        return _DECODER.decode(snapshot)


# Result of one step of a pipeline in columns, and the outcomes of several steps in one batch.


@dataclass(frozen=True, slots=True)
class PartialResult:
    """Result of one step of `Pipeline.steps`, which covers some of the records it was given."""

    taken: int
    """Number of the given records that are joined and evaluated by now, earlier steps included."""
    outcomes: OutcomeBatch
    """Outcomes resolved in this step, already evaluated."""
    alarms: Sequence[Alarm]
    """Alarms that these outcomes raised, in their order."""
    retired: Sequence[tuple[int, str]]
    """(Outcomes of this step resolved before, model) for each model that retired."""
    work: Work | None = None
    """Blocking work, such as disk access, to be done before the next step or commit.

    Any thread may call it; None if there is nothing to do."""
    is_whole: bool = True
    """Whether a commit may follow: it would write the state after the records `taken`.

    Otherwise further records are joined whose outcomes are not evaluated yet, or predictions outside the
    join's table were revised and are not stored yet, and the next steps must be taken first.
    """


def joined_outcomes(parts: Sequence[OutcomeBatch]) -> OutcomeBatch:
    """Join consecutive batches, all with the names of the last one.

    Scores are numbered anew, as one number may stand for different scores in two batches.
    """
    if len(parts) <= 1:
        return parts[0] if parts else NO_OUTCOMES
    records, start, before = joined([part.records for part in parts]), 0, 0
    for part in parts:
        records["scores"][start + part.scored] += before
        start += len(part)
        before += len(part.scores)
    last, scores = parts[-1], joined_lists([part.scores for part in parts])
    return OutcomeBatch(records, last.models, last.classes, scores, last.segments, joined_pairs(parts))


class Evaluation(Protocol):
    """Evaluation of outcomes as pipelines need it (`EstimatorSet`)."""

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate outcomes in order and return the alarms they raised, in that order."""
        ...

    def retire(self, model: str) -> None:
        """Drop all state of a model that is being evaluated."""
        ...

    def models(self) -> Sequence[str]:
        """Names of the models evaluated and not retired since."""
        ...

    def families(self) -> list[Family]:
        """Every series of every model."""
        ...

    @property
    def records_over_limit(self) -> Mapping[str, int]:
        """Number of records that a limit kept from being evaluated fully, by the name of the limit."""
        ...


class NoEvaluation:
    """`Evaluation` that ignores outcomes, for a pipeline whose join alone is used."""

    @property
    def records_over_limit(self) -> Mapping[str, int]:
        """Return no limits."""
        return {}

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Ignore outcomes, which so raise no alarm."""
        del outcomes
        return []

    def retire(self, model: str) -> None:
        """Do nothing: there is no state of a model."""

    def models(self) -> Sequence[str]:
        """Return no models."""
        return ()

    def families(self) -> list[Family]:
        """Return no series."""
        return []


# Predicted and true classes of models (`join.caveats`), observed in columns.


class ColumnAgreement:
    """`ClassAgreement` for outcomes in columns; outcomes of settled models are skipped.

    Parameters
    ----------
    max_models
        Number of models whose classes are compared.
    """

    __slots__ = ("_names", "_settled", "_version", "classes")

    def __init__(self, max_models: int) -> None:
        self.classes = ClassAgreement(max_models)
        """Classes of each model."""
        self._settled = np.zeros(0, np.bool_)  # by model number
        self._names: Sequence[str] = ()
        self._version = 0

    def observe(self, outcomes: OutcomeBatch, version: int) -> None:
        """Record the classes of outcomes, in order.

        `version` changes whenever a model number gets another name.
        """
        names = outcomes.models
        if self._names is not names or self._version != version or len(self._settled) < len(names):
            self._names, self._version = names, version
            self._settled = np.zeros(2 * len(names), np.bool_)
        numbers = outcomes.records["model"]
        is_open = ~self._settled[numbers]
        if is_open.any():
            self.classes.observe(outcomes.only(is_open))
            for number in np.unique(numbers[is_open]).tolist():
                self._settled[number] = self.classes.is_settled(names[int(number)])

    def forget(self, model: str) -> None:
        """Drop a model that retired; if it comes back, it is examined anew."""
        self.classes.forget(model)
        self._settled[:] = False

    def restore(self, state: AgreementState) -> None:
        """Continue from the state of `classes`."""
        self.classes.restore(state)
        self._settled = np.zeros(0, np.bool_)


# The pipeline, and what its metrics are read from.


class JoinReading:
    """Counters and holdings of a join at one time, read once for all of its metrics.

    Parameters
    ----------
    join
        Join to read.
    """

    __slots__ = ("_holdings", "counters")

    def __init__(self, join: Joining) -> None:
        self.counters = join.counters
        self._holdings = join.holdings()

    def holdings(self) -> Holdings:
        """Return the holdings as of then."""
        return self._holdings


MOST_AT_ONCE: Final = 8_192
"""Number of outcomes after which a step ends."""


class Pipeline:
    """Joins record batches in columns and evaluates the outcomes of all models.

    Parameters
    ----------
    join
        Rules of the join.
    monitors
        Estimators of all models. `fold` is called with an `OutcomeBatch` for outcomes joined here.
    digests
        Computes the 128-bit digests of ids.
    overflow
        Storage for entries that do not fit into the join's table; None keeps all entries in memory.
    """

    def __init__(
        self, join: JoinSpec, monitors: Evaluation, digests: Digests, overflow: Overflow | None = None
    ) -> None:
        self._spec = join
        self.join = CompiledJoin(join, digests, overflow)
        self._monitors = monitors
        self._agreement = ColumnAgreement(join.max_models)
        self.predictions = PredictionRegisters(join.prediction_registers)
        self.clock_ms = -1
        """Record time at the last event taken, in milliseconds since the epoch; -1 before the first."""

    def steps(self, records: RecordBatch) -> Iterator[PartialResult]:
        """Join and evaluate records in order; each step yields a bounded number of outcomes.

        Exhaust the iterator before calling `steps` or `advance` again. `PartialResult.work` of a step has to
        be done before the next step is taken. A commit may follow a step that is whole (`is_whole`), once its
        work is done.
        """
        return self._steps(self.join.record_rows(records))

    def advance(self, events: Sequence[Event]) -> PartialResult:
        """Join and evaluate all of `events` in order, for callers that have event objects and not columns."""
        parts: list[OutcomeBatch] = []
        alarms: list[Alarm] = []
        retired: list[tuple[int, str]] = []
        for step in self._steps(self.join.rows(events)):
            if step.work is not None:
                step.work()
            before = sum(map(len, parts))
            retired += [(before + after, model) for after, model in step.retired]
            alarms += step.alarms
            if len(step.outcomes):
                parts.append(step.outcomes)
        return PartialResult(len(events), joined_outcomes(parts), alarms, retired)

    def _steps(self, rows: Records) -> Generator[PartialResult]:
        join = self.join
        at, why, reported = 0, CHECK_IDLE, 0
        # Scores are read first: the join keeps none of predictions that it resolves.
        scores = join.predicted_scores(rows) if self.predictions else None
        yield from _only_work(at, join.prepare(rows))
        while why != DONE:
            parts: list[OutcomeBatch] = []
            alarms: list[Alarm] = []
            retired: list[tuple[int, str]] = []
            if why == LOAD_OLDEST:
                yield from _only_work(at, join.load_oldest(rows, at))
            why = CHECK_IDLE
            while why == CHECK_IDLE:
                before = at
                at, why = join.take(rows, at)
                if scores is not None:
                    self.predictions.observe(join.accepted(rows, scores, before, at))
                for outcomes in join.take_outcomes(self._reached_ms(rows, at, why)):
                    if sum(map(len, parts)) >= MOST_AT_ONCE:
                        yield PartialResult(reported, joined_outcomes(parts), alarms, retired, is_whole=False)
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
            yield PartialResult(at, joined_outcomes(parts), alarms, retired, is_whole=join.may_commit)

    def _reached_ms(self, rows: Records, at: int, why: int) -> int:
        """Return the clock that the join reached before it stopped at row `at`.

        With `CHECK_IDLE` it is that of the row itself, as deadlines up to it have been applied.
        """
        last = at if why == CHECK_IDLE else at - 1
        return int(rows[last]["record_ms"]) if last >= 0 else self.clock_ms

    def release_held(self) -> PartialResult:
        """Evaluate all outcomes held for the order of predictions, at the end of the records.

        No deadline is applied.
        """
        parts: list[OutcomeBatch] = []
        alarms: list[Alarm] = []
        for outcomes in self.join.release_held():
            alarms += self.evaluate(outcomes)
            parts.append(outcomes)
        return PartialResult(0, joined_outcomes(parts), alarms, ())

    def evaluate(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate outcomes in order, joined here or elsewhere, and return the alarms they raised."""
        if isinstance(outcomes, OutcomeBatch):
            self._agreement.observe(outcomes, self.join.models.version)
        else:
            self._agreement.classes.observe(outcomes)
        self.predictions.learn(outcomes)
        return self._monitors.fold(outcomes)

    def begin_anew(self, model: str) -> None:
        """Drop the classes seen, and the state of prediction registers, of a model and its folds.

        The join keeps its entries.
        """
        for name in (model, *(name for name in self.join.holdings().models if model_of(name) == model)):
            self._agreement.forget(name)
            self.predictions.forget(name)

    def _retire(self, idle: list[str]) -> None:
        monitored = set(self._monitors.models()) if idle else set[str]()
        for model in idle:
            self._agreement.forget(model)
            self.predictions.forget(model)
            if model in monitored:
                self._monitors.retire(model)

    def identities(self) -> list[str]:
        """Describe the sums of counters that do not hold; empty when every event is accounted for."""
        return identities(self.join)

    def mismatches(self) -> list[Mismatch]:
        """List the models whose predictions and labels seem not to belong together (`join.caveats`)."""
        return self._mismatches(self.join.holdings().models)

    def _mismatches(self, models: Mapping[str, ModelActivity]) -> list[Mismatch]:
        return mismatches(self._agreement.classes, models, self.clock_ms - self._spec.early_horizon_ms)

    def caveats(self) -> dict[str, Caveats]:
        """Caveats beside verdicts, by model."""
        return caveats(joined_folds(self.join.holdings().models), self._spec, self.clock_ms)

    def join_families(self) -> list[Family]:
        """Series of the join and of the prediction registers."""
        join = JoinReading(self.join)
        families = counter_families(join, self._monitors.records_over_limit)
        of_models = [
            *model_families(join, self._mismatches(join.holdings().models)),
            *self.predictions.families(),
        ]
        return [*families, *gauge_families(join), *of_models]

    def families(self) -> list[Family]:
        """Every series, those of the estimators last."""
        return self.join_families() + self._monitors.families()

    def snapshot(self) -> bytes:
        """Encode the state without join entries and estimators; equal states give equal bytes."""
        agreement, registers = self._agreement.classes.state(), self.predictions.snapshot()
        return encoded(PipelineState(self.clock_ms, self.join.totals(), agreement, registers))

    @property
    def unmatched_outside(self) -> int:
        """Number of labels outside the join's table that have met no prediction."""
        return int(self.join.arrays.totals["cold_unmatched"][0])

    def begin_join_anew(self, snapshot: bytes) -> None:
        """Continue from the last commit's `snapshot` without the join's entries and counters.

        The join's models, the clock and `Outcome.made` continue. A label whose prediction may be older counts
        as from before the start (`CompiledJoin.start_ms`).

        Raises
        ------
        PackedError
            If `snapshot` is not one of this version.
        """
        state = decoded(snapshot)
        self.clock_ms = self.join.start_ms = state.clock_ms
        with fitting(_SECTION):
            self.join.begin_anew(state.join.join_models, state.clock_ms)
        self._restore_further(state)

    def restore(self, snapshot: bytes, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Continue from the last commit's `snapshot`, and the values of `CompiledJoin.changes` in the store.

        Raises
        ------
        PackedError
            If `snapshot` is not one of this version, or if `items` are not such values, or do not belong to
            `snapshot`.
        """
        state = decoded(snapshot)
        with fitting(_SECTION):
            self.join.restore(state.join, items)
        self.clock_ms = state.clock_ms
        self._restore_further(state)

    def _restore_further(self, state: PipelineState) -> None:
        with reading(_SECTION):
            self._agreement.restore(state.agreement)
            self.predictions.restore(state.predictions)


def _only_work(taken: int, pieces: Iterator[Work]) -> Iterator[PartialResult]:
    for work in pieces:
        yield PartialResult(taken, NO_OUTCOMES, (), (), work)
