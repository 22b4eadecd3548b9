"""Register of verdicts by cohorts of prediction time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import isfinite
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.entries import fingerprint
from streamwatch.core.estimators.kernel.pools import taken
from streamwatch.core.estimators.names import Batch, Details, Slice
from streamwatch.core.estimators.registers.cohorts import METRICS, CohortsSpec
from streamwatch.core.estimators.registers.cohorts.observe import observe
from streamwatch.core.estimators.registers.cohorts.readout import (
    STATUSES,
    CohortVerdicts,
    confirmation_of,
    document_of,
    expected_ms,
    headline_document,
    headlines_of,
    newest_cohorts,
    read_cohorts,
    shown_of,
)
from streamwatch.core.estimators.registers.cohorts.state import (
    AGES,
    BOUNDS,
    BY_COSTS,
    CHANGE,
    CLASS,
    CLASSES,
    CONFIRMED,
    DEADLINE_MS,
    HALVES,
    HEADLINE,
    LEAST_PREDICTIONS,
    LIVE,
    MODEL,
    MOST_CHANGES,
    MOST_REMEMBERED,
    OPEN,
    OPPONENTS,
    PARAMETERS,
    PREDICTIONS_BY_DISPERSION,
    SETTLED_RULE,
    SLOTS,
    WHOLE,
    WHOLE_HORIZON,
    WIDTHS,
    State,
    empty,
    geometry_of,
    with_room_for,
)
from streamwatch.core.estimators.registers.cohorts.trackers import NEVER
from streamwatch.core.estimators.registers.fleet import VERDICT_WORDS, WorseList, WorsePair, worse_pairs
from streamwatch.core.estimators.registers.kind import HeadlineChange
from streamwatch.core.estimators.verdicts.costs import cost_table_of, stacked
from streamwatch.core.metrics.series import Columns, ModelKeys
from streamwatch.core.ranges import LARGEST, require, require_all, require_equal
from streamwatch.core.records.events import Confirmation
from streamwatch.core.specs import UtilitySpec

# Snapshot of a model's cohorts: the words of its records that are not 0, and its label counts.


_MODEL_WORDS: Final = MODEL.itemsize // 8
_CLASS_WORDS: Final = CLASS.itemsize // 8
_COST_WORDS: Final = BY_COSTS.itemsize // 8
_NAME: Final = "cohorts"


class _CohortsState(msgspec.Struct, frozen=True, array_like=True):
    filled: bytes
    """One bit per word of the records: whether it is not 0."""
    words: bytes
    labels: bytes
    """Faded counts of labels by class, little-endian doubles."""


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_CohortsState)
_NO_INDICES, _NO_TIMES = np.zeros(0, np.int32), np.zeros(0, np.int64)
_NO_COLUMNS: Final = (
    *(_NO_INDICES, _NO_INDICES, _NO_INDICES),
    *(np.zeros(0, np.bool_), np.zeros(0, np.uint32)),
    *(_NO_TIMES, _NO_TIMES),
)
"""Columns of a `Batch` as `observe` takes them, after the rows; empty."""


def _words_of(state: State, row: int, classes: int) -> list[NDArray[np.uint64]]:
    """View the records of a row as words: of the model, then of each of its classes, then of its costs."""
    records = [state.models[row : row + 1]]
    records += [state.classes[k, row : row + 1] for k in range(min(classes, CLASSES))]
    if _is_by_costs(state, row):
        records.append(state.by_costs[row : row + 1])
    return [each.view(np.uint64) for each in records]


def _are_by_costs(state: State, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the rows that are judged by costs."""
    if len(state.by_costs) < len(state.models):  # no model may be judged by costs
        return np.zeros(len(rows), np.bool_)
    return state.by_costs["table"][rows] > 0


def _is_by_costs(state: State, row: int) -> bool:
    """Tell whether a row is judged by costs."""
    return row < len(state.by_costs) and bool(state.by_costs["table"][row] > 0)


