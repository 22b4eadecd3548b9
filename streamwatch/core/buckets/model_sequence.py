"""Sequence of a model bucket: outcomes of all id buckets and steps between them, evaluated in one order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.contract import DUE, RECORD, Activity, BucketsSpec, InvalidOfModel, ModelRoutes
from streamwatch.core.buckets.histories import ColumnFoldStreams, ColumnHistories, owners_of_folds
from streamwatch.core.buckets.id_join import PositionedOutcomes
from streamwatch.core.buckets.made import MadeCounts
from streamwatch.core.buckets.parts import ColumnPart
from streamwatch.core.buckets.pieces import renumbered
from streamwatch.core.buckets.view import Totals
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.caveats import ClassAgreement
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.durable.columns import pack_columns, unpack_columns
from streamwatch.core.join.durable.entry_logs import Changes
from streamwatch.core.join.durable.held_log import HeldLog, HeldValues
from streamwatch.core.join.durable.packed import HELD, HELD_PAIRS, HELD_SCORES, parts_of
from streamwatch.core.join.layout import TIMING
from streamwatch.core.join.models import JoinModels
from streamwatch.core.join.names import NumberedNames, new_names
from streamwatch.core.join.prediction_order import Leaving, OrderTotals, PredictionOrder
from streamwatch.core.records.batch import Records, copied, joined, taken
from streamwatch.core.records.events import Alarm, Name, model_of
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch, joined_pairs
from streamwatch.core.records.scores import ScoreLists, joined_lists

# Order of predictions in one model bucket: outcomes held, and the windows of outcomes of all buckets.
#
# An outcome is released when a window ends that was opened by an outcome of any model whose prediction is at
# least as new. So every id bucket sends, for every time, the newest of the predictions resolved then.


_CLASSES: Final = ("true_class", "predicted_class", "label_at_prediction")


class _State(msgspec.Struct, array_like=True, frozen=True):
    totals: OrderTotals
    windows: bytes
    items: list[tuple[bytes, bytes]]
    """Outcomes held, as the join's commits write them."""
    names: tuple[dict[int, Name], dict[int, Name], dict[int, Name]]
    """Of models, classes and segments."""


_ENCODER: Final = msgspec.msgpack.Encoder()
_STATE: Final = msgspec.msgpack.Decoder(_State)


