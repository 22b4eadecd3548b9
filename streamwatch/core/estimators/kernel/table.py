"""Table of models: one row of estimators per model, updated in batches, read on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors.kind import ALARM, AlarmRow, alarm_rows
from streamwatch.core.estimators.forgetting.drift_weighted import NOBODY, leave_reference
from streamwatch.core.estimators.kernel import admission, fold
from streamwatch.core.estimators.kernel import readout as reading
from streamwatch.core.estimators.kernel.admission import NO_SCORES, Batch, Indices, Scores, batch_of
from streamwatch.core.estimators.kernel.layout import Layout, Records, layout_of, utility_index
from streamwatch.core.estimators.kernel.pools import Pools, opaque, taken
from streamwatch.core.estimators.kernel.readout import (
    Detectors,
    Floats,
    Integers,
    read_detectors,
    read_totals,
    read_weighted,
    totals_of,
)
from streamwatch.core.estimators.kernel.snapshot import Sections, confusions, section_names
from streamwatch.core.estimators.measures.measures import Totals, accuracy
from streamwatch.core.estimators.memory import SUMS, UNADDED, N
from streamwatch.core.estimators.recovery import TRACED, recovery_document
from streamwatch.core.estimators.verdicts.detector import ACCURACY
from streamwatch.core.estimators.verdicts.readout import Verdicts, read_fold_verdicts, read_verdicts
from streamwatch.core.estimators.verdicts.state import REPORTED
from streamwatch.core.specs import MonitorsSpec, UtilitySpec

# Allocation of the rows of a table to models.


class TableFull(Exception):  # noqa: N818  (a bound was reached, and the caller counts it; nothing went wrong)
    """Raised when no row is free, as `max_models` models exist."""


class Rows:
    """Allocates rows below `max_models`; rows of retired models are used again."""

    def __init__(self, layout: Layout, pools: Pools, max_models: int) -> None:
        self._layout = layout
        self._pools = pools
        self._max_models = max_models
        self._free: list[int] = []
        self._empty: dict[tuple[int, int], np.void] = {}
        """Records of models without outcomes, as bytes, by numbers of utility and detector row."""
        self.used = 0
        """Number of rows ever allocated."""

    @property
    def room(self) -> int:
        """Number of models that can still be added."""
        return self._max_models - self.used + len(self._free)

    def add(self, utility: int = ACCURACY, detector_row: int = 0) -> int:
        """Allocate an empty row, judged by utility number `utility`; raises TableFull if none is free.

        `detector_row` is the parameter row of its detectors.
        """
        if self._free:
            row = self._free.pop()
        elif self.used < self._max_models:
            row = self.used
            self.used += 1
            self._pools.reserve_rows(self.used)
        else:
            raise TableFull(f"{self._max_models} models are watched, the most configured")
        if (empty := self._empty.get((utility, detector_row))) is None:
            empty = self._empty[utility, detector_row] = self._empty_model(utility, detector_row)
        opaque(self._pools.models)[row] = empty
        self._pools.spans[row] = 0
        if self._layout.shadow_classes:
            self._pools.shadow_spans[row] = 0
        return row

    def _empty_model(self, utility: int, detector_row: int) -> np.void:
        """Build the record of a model without outcomes, as bytes."""
        model: Records = np.zeros(1, self._layout.model)
        model["fading"]["unit"] = 1.0
        model["utility"] = utility
        model["detector_row"] = detector_row
        model["labels"]["majority_unit"] = 1.0
        model["labels"]["balanced_unit"] = 1.0
        if self._layout.shadow_classes:
            model["shadow"]["unit"] = 1.0
        return opaque(model)[0]

    def retire(self, row: int) -> None:
        """Clear a row; weightings that followed its model have no reference from now on."""
        self.live_one(row)
        followed = self._layout.parameters["drift_weighted"]["reference"][0]
        for drift_weighted in np.flatnonzero(followed == row).tolist():
            states = self._pools.models["drift_weighted"][:, drift_weighted]
            leave_reference(states, int(states["drifts"][row]))
            followed[drift_weighted] = NOBODY
        self._pools.release(row)
        self._free.append(row)

    def live(self, rows: Integers) -> Integers:
        """Convert rows to int64; raises ValueError unless each has a model."""
        rows = np.ascontiguousarray(rows, np.int64)
        valid = (rows >= 0) & (rows < self.used)
        if not (valid.all() and (self._pools.spans[rows] >= 0).all()):
            raise ValueError(f"rows must be of models in the table, got {rows.tolist()}")
        return rows

    def live_one(self, row: int) -> None:
        """Raise ValueError if the row has no model."""
        self.live(np.array([row], np.int64))


# Evaluation of a batch with the values of the estimators after every outcome; slower than a fold.


@dataclass(frozen=True, slots=True)
class Trace:
    """Evaluated batch of n outcomes, with the values of the model's estimators after each."""

    alarms: list[AlarmRow]
    totals: tuple[Totals, ...]
    """Totals per configured forgetting mechanism; each is over the n outcomes instead of over models."""
    statistic: Floats
    """Shape (detectors, n); NaN where undefined."""
    threshold: Floats
    alarmed: NDArray[np.bool_]
    """Shape (detectors, n): whether the detector raised an alarm at this outcome."""
    warned: NDArray[np.bool_]
    """Shape (detectors, n): whether it was between warning and alarm level; False without warning level."""
    weighted: Floats
    """Drift-weighted accuracy, shape (weightings, n)."""
    weighted_n_eff: Floats
    reported: Records
    """Records of verdicts (`REPORTED`), shape (opponents, n)."""
    recovery: Records
    """Records of recovery (`TRACED`), shape (n,); (0,) without a fading factor."""