def encode(state: State, rows: NDArray[np.int64]) -> list[bytes]:
    """Encode the states of some rows without held outcomes; empty for a row before its first outcome."""
    found = [b""] * len(rows)
    classes = state.models["classes"][rows]
    seen = state.models["observed"][rows] > 0
    by_costs = _are_by_costs(state, rows)
    for counted, costed in np.unique(np.stack((classes[seen], by_costs[seen])), axis=1).T.tolist():
        members = np.flatnonzero(seen & (classes == counted) & (by_costs == costed))
        chosen = rows[members]
        records = [taken(state.models, chosen)]
        records += [taken(state.classes[k], chosen) for k in range(min(counted, CLASSES))]
        if costed:
            own = taken(state.by_costs, chosen)
            own["table"] = 1  # its number is one of the configuration; the fingerprint identifies the table
            records.append(own)
        words = np.concatenate([each.view(np.uint64).reshape(len(members), -1) for each in records], axis=1)
        filled = words != 0
        body, labels = words[filled].tobytes(), state.labels[chosen, :counted]
        ends: list[int] = (8 * np.cumsum(filled.sum(axis=1))).tolist()
        parts = [body[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        states = map(_CohortsState, _bytes_of(np.packbits(filled, axis=1)), parts, _bytes_of(labels))
        for member, encoded in zip(members.tolist(), map(_ENCODER.encode, states), strict=True):
            found[member] = encoded
    return found


def _bytes_of(values: NDArray[Any]) -> list[bytes]:
    """Bytes of each row of an array."""
    body = values.tobytes()
    size = len(body) // len(values)
    return [body[number * size : (number + 1) * size] for number in range(len(values))]


def decode(state: State, row: int, snapshot: bytes, parameters: NDArray[Any], most_classes: int) -> State:
    """Set a cleared row to a snapshot; it stays empty if the snapshot is judged by another utility.

    Returns the state, with room for the classes of the snapshot, which may be at most `most_classes`.

    Raises
    ------
    ValueError
        If the bytes are not a snapshot, or of more classes than there may be, or if a number that leads to
        memory is none that a model has.
    """
    if not snapshot:
        return state
    kept = _DECODER.decode(snapshot)
    counts = np.frombuffer(kept.labels, np.float64)
    if len(counts) > most_classes:
        raise ValueError(f"cohorts must have at most {most_classes} classes, got {len(counts)}")
    plain = _MODEL_WORDS + min(len(counts), CLASSES) * _CLASS_WORDS
    sizes = {-(-number // 8): number for number in (plain, plain + _COST_WORDS)}
    number = sizes.get(len(kept.filled))
    if number is None:
        raise ValueError(
            f"a model's cohorts must have {' or '.join(map(str, sizes))} bytes of bits, "
            f"got {len(kept.filled)}"
        )
    filled = np.unpackbits(np.frombuffer(kept.filled, np.uint8), count=number).astype(np.bool_)
    if len(kept.words) != 8 * int(filled.sum()):
        raise ValueError(
            f"expected {int(filled.sum())} words of a model's cohorts, got {len(kept.words)} bytes"
        )
    words = np.zeros(number, np.uint64)
    words[filled] = np.frombuffer(kept.words, np.uint64)
    _require_model(words[:_MODEL_WORDS].view(MODEL)[0], len(counts), parameters[0])
    by_costs = _is_by_costs(state, row)
    if by_costs != (number > plain):
        return state
    if by_costs:
        own = words[plain:].view(BY_COSTS)
        if own["fingerprint"][0] != state.by_costs["fingerprint"][row]:
            return state
        own["table"] = state.by_costs["table"][row]
    start = 0
    for record in _words_of(state, row, len(counts)):
        record[:] = words[start : start + len(record)]
        start += len(record)
    state = with_room_for(state, len(counts), most_classes)
    state.labels[row, : len(counts)] = counts
    return state


def _require_model(m: np.void, classes: int, p: np.void) -> None:
    """Raise ValueError unless the numbers of a record that lead to memory fit to each other.

    As compiled functions assume: records of cohorts, stretches, buckets and ages are looked up without a
    comparison; cohorts that are not judged follow each other, and none is so narrow that there could be more
    of them than slots; and what is due has been handled before outcomes are counted.
    """
    bounds, first, after = int(m["bounds"]), int(m["first_cohort"]), int(m["next_cohort"])
    clock_ms, bucket_ms = int(m["clock_ms"]), int(m["bucket_ms"])
    require_equal(_NAME, "number of classes", int(m["classes"]), classes)
    for name, least, most in (
        ("observed", 1, LARGEST),
        ("clock_ms", -LARGEST, LARGEST),
        ("bucket_ms", -LARGEST, LARGEST),
        ("made", 0, LARGEST),
        ("last_made", 0, 2**32 - 1),
        ("leader", 0, classes),
        ("noted", 0, classes),
        ("notes", 0, LARGEST),
        ("bucket_slot", 0, LIVE - 1),
        ("first_cohort", 0, LARGEST),
        ("next_cohort", first, first + SLOTS - 1),
        ("first_slot", first % SLOTS, first % SLOTS),
        ("is_open", 0, min(1, after - first)),
        ("bounds", after - first, BOUNDS),
        ("settled_age", 0, AGES),
        ("fast_age", 0, WHOLE),
    ):
        require(_NAME, name, m[name], least, most)
    require_all(_NAME, "note_class", m["note_class"], 0, max(classes - 1, 0))
    require_all(_NAME, "gaps_ms", m["gaps_ms"], 0, LARGEST)
    require(_NAME, "unpaid", m["unpaid"], 0, MOST_REMEMBERED)
    require_all(_NAME, "bounds_ms", m["bounds_ms"][bounds:], NEVER, NEVER)
    require_all(_NAME, "rule", m["cohorts"]["rule"], 0, WHOLE_HORIZON)
    require_all(_NAME, "status", m["opponents"]["status"], OPEN, CONFIRMED)
    require_all(_NAME, "verdict", m["opponents"]["verdict"], -1, 1)
    if p["by_prediction"] == 0:
        settles_ms = bucket_ms + int(p["width_ms"]) + int(p["horizon_ms"])
        require_equal(_NAME, "settles_ms", int(m["settles_ms"]), settles_ms)
        require(_NAME, "due_ms", m["due_ms"], -LARGEST, settles_ms)
    longest_ms = 0
    opened_ms = -LARGEST
    for number in range(first, after):
        cohort = m["cohorts"][number % SLOTS]
        require(_NAME, "rule of a cohort", cohort["rule"], SETTLED_RULE, WHOLE_HORIZON)
        require(_NAME, "age of a cohort", cohort["age_ms"], 0, int(p["horizon_ms"]))
        require(_NAME, "opening of a cohort", cohort["opened_ms"], opened_ms, clock_ms)
        age_ms = int(cohort["age_ms"])
        is_longer = age_ms == int(p["horizon_ms"]) and p["by_prediction"] == 0
        longest_ms = max(longest_ms, age_ms + DEADLINE_MS * is_longer)
        least_ms = int(cohort["opened_ms"]) + -(-longest_ms // WIDTHS)
        if number == after - m["is_open"]:
            require(_NAME, "end of the open cohort", m["closes_ms"], least_ms, LARGEST)
        else:
            require(_NAME, "end of a cohort", cohort["ended_ms"], least_ms, clock_ms)
            opened_ms = int(cohort["ended_ms"])


def clear(state: State, row: int) -> None:
    """Reset a row."""
    if state.models["observed"][row]:
        classes = int(state.models["classes"][row])
        state.labels[row, :classes] = 0.0
        for record in _words_of(state, row, classes):
            record[:] = 0
    if _is_by_costs(state, row):
        state.by_costs[row] = np.zeros((), BY_COSTS)
    state.held[row : row + 1].view(np.uint8)[:32] = 0


VERSION: Final = 6
"""Incremented when the meaning of the state changes."""
_ROOM: Final = 4 * MOST_CHANGES
"""Number of changes of verdicts that a compiled call may return."""


class Cohorts:
    """Verdicts by cohorts of up to `capacity` models; takes O(1) per outcome and `bytes_of` per model."""

    def __init__(self, spec: CohortsSpec, capacity: int) -> None:
        self._spec = spec
        self._costs = {each: cost_table_of(each) for each in spec.cost_utilities()}
        tables = stacked(list(self._costs.values())) if self._costs else None
        self._most_classes = spec.max_classes + 1
        self.state = empty(capacity, spec.max_classes, tables)
        self.parameters = parameters_of(spec)
        self._changes: NDArray[Any] = np.zeros(_ROOM, CHANGE)
        self._headlines = self._changes[:0]
        self._headlined = lru_cache(capacity)(spec.gives_headline)
        identity = (spec.horizon_ms, spec.delta, spec.outcomes, spec.age_ms, spec.by_prediction)
        identity = (*identity, "pairs") if spec.of_pairs else identity
        records = np.dtype([("model", MODEL), ("class", CLASS)])
        self.section = fingerprint("cohorts", identity, records, VERSION)
        self.title = f"verdicts by cohorts (horizon {spec.horizon_ms / 1000:g} s)"

    def observe(self, batch: Batch) -> None:
        """Evaluate outcomes in order."""
        changes = self.changes_in(batch)
        self._headlines = changes[changes["kind"] == HEADLINE]

    def headline_changes(self) -> Sequence[HeadlineChange]:
        """List the changes of headlines at outcomes of the last batch observed, in their order."""
        return [
            HeadlineChange(
                position=int(each["position"]),
                row=int(each["row"]),
                number=int(each["ordinal"]),
                is_first=bool(each["is_first"]),
                before=int(each["before"]),
                verdict=int(each["after"]),
                opponent=OPPONENTS[int(each["opponent"])],
                status="retracted" if each["is_retracted"] else STATUSES[int(each["status"])],
                since_ms=int(each["since_ms"]),
                earliest_ms=int(each["earliest_ms"]) or None,
                latest_ms=int(each["latest_ms"]) or None,
                outcomes=int(each["outcomes"]),
                evidence=float(each["evidence"]),
                threshold=float(each["threshold"]),
                predictions=float(each["predictions"]),
            )
            for each in self._headlines
        ]

    def gives_headline(self, model: str) -> bool:
        """Tell whether the headline of a model is by cohorts, once it has been judged by enough of them."""
        return self._headlined(model)

    def headlines(self, rows: Sequence[int]) -> Callable[[int], dict[str, object] | None]:
        """Read the headlines of some rows; return a function from index to document, None if it has none."""
        headlines = self._headlines_of(rows)
        return lambda index: headline_document(headlines[index])

    def headline_verdicts(self, rows: Sequence[int]) -> list[int | None]:
        """Current verdict of the headline of each row: 1, 0 or −1; None until there is one."""
        found = self._headlines_of(rows)
        pairs = zip(found["verdict"].tolist(), found["is_there"].tolist(), strict=True)
        return [int(verdict) if is_there else None for verdict, is_there in pairs]

    def _headlines_of(self, rows: Sequence[int]) -> NDArray[Any]:
        return headlines_of(self.taken_in(rows).models, np.array(rows, np.int64), self.parameters)

    def confirmation_expected_ms(self, row: int, at_ms: int) -> int | None:
        """Find the clock from which an alarm at `at_ms` may be confirmed.

        None if it needs no confirmation, or if too few cohorts have been judged to give one.
        """
        return expected_ms(self.taken_in([row]).models[row], at_ms)

    def confirmation(self, row: int, at_ms: int, rise: float) -> Confirmation | None:
        """Judge an alarm at the clock `at_ms` that found a `rise` of the error; None while undecided."""
        return confirmation_of(self.taken_in([row]).models[row], at_ms, rise)

    def worse(self, models: Sequence[tuple[str, int]], share: float) -> WorseList:
        """List those of some models, given as (name, row), that are worse than an opponent.

        Models without an outcome are neither listed nor counted; see `registers.fleet` for the rule.
        """
        judged = [(name, row) for name, row in models if self.state.models["observed"][row] > 0]
        current = self.read([row for _, row in judged])
        verdicts = current.verdict.tolist()
        times = np.stack((current.since_seconds, current.earliest_seconds, current.latest_seconds), axis=-1)
        pairs: list[WorsePair] = []
        for index, opponent in np.argwhere(np.isfinite(current.e_value)).tolist():
            verdict = VERDICT_WORDS[int(verdicts[index][opponent])]
            began = [
                round(1000 * seconds) if verdict == "worse" and isfinite(seconds) else None
                for seconds in times[index, opponent].tolist()
            ]
            e_value = float(current.e_value[index, opponent])
            pairs.append(WorsePair(judged[index][0], OPPONENTS[opponent], e_value, verdict, *began))
        number = len(OPPONENTS) * len(judged)
        return WorseList(number, tuple(worse_pairs(pairs, number, share)))

    def changes_in(self, batch: Batch) -> NDArray[Any]:
        """Evaluate outcomes in order; return the changes of verdicts, `CHANGE` records in their order."""
        classes = int(batch.true_class.max(initial=-1)) + 1
        self.state = with_room_for(self.state, classes, self._most_classes)
        found: list[NDArray[Any]] = []
        position, number = 0, len(batch.rows)
        while position < number:
            position, count = observe(
                *self.state,
                self.parameters,
                batch.rows,
                batch.true_class,
                batch.predicted_class,
                batch.label_at_prediction,
                batch.assumed,
                batch.made,
                batch.resolved_ms,
                batch.waited_ms,
                position,
                False,
                self._changes,
            )
            if count:
                found.append(self._changes[:count].copy())
        return np.concatenate(found) if found else self._changes[:0]

    def taken_in(self, rows: Sequence[int] | NDArray[np.int64]) -> State:
        """Take in all held outcomes of some models, and return the state."""
        held = np.array(rows, np.int32)
        observe(*self.state, self.parameters, held, *_NO_COLUMNS, 0, True, self._changes)
        return self.state

    def name_classes(self, row: int, utility: UtilitySpec, names: Sequence[str]) -> None:
        """Set the table of costs that a row is judged by, and the names of its classes by local index.

        For pairs of models `names` is empty, as their classes are indices in the table.
        """
        number, table = list(self._costs).index(utility), self._costs[utility]
        by_costs = self.state.by_costs
        by_costs["table"][row] = number + 1
        by_costs["fingerprint"][row] = _fingerprint_of(utility)
        self.state.cost_classes[row, : len(names)] = [table.index(name) for name in names]

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        clear(self.state, row)

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[bytes]:
        """Encode the states of some rows; the same outcomes give the same bytes."""
        return encode(self.taken_in(rows), rows)

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; raises ValueError for bytes that are not one."""
        self.state = decode(self.state, row, state, self.parameters, self._most_classes)

    def read(self, rows: Sequence[int]) -> CohortVerdicts:
        """Read the verdicts of some rows."""
        models = self.taken_in(rows).models
        return read_cohorts(models, np.array(rows, np.int64), self.parameters)

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Columns]:
        """Verdicts, leads and evidence of some models; undefined values give no sample."""
        current = self.read([one.row for one in chosen])
        models = tuple([one.model for one in chosen])
        own = np.array([self._headlined(model) for model in models], np.bool_)
        headlines = np.where(own & (current.headlines["is_there"] > 0), current.headlines["verdict"], np.nan)
        found = {metric.name: Columns() for metric in METRICS}
        plain = ModelKeys(models)
        _put(found["cohort_headline"], plain, headlines)
        _put(found["cohort_age_seconds"], plain, current.age_seconds)
        _put(found["cohorts_judged_total"], plain, current.judged)
        for k, opponent in enumerate(OPPONENTS):
            keys = ModelKeys(models, after=(opponent,))
            _put(found["cohort_verdict"], keys, current.verdict[:, k])
            _put(found["cohort_verdict_since_timestamp_seconds"], keys, current.since_seconds[:, k])
            _put(found["cohort_verdict_confirmed"], keys, current.confirmed[:, k])
            _put(found["cohort_verdict_retracted_total"], keys, current.retracted[:, k])
            _put(found["cohort_lead"], keys, current.lead[:, k])
            _put(found["cohort_lead_lower"], keys, current.lower[:, k])
            _put(found["cohort_lead_upper"], keys, current.upper[:, k])
            _put(found["cohort_lead_dispersion"], keys, current.dispersion[:, k])
            for side, values in (("better", current.better), ("worse", current.worse)):
                of_side = ModelKeys(models, after=(opponent, side))
                _put(found["cohort_verdict_evidence"], of_side, values[:, k])
        return found

    def details(self, chosen: Sequence[Slice]) -> Details:
        """Verdicts with status, age, shares labelled, leads and counts; empty before the first outcome."""
        rows = [one.row for one in chosen]
        current = self.read(rows)
        observed = self.state.models["observed"][rows] > 0
        newest = newest_cohorts(self.state, np.array(rows, np.int64))
        shown, spec = shown_of(self.state.models, np.array(rows, np.int64)), self._spec

        def document(index: int) -> Mapping[str, object]:
            if not chosen[index].classes or not observed[index]:
                return {}
            return {"cohorts": document_of(current, shown, newest[index], index, spec.delta, spec.outcomes)}

        return document


def _put(columns: Columns, keys: ModelKeys, values: NDArray[Any]) -> None:
    """Add a column of the finite values."""
    columns.add(keys, np.where(np.isfinite(values), values, np.nan))


def _fingerprint_of(utility: UtilitySpec) -> int:
    """Hash of a table of costs, to tell tables apart."""
    costs = repr((utility.costs, utility.other)).encode()
    return int.from_bytes(blake2b(costs, digest_size=8).digest(), "little")


def parameters_of(spec: CohortsSpec) -> NDArray[Any]:
    """Convert parameters to the record that compiled code takes, shape (1,).

    Raises
    ------
    ValueError
        If the horizon is below a second, `outcomes` not positive, δ not in (0, 1), or an age negative.
    """
    if spec.horizon_ms < 1000:
        raise ValueError(f"the horizon of cohorts must be at least 1000 ms, got {spec.horizon_ms!r}")
    if spec.outcomes < 1:
        raise ValueError(f"outcomes of a verdict must be at least 1, got {spec.outcomes!r}")
    if not 0.0 < spec.delta < 1.0:
        raise ValueError(f"delta of a verdict must be in (0, 1), got {spec.delta!r}")
    if spec.age_ms < 0:
        raise ValueError(f"the age of cohorts must not be negative, got {spec.age_ms!r}")
    geometry = geometry_of(spec.horizon_ms)
    parameters = np.zeros(1, PARAMETERS)
    parameters["horizon_ms"] = spec.horizon_ms
    parameters["width_ms"] = geometry.width_ms
    parameters["inverse_width"] = 1.0 / geometry.width_ms
    parameters["ages_ms"] = geometry.ages_ms
    parameters["ages"] = geometry.ages_ms.reshape(HALVES, -1)
    parameters["least_predictions"] = LEAST_PREDICTIONS
    parameters["predictions_by_dispersion"] = PREDICTIONS_BY_DISPERSION
    parameters["note_ms"] = geometry.note_ms
    parameters["delta"] = spec.delta
    parameters["outcomes"] = spec.outcomes
    parameters["fixed_age"] = geometry.index_of(spec.age_ms) if spec.age_ms else -1
    parameters["by_prediction"] = spec.by_prediction
    parameters["by_costs"] = bool(spec.cost_utilities())
    parameters["opponents"] = 1 if spec.of_pairs else len(OPPONENTS)
    # All classes beyond `max_classes` have one index; and the last index of pairs may be of several kinds.
    parameters["apart"] = CLASSES - 1 if spec.of_pairs else min(spec.max_classes, CLASSES)
    return parameters