class ModelOrder:
    """Holds outcomes until they are released in the order of predictions.

    Parameters
    ----------
    window_ms
        `join.reorder_window` in milliseconds.
    maximum
        Largest number of outcomes held; beyond it those of the oldest predictions are released at once.
    """

    def __init__(self, window_ms: int, maximum: int) -> None:
        self._order = PredictionOrder(window_ms, maximum)
        self._names = new_names()

    @property
    def clock_ms(self) -> int:
        """Clock at which outcomes were last released."""
        return self._order.totals().clock_ms

    def put(self, outcomes: OutcomeBatch, timing: Records, clock_ms: int) -> Iterator[Leaving]:
        """Hold outcomes, and release those that are due, as `PredictionOrder.put` does.

        Numbers of names in released outcomes are valid until `release_names`.
        """
        yield from self._order.put(self._renamed(outcomes), timing, clock_ms)

    def release_all(self) -> Iterator[Leaving]:
        """Release everything in order."""
        yield from self._order.release_all(self._renamed(OutcomeBatch(np.zeros(0, OUTCOME), (), ())))

    def release_names(self) -> None:
        """Remove names that no held outcome has, once there are many.

        All released outcomes must have been evaluated, as numbers of names change.
        """
        names, records, pairs = self._names, self._order.records(), self._order.pairs()
        if names.models.crowded:
            names.models.release_all_but((records["model"], pairs[:, 1]))
        of_scores, segments = self._order.carried_names(len(names.classes.names), len(names.segments.names))
        if names.classes.crowded:
            classes = [*(records[name] for name in _CLASSES), records["last_class"] - 1, pairs[:, 2]]
            names.classes.release_all_but([*classes, of_scores])
        if names.segments.crowded:
            names.segments.release_all_but((segments,))

    def _renamed(self, outcomes: OutcomeBatch) -> OutcomeBatch:
        """Copy outcomes, with the numbers of names translated to those of `self._names`."""
        names, records, pairs = self._names, copied(outcomes.records), outcomes.pairs
        records["model"] = renumbered(records["model"], outcomes.models, names.models)
        for name in _CLASSES:
            records[name] = renumbered(records[name], outcomes.classes, names.classes)
        last = renumbered(records["last_class"] - 1, outcomes.classes, names.classes)
        records["last_class"] = last + 1
        carried = records["scores"]
        numbers = np.maximum(carried - SEGMENTS_FROM, -1)
        segments = renumbered(numbers, outcomes.segments, names.segments)
        carried[numbers >= 0] = SEGMENTS_FROM + segments[numbers >= 0]
        scores = replace(
            outcomes.scores,
            classes=renumbered(outcomes.scores.classes, outcomes.classes, names.classes),
            beside=renumbered(outcomes.scores.beside, outcomes.segments, names.segments),
        )
        if pairs is not None:
            pairs = pairs.copy()
            pairs[:, 1] = renumbered(pairs[:, 1], outcomes.models, names.models)
            pairs[:, 2] = renumbered(pairs[:, 2], outcomes.classes, names.classes)
        named = names.models.names, names.classes.names
        return OutcomeBatch(records, *named, scores, names.segments.names, pairs)

    def state(self) -> bytes:
        """State from which `restore` continues; between batches."""
        changes: Changes = {}
        HeldLog().write(self._order, changes)
        self._order.forget_runs()
        names = self._names
        return _ENCODER.encode(
            _State(
                self._order.totals(),
                pack_columns([*np.ascontiguousarray(self._order.windows().T)]),
                [(key, value) for key, value in sorted(changes.items()) if value is not None],
                (_by_number(names.models), _by_number(names.classes), _by_number(names.segments)),
            )
        )

    def restore(self, state: bytes) -> None:
        """Continue from a state.

        Raises
        ------
        msgspec.DecodeError, PackedError
            If it is not of this version.
        """
        found = _STATE.decode(state)
        names, values = self._names, HeldValues()
        numbered = names.models, names.classes, names.segments
        for names_of_kind, by_number in zip(numbered, found.names, strict=True):
            names_of_kind.restore(by_number)
        kinds = {HELD: values.runs, HELD_SCORES: values.scores, HELD_PAIRS: values.pairs}
        for key, value in found.items:
            kind, number, _ = parts_of(key)
            kinds[kind][number] = value
        HeldLog().restore(values, found.totals, names, self._order)
        self._order.forget_runs()
        windows = [column.astype(np.int64) for column in unpack_columns(found.windows, 3)]
        self._order.open_windows(np.stack(windows, axis=1))


def _by_number(names: NumberedNames) -> dict[int, str]:
    return {number: name for name, number in names.items()}


# Steps of a model bucket, each at its position in the sequence: outcomes, passing of time, models.


_ANY: Final = 2**62
"""Limit of models that is never reached: id buckets apply `max_models`."""
_SECOND_MS: Final = 1_000
_NOTHING: Final = OutcomeBatch(np.zeros(0, OUTCOME), (), ())