def traced(spec: MonitorsSpec, layout: Layout, pools: Pools, batch: Batch, alarms: Records) -> Trace:
    """Evaluate a batch; pools and `alarms` must have room for it."""
    n = len(batch.rows)
    classes = int(pools.spans[batch.rows].max(initial=0))
    shape = (len(spec.detectors), n)
    found = fold.TracedArrays(
        sums=np.zeros((layout.columns, SUMS + 1, n)),
        counts=np.zeros((layout.columns, 3, n, classes)),
        statistic=np.full(shape, np.nan),
        threshold=np.full(shape, np.nan),
        alarms=np.zeros(shape, np.int64),
        warned=np.zeros(shape, np.bool_),
        weighted=np.zeros((2, len(spec.drift_weighted), n)),
        reported=np.zeros((len(layout.opponents), n), REPORTED),
        recovery=np.zeros(n if layout.fading else 0, TRACED),
    )
    raised = alarm_rows(alarms, int(fold.trace(pools.arrays, batch, alarms, found)))
    alarmed = np.zeros(shape, np.bool_)
    for alarm in raised:
        if alarm.detector < len(spec.detectors):
            alarmed[alarm.detector, alarm.position] = True
    classes = int(pools.models["classes"][batch.rows].max(initial=0))
    return Trace(
        alarms=raised,
        totals=tuple(totals_of(found.sums[c], found.counts[c, :, :, :classes]) for c in layout.column_of),
        statistic=found.statistic,
        threshold=found.threshold,
        alarmed=alarmed,
        warned=found.warned,
        weighted=found.weighted[0],
        weighted_n_eff=found.weighted[1],
        reported=found.reported,
        recovery=found.recovery,
    )


_ACCURACY = UtilitySpec()
Followers: TypeAlias = tuple[int, Mapping[int, Records]]
"""Row of a reference, and `WEIGHTING` records of all models by weighting that follows it."""