class ColumnSequence:
    """Evaluates the models of one bucket in order.

    A model that is the reference of drift weightings is evaluated in every bucket; only its own bucket counts
    and reports it.

    Parameters
    ----------
    number
        Number of the model bucket.
    spec
        Partitioning of the stream.
    """

    def __init__(self, number: int, spec: BucketsSpec) -> None:
        join = spec.join
        self._number = number
        self._spec = spec
        self._routes = ModelRoutes(spec)
        self._ordered = join.order == "prediction_time"
        self._shares_stream = join.folds and join.folds_share_stream
        self._compares = number == self._routes.comparison_bucket
        self.kept_ms = join.horizon_ms + 2 * _SECOND_MS
        """Time for which a prediction may be pending."""
        self.monitors = EstimatorSet(spec.monitors)
        self.agreement = ClassAgreement(join.max_models)
        self.models = JoinModels(_ANY, 2 * join.horizon_ms)
        self.labels = ColumnHistories()
        """Histories of the models' labels."""
        self._names = NumberedNames()
        """Numbers of models; the same in all batches, so that estimators can look up rows by number."""
        self.made = MadeCounts()
        """Numbers of predictions that the models made."""
        self.streams = ColumnFoldStreams()
        self.order = ModelOrder(join.reorder_window_ms, -(-join.max_reordered // spec.model_buckets))
        self.counters = JoinCounters()
        self.held_assumed = 0
        self.alarms: list[Alarm] = []
        """Alarms of this batch."""
        self.touched: set[str] = set()
        """Models whose estimators changed in this batch, or that retired."""
        self.paired = False
        """Whether comparisons changed in this batch."""
        self._due: list[OutcomeBatch] = []
        self._clear()

    def _clear(self) -> None:
        self._outcomes, self._at = _NOTHING, 0
        self._accepted, self._resolved = np.zeros((0, 4), np.int64), np.zeros((0, 5), np.int64)
        self._times = self._kinds = np.zeros(0, np.int64)
        self._timing = np.zeros(0, TIMING)
        self._clock_ms = self.order.clock_ms

    def owns(self, name: str) -> bool:
        """Return whether a model, or a fold, belongs to this bucket."""
        return self._routes[name][0] == self._number

    def begin(self, parts: Sequence[ColumnPart]) -> None:
        """Start a batch with its outcomes; must be called before its steps."""
        self.alarms, self.touched, self.paired = [], set(), False
        self.labels.release_names()
        self.order.release_names()
        if self._names.crowded:
            self._names.release_all_but(())
        self._clear()
        positioned = [each for part in parts if len((each := part.outcomes.unpacked()).outcomes)]
        windows = np.concatenate([part.unpacked_windows() for part in parts])
        outcomes = self._together(positioned) if positioned else _NOTHING
        self.made.begin([part.accepted for part in parts], outcomes.models)
        resolved = np.concatenate([self._resolved, *(each.resolved for each in positioned)])
        accepted = np.concatenate([self._accepted, *(each.accepted for each in positioned)])
        is_assumed = outcomes.records["assumed"] != 0
        # Positions are (deadline, DUE, position of the prediction) and (time, RECORD, rank, offset, event,
        # number).
        within = np.where(is_assumed[:, None], accepted, resolved[:, 1:])
        positions = np.column_stack([resolved[:, 0], np.where(is_assumed, DUE, RECORD), within])
        if self._ordered:
            outcomes, positions = _with_windows(outcomes, positions, windows)
            accepted = np.concatenate([accepted, np.zeros((len(windows), accepted.shape[1]), np.int64)])
        # A window sorts behind the outcome that opens it; if that is in this bucket, the window is redundant.
        order = np.lexsort((outcomes.records["model"] < 0, *positions.T[::-1]))
        positions = positions.take(order, axis=0)
        if len(windows):
            again = np.concatenate([[False], (positions[1:] == positions[:-1]).all(axis=1)])
            order, positions = order[~again], positions[~again]
        self._outcomes, self._accepted = outcomes.only(order), accepted.take(order, axis=0)
        self._times, self._kinds = positions[:, 0].copy(), positions[:, 1].copy()
        self._resolved = np.delete(positions, 1, axis=1)
        if self._ordered:
            made_ms = np.concatenate([*(each.own_ms for each in positioned), windows[:, -1]])
            self._set_clocks(parts, made_ms[order])

    def _set_clocks(self, parts: Sequence[ColumnPart], made_ms: NDArray[np.int64]) -> None:
        """Set the time of each prediction, and the clock before its resolution.

        An expiry comes before the clock reaches its deadline, a record after the clock has reached its time.
        """
        clocks = np.unique(np.concatenate([part.unpacked_clocks() for part in parts]))
        clocks = np.concatenate([[self.order.clock_ms], clocks])
        behind = np.searchsorted(clocks, self._times, "right")
        before = np.where(self._kinds == DUE, np.searchsorted(clocks, self._times, "left"), behind) - 1
        self._timing = np.zeros(len(made_ms), TIMING)
        self._timing["prediction_ms"] = made_ms
        self._timing["clock_ms"] = clocks[np.maximum(before, 0)]
        self._clock_ms = int(clocks[-1])

    def _together(self, parts: Sequence[PositionedOutcomes]) -> OutcomeBatch:
        """Concatenate the outcomes of all parts under common numbers; classes have those of `self.labels`."""
        models = self._names
        segments: dict[str, int] = {}
        scores: list[ScoreLists] = []
        base = 0
        for part in parts:
            outcomes, records = part.outcomes, part.outcomes.records
            classes = self.labels.numbers(outcomes.classes)
            records["true_class"] = classes[records["true_class"]]
            records["predicted_class"] = classes[records["predicted_class"]]
            revised = np.flatnonzero(records["last_class"])
            records["last_class"][revised] = classes[records["last_class"][revised] - 1] + 1
            numbers_here = np.array([models[name] for name in outcomes.models], np.int32)
            records["model"] = numbers_here[records["model"]]
            if outcomes.pairs is not None:
                outcomes.pairs[:, 1] = numbers_here[outcomes.pairs[:, 1]]
                outcomes.pairs[:, 2] = classes[outcomes.pairs[:, 2]]
            carried, own = records["scores"], outcomes.scores
            values = [segments.setdefault(text, len(segments)) for text in outcomes.segments]
            with_values = carried >= SEGMENTS_FROM
            with_scores = (carried >= 0) & ~with_values
            numbers = np.array([*values, -1], np.int32)
            carried[with_values] = SEGMENTS_FROM + numbers[carried[with_values] - SEGMENTS_FROM]
            carried[with_scores] += base
            base += len(own)
            scores.append(replace(own, classes=classes[own.classes], beside=numbers[own.beside]))
        records = joined([part.outcomes.records for part in parts])
        pairs = joined_pairs([part.outcomes for part in parts])
        named = models.names, self.labels.names
        return OutcomeBatch(records, *named, joined_lists(scores), list(segments), pairs)

    def continue_activity(self, activity: Activity) -> None:
        """Add activity of a model that has not been idle in the id bucket since the previous batch."""
        self._add(activity, activity.last_ms)

    def start_activity(self, activity: Activity) -> None:
        """Add activity of a model that is new in the id bucket, or was idle there before."""
        self._add(activity, activity.first[0])

    def _add(self, activity: Activity, record_ms: int) -> None:
        total = self.models.admit(activity.model, record_ms)
        if total is None:
            raise AssertionError(f"model {activity.model!r} is not admitted among {_ANY}")
        total.pending += activity.accepted - activity.joined - activity.left
        total.joined += activity.joined
        total.left += activity.left
        total.last_ms = max(total.last_ms, activity.last_ms)
        total.last_event_ms = max(total.last_event_ms, activity.last_event_ms)

    def count_invalid(self, record: InvalidOfModel) -> None:
        """Count an invalid record by model: for active models, and for others up to `max_models` in all."""
        counts, model = self.counters.model_records_invalid, record.model
        has_room = len(counts) < self._spec.join.max_models
        if model in counts or has_room or any(model_of(name) == model for name in self.models.models):
            counts[model] = counts.get(model, 0) + 1

    def tick(self, clock_ms: int) -> None:
        """Process the passing of time: release outcomes that are due, and retire idle models."""
        if self._ordered:
            self._resolve_before(clock_ms)
        if idle := self.models.retire(clock_ms):
            if not self._ordered:
                self._resolve_before(clock_ms)
            self._evaluate()
            self.made.retire(idle, clock_ms)
            self._retire(idle)

    def end(self, reached_ms: int, *, ended: bool) -> None:
        """Evaluate the rest of the batch; with `ended`, also the outcomes held for their order."""
        self._resolve(len(self._outcomes), self._clock_ms)
        if ended:
            for leaving in self.order.release_all():
                self._release(leaving)
        self._evaluate()
        self.made.end()
        self._clear()
        self.labels.forget_before(reached_ms - self.kept_ms)

    def _resolve_before(self, clock_ms: int) -> None:
        """Resolve the outcomes before the clock reaches this time, and expiries at exactly this time."""
        first = int(np.searchsorted(self._times, clock_ms, "left"))
        stop = int(np.searchsorted(self._times, clock_ms, "right"))
        self._resolve(first + int(np.count_nonzero(self._kinds[first:stop] == DUE)), clock_ms)

    def _resolve(self, stop: int, clock_ms: int) -> None:
        """Resolve the outcomes up to index `stop`: queue them for evaluation, or hold them for their order.

        Each gets the count of predictions made and the label known at its prediction.
        """
        start, self._at = self._at, stop
        outcomes = self._outcomes[start:stop]
        self._count_made(outcomes, self._resolved[start:stop], self._kinds[start:stop])
        self._label(outcomes, start, stop)
        if not self._ordered:
            self._due.append(outcomes)
            return
        self._count_held(outcomes, 1)
        for leaving in self.order.put(outcomes, self._timing[start:stop], clock_ms):
            self._release(leaving)

    def _count_made(
        self, outcomes: OutcomeBatch, resolved: NDArray[np.int64], kinds: NDArray[np.int64]
    ) -> None:
        """Set how many predictions the model of each outcome, and each partner in its pairs, had made."""
        models, pairs = outcomes.records["model"], outcomes.pairs
        if pairs is None:
            outcomes.records["made"] = self.made.of(models, resolved, kinds)
            return
        behind = pairs[:, 0] + 1  # partners come behind their outcome, at its position
        rows = np.insert(np.arange(len(models)), behind, pairs[:, 0])
        made = self.made.of(np.insert(models, behind, pairs[:, 1]), resolved[rows], kinds[rows])
        is_partner = np.insert(np.zeros(len(models), np.bool_), behind, values=True)
        outcomes.records["made"] = made[~is_partner]
        pairs[:, 3] = made[is_partner].view(np.int32)

    def _label(self, outcomes: OutcomeBatch, start: int, stop: int) -> None:
        records, names = outcomes.records, outcomes.models
        accepted, resolved = self._accepted[start:stop], self._resolved[start:stop]
        labels = np.where(records["assumed"] != 0, -1, records["true_class"]).astype(np.int64)
        models: NDArray[np.int32] = records["model"]
        order = np.argsort(models, kind="stable")
        ends = np.cumsum(np.bincount(models + 1, minlength=len(names) + 1)).tolist()
        for number, (begin, end) in enumerate(pairwise(ends)):
            if end > begin:
                own = order[begin:end]
                known = self.labels.look_up(names[number], accepted[own], resolved[own], labels[own])
                records["label_at_prediction"][own] = known
        if self._shares_stream:
            for model, own in owners_of_folds(names, models).items():
                known = self.streams.previous_labels(model, taken(records, own), self.labels)
                records["label_at_prediction"][own] = known

    def _count_held(self, outcomes: OutcomeBatch, sign: int) -> None:
        """Count outcomes that begin to be held (`sign` 1), or are released (-1), by model."""
        records = outcomes.records
        for number, (count, assumed) in _counts(records["model"], records["assumed"] != 0).items():
            name = outcomes.models[number]
            self.models.models[name].held += sign * count
            if self.owns(name):
                self.held_assumed += sign * assumed

    def _release(self, leaving: Leaving) -> None:
        outcomes, records = leaving.outcomes, leaving.outcomes.records
        self._count_held(outcomes, -1)
        for number, (count, early) in _counts(records["model"], leaving.early).items():
            if self.owns(outcomes.models[number]):
                self.counters.outcomes_released_early += early
                self.counters.predictions_resolved += count
        for number, (_, assumed) in _counts(records["model"], records["assumed"] != 0).items():
            if self.owns(outcomes.models[number]):
                self.counters.predictions_resolved -= assumed
        self._due.append(outcomes)

    def _evaluate(self) -> None:
        due, self._due = self._due, []
        for outcomes in due:
            if not len(outcomes):
                continue
            names, models = outcomes.models, outcomes.records["model"]
            numbers = np.flatnonzero(np.bincount(models)).tolist()
            owned = [number for number in numbers if self.owns(names[number])]
            self.touched |= {names[number] for number in owned}
            self.paired = self.paired or (self._compares and outcomes.pairs is not None)
            unsettled = [number for number in owned if not self.agreement.is_settled(names[number])]
            if unsettled:
                self.agreement.observe(outcomes.only(np.isin(models, unsettled)))
            self.alarms += [alarm for alarm in self.monitors.fold(outcomes) if self.owns(alarm.model)]

    def _retire(self, idle: Sequence[str]) -> None:
        monitored = set(self.monitors.models())
        names = list(self.models.models)
        alive = {model_of(name) for name in names}
        for name in idle:
            self.agreement.forget(name)
            self.labels.retire(name)
            if model_of(name) not in alive:
                self.counters.model_records_invalid.pop(model_of(name), None)
            if name in monitored:
                self.monitors.retire(name)
            if self.owns(name):
                self.counters.models_retired += 1
                self.touched.add(name)
                self.paired = self.paired or self._compares
        self.streams.keep(names)

    def totals(self, reached_ms: int) -> Totals:
        """Counters and gauges of the models that belong to this bucket."""
        owned = {name: activity for name, activity in self.models.models.items() if self.owns(name)}
        return Totals(
            reached_ms,
            self.counters,
            over_limit=dict(self.monitors.records_over_limit),
            held=sum(activity.held for activity in owned.values()),
            held_assumed=self.held_assumed,
            models=owned,
            agreement=self.agreement.state(),
        )


def _with_windows(
    outcomes: OutcomeBatch, positions: NDArray[np.int64], windows: NDArray[np.int64]
) -> tuple[OutcomeBatch, NDArray[np.int64]]:
    """Append windows as outcomes without a model: these outcomes themselves are in other buckets."""
    records = np.zeros(len(windows), OUTCOME)
    for name in ("model", "true_class", "predicted_class", "label_at_prediction", "scores"):
        records[name] = -1
    records["event_ms"], records["assumed"] = windows[:, 0], windows[:, 1] == DUE
    names = outcomes.models, outcomes.classes, outcomes.scores, outcomes.segments
    together = OutcomeBatch(joined([outcomes.records, records]), *names, outcomes.pairs)
    return together, np.concatenate([positions, windows[:, : positions.shape[1]]])


def _counts(models: NDArray[np.int32], chosen: NDArray[np.bool_]) -> dict[int, tuple[int, int]]:
    """Count the outcomes of each model with any, and the chosen ones among them, by number of the model."""
    everything = np.bincount(models + 1, minlength=1)[1:]
    some = np.bincount(models[chosen] + 1, minlength=len(everything) + 1)[1:]
    numbers = np.flatnonzero(everything)
    counted = zip(everything[numbers].tolist(), some[numbers].tolist(), strict=True)
    return dict(zip(numbers.tolist(), counted, strict=True))