class ModelTable:
    """Estimators of up to `max_models` models.

    Rows are indices below `max_models`. Classes are local indices of each model, 0 … max_classes + 1, which
    the caller assigns densely. A batch may mix models; only the order within each model matters.
    """

    def __init__(self, spec: MonitorsSpec) -> None:
        self._spec = spec
        self.layout = layout_of(spec)
        self.pools = Pools(self.layout, spec.max_models)
        self.rows = Rows(self.layout, self.pools, spec.max_models)
        self._alarms: Records = np.zeros(0, ALARM)
        """Room for the alarms of a batch."""
        self._sections = Sections(spec, self.layout, self.pools)

    def add_model(self, utility: UtilitySpec = _ACCURACY, detectors: int = 0) -> int:
        """Add a model, judged by `utility`, and return its row; rows of retired models are used again.

        A utility with a cost table must be one of the specification's. `detectors` selects the detectors'
        parameters: 0 for those of all models, k for the k-th entry of `detectors_by_model`.

        Raises
        ------
        TableFull
            When `max_models` models exist.
        ValueError
            If the specification has no such utility.
        """
        return self.rows.add(utility_index(self.layout, utility), detectors)

    def name_classes(self, row: int, utility: UtilitySpec, names: Sequence[str]) -> None:
        """Store the position in the cost table of each class of a model, in the order of local indices."""
        self.rows.live_one(row)
        self.pools.claim_rows(row, len(names))
        table = self.layout.costs[utility]
        start = int(self.pools.models["class_counts"][row])
        self.pools.class_counts[start : start + len(names), -1] = [table.index(name) for name in names]

    def retire(self, row: int) -> None:
        """Remove a model and its state; before a fold retires, call `join_folds` with the other folds."""
        self.pools.next_fold[row] = -1
        self.rows.retire(row)

    def join_folds(self, rows: Sequence[int]) -> None:
        """Declare rows to be the folds of one model, ordered by number; they get a common verdict."""
        self._judged(np.array(rows, np.int64))
        self.pools.models["waiting"]["answering"][list(rows)] = 0  # from now on, no step is deferred
        self.pools.next_fold[list(rows)] = [*rows[1:], *rows[:1]]

    def fold_verdicts(self, rows: Sequence[int]) -> Verdicts:
        """Verdicts on the model with these folds, each array (opponents, 1).

        The verdict is that of the fold with the most changes (see `verdicts.judge`), the evidence that of the
        mean M; lead, bounds and dispersion are means over the folds.
        """
        steps, verdicts = self._judged(np.array(rows, np.int64))
        threshold = float(self.layout.parameters["verdict"]["threshold"][0, 0])
        return read_fold_verdicts(steps.T, verdicts.T, self._spec.confidence_delta, threshold)

    def fold(
        self,
        rows: Indices,
        true_class: Indices,
        predicted_class: Indices,
        label_at_prediction: Indices | None = None,
        scores: Scores = NO_SCORES,
        event_ms: Integers | None = None,
    ) -> list[AlarmRow]:
        """Evaluate outcomes in order, and return the alarms in the same order.

        Parameters
        ----------
        rows, true_class, predicted_class
            int32 (n,): row of the model, local indices of true and predicted class.
        label_at_prediction
            int32 (n,): last label known when the prediction was made; -1, the default, for none.
        scores
            Class scores of outcomes, for Temporal Correction.
        event_ms
            int64 (n,): event time of the outcomes; 0 by default. Used for the times of verdicts and drifts.

        Raises
        ------
        ValueError
            If an index is out of range; nothing was evaluated then.
        """
        batch = batch_of(rows, true_class, predicted_class, label_at_prediction, scores, event_ms)
        self._reserve(batch)
        while True:
            verdict, count = fold.fold(self.pools.arrays, batch, self._alarms)
            if verdict == admission.ADMITTED:
                self.pools.return_shadows()
                return alarm_rows(self._alarms, int(count))
            self._resolve(verdict, int(count), batch)

    def trace(
        self,
        rows: Indices,
        true_class: Indices,
        predicted_class: Indices,
        label_at_prediction: Indices | None = None,
        scores: Scores = NO_SCORES,
        event_ms: Integers | None = None,
    ) -> Trace:
        """Evaluate a batch as `fold` does; return the values of its models' estimators after each outcome.

        Raises
        ------
        ValueError
            If an index is out of range; nothing was evaluated then.
        """
        batch = batch_of(rows, true_class, predicted_class, label_at_prediction, scores, event_ms)
        self._reserve(batch)
        while True:
            verdict, position = admission.make_room(self.pools.arrays, batch)
            if verdict == admission.ADMITTED:
                return traced(self._spec, self.layout, self.pools, batch, self._alarms)
            self._resolve(verdict, int(position), batch)

    def _reserve(self, batch: Batch) -> None:
        """Make room for the blocks and alarms of a batch."""
        self.pools.reserve_batch(len(batch.rows), self.rows.used)
        most = len(batch.rows) * (len(self._spec.detectors) + 1)
        if len(self._alarms) < most:
            self._alarms = np.zeros(most, ALARM)

    def _resolve(self, verdict: int, position: int, batch: Batch) -> None:
        """Enlarge the pool that was full, so that the batch can be tried again.

        Raise ValueError for invalid input.
        """
        if verdict != admission.INVALID:
            self.pools.enlarge(verdict)
            return
        got = tuple(int(column[position]) for column in (batch.rows, batch.true_class, batch.predicted_class))
        raise ValueError(
            f"outcome {position} of a batch must have a live row and classes (of scores, too) below "
            f"{self.layout.max_classes}, got (row, truth, predicted) = {got}"
        )

    def outcomes(self, rows: Integers) -> Integers:
        """Number of outcomes of each model, int64 (m,)."""
        return self.pools.models["outcomes"][self.rows.live(rows)]

    def last_label(self, row: int) -> int | None:
        """Class of a model's last label; None before its first outcome."""
        self.rows.live_one(row)
        model = self.pools.models[row]
        return int(model["last"]) if model["outcomes"] else None

    def errors(self, rows: Integers) -> Integers:
        """Number of wrong predictions of each model, int64 (m,)."""
        return self.pools.models["errors"][self.rows.live(rows)]

    def totals(self, rows: Integers, forgetting: int) -> Totals:
        """Agreement totals of m models under the forgetting mechanism of this index, in units of outcomes.

        Dense arrays, padded to the largest number of classes among the models.
        """
        column = self.layout.column_of[forgetting]
        return read_totals(self.pools, self.rows.live(rows), column)

    def detectors(self, rows: Integers) -> Detectors:
        """Read the state of all detectors of m models, each array (detectors, m)."""
        return read_detectors(self.pools, self.rows.live(rows), len(self._spec.detectors))

    def adwin_width(self, rows: Integers, forgetting: int) -> Integers:
        """Number of outcomes in each model's ADWIN window, int64 (m,)."""
        column = self.layout.column_of[forgetting]
        models, live = self.pools.models, self.rows.live(rows)
        return models["totals"][live, column, N].astype(np.int64) + (models["unadded"][live, 0] & UNADDED)

    def weighted(self, rows: Integers, drift_weighted: int) -> tuple[Floats, Floats]:
        """Drift-weighted accuracy (NaN before the first outcome) and its n_eff, each (m,)."""
        return read_weighted(self.pools, self.rows.live(rows), drift_weighted)

    def recoveries(self, rows: Integers) -> Records:
        """Records of recovery (`recovery.RECOVERY`) of m models, (m,); (0,) without a fading factor."""
        return taken(self.pools.models["recovery"], self.rows.live(rows)).reshape(-1)

    def recovery_documents(self, rows: Integers) -> Callable[[int], dict[str, object]] | None:
        """Read the current and the last ended drift of some models; None without a fading factor.

        Returns a function from an index in `rows` to the document of that model.
        """
        if not self.layout.fading:
            return None
        rows = self.rows.live(rows)
        name = self.layout.fading[0].name
        errors = 1.0 - accuracy(read_totals(self.pools, rows, 0))
        records = self.recoveries(rows)
        return lambda index: recovery_document(name, float(errors[index]), records[index])

    def verdicts(self, rows: Integers) -> Verdicts:
        """Verdicts of m models, each array (opponents, m)."""
        steps, verdicts = self._judged(rows)
        return self._verdicts_of(steps.T, verdicts.T)

    def verdict_changes(self, row: int, opponent: str) -> int:
        """Number of changes of a model's verdict against an opponent; 0 if it is not compared with it."""
        if opponent not in self.layout.opponents:
            return 0
        _, verdicts = self._judged(np.array([row], np.int64))
        return int(verdicts[0, self.layout.opponents.index(opponent)]["changes"])

    def verdicts_traced(self, traced: Trace) -> Verdicts:
        """Verdicts after every outcome of a trace, each array (opponents, n)."""
        return self._verdicts_of(traced.reported["steps"], traced.reported)

    def _judged(self, rows: Integers) -> tuple[Integers, Records]:
        """Copy the steps and the records of m models' verdicts, both (m, opponents), brought up to date."""
        rows = self.rows.live(rows)
        reading.prepare(self.pools.arrays, rows, False, self._alarms)
        models = self.pools.models
        return models["pace"]["steps"][rows], taken(models["verdicts"], rows)

    def _verdicts_of(self, steps: Integers, records: NDArray[np.void]) -> Verdicts:
        threshold = float(self.layout.parameters["verdict"]["threshold"][0, 0])
        return read_verdicts(steps, records, self._spec.confidence_delta, threshold)

    def confusions(self, rows: Integers) -> list[Floats | None]:
        """Faded counts of (true, predicted) of some models, each (K, K) by class; None if none are kept."""
        return confusions(self.pools, self.rows.live(rows))

    def follow(self, drift_weighted: int, row: int) -> None:
        """Make this model the reference of a weighting with `drift_signal: reference`, until it retires.

        Every other model takes a drift into account at its own next outcome.

        Raises
        ------
        ValueError
            If the weighting has another drift signal, or the row has no model.
        """
        self.rows.live_one(row)
        if self._spec.drift_weighted[drift_weighted].drift_signal != "reference":
            raise ValueError(f"only a weighting by reference follows a model, got weighting {drift_weighted}")
        self.layout.parameters["drift_weighted"]["reference"][0, drift_weighted] = row

    def drifts(self, row: int) -> tuple[int, ...]:
        """Number of drifts that restarted each weighting of a model."""
        self.rows.live_one(row)
        return tuple(self.pools.models["drift_weighted"]["drifts"][row].tolist())

    def followers(self, row: int) -> Followers:
        """Copy the states of all models in the weightings that follow this one, for `keep_followers`."""
        states, followed = self.pools.models["drift_weighted"], self.layout.parameters["drift_weighted"]
        weightings = np.flatnonzero(followed["reference"][0] == row).tolist()
        return row, {each: states[:, each].copy() for each in weightings}

    def keep_followers(self, followers: Followers, row: int) -> None:
        """Undo what the end of a reference did to the models that follow it, as it goes on in `row`.

        Nothing is undone where its drifts are counted anew there.
        """
        before, kept = followers
        for drift_weighted, states in kept.items():
            now = self.pools.models["drift_weighted"][:, drift_weighted]
            if now["drifts"][row] >= states["drifts"][before]:
                others = ~np.isin(np.arange(len(now)), (before, row))
                now[others] = states[others]

    def sections(self) -> dict[str, str]:
        """Describe the estimator behind each section of a snapshot in words, by section name."""
        return section_names(self._spec, self.layout)

    def snapshots(self, rows: Integers) -> list[dict[str, bytes]]:
        """Encode the states of m models' estimators, one section each, independent of the models' rows."""
        rows = self.rows.live(rows)
        reading.prepare(self.pools.arrays, rows, True, self._alarms)
        return self._sections.take(rows) if len(rows) else []

    def snapshot(self, row: int) -> dict[str, bytes]:
        """Encode the state of one model, as `snapshots` does."""
        return self.snapshots(np.array([row], np.int64))[0]

    def restore(self, row: int, sections: Mapping[str, bytes]) -> None:
        """Restore the estimators whose sections are present into a new model; the others start empty.

        Raises
        ------
        ValueError
            If the model has outcomes already, has more classes than `max_classes` allows, or a section is not
            of the length it must have.
        """
        if self.outcomes(np.array([row], np.int64))[0]:
            raise ValueError(f"a snapshot must be restored into a new model, row {row} has outcomes")
        self._sections.restore(row, sections)
