"""Set of comparisons by model names: takes outcomes with partners, returns series."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.comparisons.cohorts import PairCohorts
from streamwatch.core.estimators.comparisons.measures import MEASURES
from streamwatch.core.estimators.comparisons.observe import lay_out
from streamwatch.core.estimators.comparisons.table import ComparisonTable
from streamwatch.core.estimators.entries import fingerprint
from streamwatch.core.estimators.index import utility_of
from streamwatch.core.estimators.names import Cell, Classes, TraceChunk
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.readout import STATUSES, CohortVerdicts
from streamwatch.core.estimators.verdicts.costs import CostTable, cost_table_of
from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.events import Name, Outcome
from streamwatch.core.records.outcome_objects import in_columns
from streamwatch.core.records.outcomes import OutcomeBatch, Pairs
from streamwatch.core.specs import MonitorsSpec, UtilityKind, UtilitySpec, champion_of

# Series of comparisons, labelled by challenger and champion.


Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ComparisonVerdict:
    """Verdict on a challenger against its champion, as of its latest pair of outcomes."""

    champion: str
    challenger: str
    verdict: int
    """1 better, −1 worse, 0 open."""
    since_ms: int | None
    """Event time since which the verdict holds, or prediction time for one by cohorts.

    None for an open verdict by cohorts, and before the first verdict in the order of labels.
    """
    last_ms: int
    """Event time of the latest pair."""
    basis: Literal["cohorts", "labels"] = "labels"
    """Whether the verdict is by cohorts of prediction time, or in the order of labels."""
    status: Literal["early", "confirmed", ""] = ""
    """Whether settled predictions have confirmed a verdict by cohorts; empty if open and for any other."""
    utility: UtilityKind = "accuracy"
    """Utility by which the champion is judged."""


_OF_COHORTS: Final = {
    "comparison_cohort_verdict": "verdict",
    "comparison_cohort_verdict_since_timestamp_seconds": "since_seconds",
    "comparison_cohort_verdict_earliest_timestamp_seconds": "earliest_seconds",
    "comparison_cohort_verdict_latest_timestamp_seconds": "latest_seconds",
    "comparison_cohort_verdict_confirmed": "confirmed",
    "comparison_cohort_verdict_retracted_total": "retracted",
    "comparison_cohort_lead": "lead",
    "comparison_cohort_lead_lower": "lower",
    "comparison_cohort_lead_upper": "upper",
    "comparison_cohort_lead_dispersion": "dispersion",
}
"""Field of `CohortVerdicts` by series, for series of verdicts by cohorts without further labels."""


def report(pairs: Sequence[Pair], rows: NDArray[np.int64], table: ComparisonTable) -> list[Family]:
    """Collect the series of comparisons; undefined values give no sample.

    Parameters
    ----------
    pairs
        (challenger, champion), in the order of the series' labels.
    rows
        Rows of the comparisons in the table.
    table
        State of the comparisons.
    """
    current = table.verdicts(rows)
    per_forgetting = [(f.name, table.sums(rows, index)) for index, f in enumerate(table.forgetting)]
    families = [
        family("comparison_pairs_total", _defined(pairs, table.pairs(rows))),
        family("comparison_last_pair_timestamp_seconds", _defined(pairs, table.last_seconds(rows))),
    ]
    for measure in MEASURES:
        of_all = ((name, measure.of(sums)) for name, sums in per_forgetting)
        samples = [sample for name, values in of_all for sample in _defined(pairs, values, name)]
        families.append(family(measure.name, samples))
    worth = [sample for name, sums in per_forgetting for sample in _defined(pairs, sums.n_eff, name)]
    families.append(family("comparison_effective_sample_size", worth))
    for name, values in (
        ("comparison_verdict", current.verdict),
        ("comparison_verdict_since_timestamp_seconds", current.since_seconds),
        ("comparison_verdict_since_pair", current.since),
        ("comparison_lead", current.lead),
        ("comparison_lead_lower", current.lower),
        ("comparison_lead_upper", current.upper),
        ("comparison_lead_dispersion", current.dispersion),
    ):
        families.append(family(name, _defined(pairs, values[0])))
    evidence = [*_defined(pairs, current.better[0], "better"), *_defined(pairs, current.worse[0], "worse")]
    families.append(family("comparison_verdict_evidence", evidence))
    return families


TRACED = ["champion", "challenger", "pair", "y_true", "champion_pred", "challenger_pred"]
"""Columns that identify the pair in a trace of pairs."""
_VERDICT = (
    "comparison_verdict",
    "comparison_verdict_since_timestamp_seconds",
    "comparison_verdict_since_pair",
    "comparison_lead",
    "comparison_lead_lower",
    "comparison_lead_upper",
    "comparison_verdict_evidence:better",
    "comparison_verdict_evidence:worse",
    "comparison_lead_dispersion",
)
"""Columns of the verdict, in the order of the fields of `Verdicts`."""


def by_cohorts(pairs: Sequence[Pair], verdicts: CohortVerdicts) -> list[Family]:
    """Collect the series of verdicts by cohorts; undefined values give no sample."""
    first = {name: getattr(verdicts, field)[:, 0] for name, field in _OF_COHORTS.items()}
    families = [family(name, _defined(pairs, values)) for name, values in first.items()]
    is_there = np.where(verdicts.headlines["is_there"] > 0, verdicts.headlines["verdict"], np.nan)
    families.append(family("comparison_cohort_headline", _defined(pairs, is_there)))
    families.append(family("comparison_cohort_age_seconds", _defined(pairs, verdicts.age_seconds)))
    sides = (("better", verdicts.better), ("worse", verdicts.worse))
    evidence = [sample for side, values in sides for sample in _defined(pairs, values[:, 0], side)]
    families.append(family("comparison_cohort_verdict_evidence", evidence))
    return families


def trace_columns(table: ComparisonTable, cohorts: PairCohorts | None) -> list[str]:
    """Names of the columns of `traced`: those of the series, without the names of the models."""
    further = () if cohorts is None else _OF_COHORTS
    names = [*(measure.name for measure in MEASURES), "comparison_effective_sample_size"]
    return [*(f"{name}:{f.name}" for f in table.forgetting for name in names), *_VERDICT, *further]


def traced(row: NDArray[np.int64], table: ComparisonTable, cohorts: PairCohorts | None) -> list[float | None]:
    """Current values of the comparison in `row`, an array of shape (1,); None where undefined."""
    values: list[float] = []
    for index in range(len(table.forgetting)):
        sums = table.sums(row, index)
        values += [float(measure.of(sums)[0]) for measure in MEASURES]
        values.append(float(sums.n_eff[0]))
    values += [float(current[0, 0]) for current in table.verdicts(row)]
    if cohorts is not None:
        verdicts = cohorts.read(row)
        values += [float(getattr(verdicts, field)[0, 0]) for field in _OF_COHORTS.values()]
    return [None if math.isnan(value) else value for value in values]


def _defined(
    pairs: Sequence[Pair], values: NDArray[np.generic], *more: str
) -> list[tuple[tuple[str, ...], float]]:
    """Build a sample for each pair whose value is not NaN.

    `more` are the values of labels that follow `challenger` and `champion`.
    """
    numbers = values.tolist()
    return [((*pair, *more), v) for pair, v in zip(pairs, numbers, strict=True) if v == v]  # noqa: PLR0124


@dataclass(slots=True)
class _Comparison:
    """Two models that are compared."""

    champion: str
    challenger: str
    row: int
    utility: UtilitySpec
    """Utility of the champion, by which both are judged."""
    costs: CostTable | None
    classes: Classes


class _ComparisonSnapshot(msgspec.Struct, frozen=True):
    """Snapshot of one comparison."""

    champion: Name
    challenger: Name
    classes: list[Name]
    """Classes by local index, as counted for the balanced utility; empty under any other."""
    sections: dict[Name, bytes]


class _Snapshot(msgspec.Struct, frozen=True):
    """Snapshot of all comparisons."""

    max_classes: int
    over_limit: int
    comparisons: list[_ComparisonSnapshot]
    """Sorted by name."""


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(_Snapshot)


def without(snapshot: bytes, sections: Collection[str]) -> bytes:
    """Remove sections from an encoded snapshot, by name."""
    if not sections:
        return snapshot
    decoded = _DECODER.decode(snapshot)
    kept = [
        msgspec.structs.replace(each, sections={n: b for n, b in each.sections.items() if n not in sections})
        for each in decoded.comparisons
    ]
    return _ENCODER.encode(msgspec.structs.replace(decoded, comparisons=kept))


class ComparisonSet:
    """Comparisons of pairs of models, at most `spec.max_comparisons`, in order of their first common id.

    A comparison begins with its first pair of outcomes and ends when one of its models retires.
    """

    def __init__(self, spec: MonitorsSpec) -> None:
        self._spec = spec
        self._table = ComparisonTable(spec)
        cohorts = next((each for each in spec.registers if isinstance(each, CohortsSpec)), None)
        self._cohorts = None if cohorts is None else PairCohorts(cohorts, spec.max_comparisons)
        """Verdicts by cohorts; None if there is no register of cohorts."""
        self._comparisons: dict[tuple[str, str], _Comparison] = {}
        self._listed: list[_Comparison] = []
        self._judged_otherwise: list[int] = []
        """Positions in `_listed` of the comparisons judged by another utility than accuracy."""
        self._names: Sequence[str] = ()
        """Names of the models, by the model numbers in `_keys`."""
        self._keys = np.zeros(0, np.int64)
        """Pairs of models seen before, as model number · 2³² + partner number, ascending."""
        self._found = np.zeros(0, np.int64)
        """Result of `_code_of` for each pair in `_keys`."""
        self._rows = np.zeros(0, np.int64)
        """Rows of the comparisons in `_listed`."""
        self.over_limit = 0
        """Number of pairs of outcomes left out because no further comparison was allowed."""

    def fold(self, outcomes: Sequence[Outcome]) -> None:
        """Evaluate the pairs of outcomes, in order."""
        batch = in_columns(outcomes)
        if batch.pairs is None:
            return
        pairs, records = batch.pairs, batch.records
        codes = self._codes_of(batch, records["model"][pairs[:, 0]], pairs[:, 1])
        if codes.min() < 0:
            chosen = codes >= 0
            self.over_limit += len(chosen) - int(np.count_nonzero(chosen))
            pairs, codes = pairs[chosen], codes[chosen]
        count = len(pairs)
        rows, bits = np.empty(count, np.int64), np.empty(count, np.uint8)
        leads, event_ms = np.empty(count), np.empty(count, np.int64)
        lay_out(records, pairs, codes, self._rows, rows, bits, leads, event_ms)
        classes, indices = np.zeros(count, np.int64), np.zeros((count, 3), np.int32)
        if self._judged_otherwise:
            self._judge(batch, pairs, codes, leads, classes, indices)
        self._table.fold(rows, bits, leads, classes, event_ms)
        if self._cohorts is not None:
            self._cohorts.fold(batch, pairs, codes, rows, indices)

    def _judge(
        self,
        batch: OutcomeBatch,
        pairs: Pairs,
        codes: NDArray[np.int64],
        leads: NDArray[np.float64],
        classes: NDArray[np.int64],
        indices: NDArray[np.int32],
    ) -> None:
        """Write the leads of pairs judged by costs, and the classes of pairs judged by the balanced utility.

        Also write `indices`: true class, challenger's and champion's class in the table of costs.
        """
        true_class = batch.records["true_class"][pairs[:, 0]]
        own_class, partner_class = batch.records["predicted_class"][pairs[:, 0]], pairs[:, 2]
        champion = np.where(codes & 1, partner_class, own_class)
        challenger = np.where(codes & 1, own_class, partner_class)
        for number in self._judged_otherwise:
            at = np.flatnonzero(codes >> 1 == number)
            comparison = self._listed[number]
            if not len(at):
                continue
            if comparison.costs is not None:
                table = comparison.costs
                index = _by_class(batch.classes, (true_class[at], champion[at], challenger[at]), table.index)
                label, own, other = (index[each[at]] for each in (true_class, challenger, champion))
                leads[at] = table.utilities[label, own] - table.utilities[label, other]
                indices[at] = np.column_stack((label, own, other))
            else:
                index = _by_class(batch.classes, (true_class[at],), comparison.classes.__getitem__)
                classes[at] = index[true_class[at]]

    def _codes_of(
        self, batch: OutcomeBatch, models: NDArray[np.int32], partners: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Return the code of each pair's comparison, see `_code_of`."""
        keys = models.astype(np.int64) << 32 | partners
        if self._names is not batch.models:
            self._names = batch.models
            self._keys, self._found = self._keys[:0], self._found[:0]
        at = np.searchsorted(self._keys, keys)
        known = self._keys[np.minimum(at, len(self._keys) - 1)] == keys if len(self._keys) else at < 0
        if not known.all():
            fresh, first = np.unique(keys[~known], return_index=True)
            found = np.empty(len(fresh), np.int64)
            for number in np.argsort(first).tolist():  # comparisons are numbered in the order of the pairs
                key = int(fresh[number])
                found[number] = self._code_of(batch.models[key >> 32], batch.models[key & 0xFFFFFFFF])
            order = np.argsort(together := np.concatenate([self._keys, fresh]))
            self._keys, self._found = together[order], np.concatenate([self._found, found])[order]
            self._rows = np.array([comparison.row for comparison in self._listed], np.int64)
            at = np.searchsorted(self._keys, keys)
        return self._found[at]

    def _code_of(self, model: str, partner: str) -> int:
        """Return 2·(position in `_listed`), plus 1 if the partner is the champion; −2 if not compared."""
        comparison = self._enter(model, partner)
        if comparison is None:
            return -2
        return 2 * self._listed.index(comparison) + (comparison.champion == partner)

    def trace(self, outcomes: Iterable[Outcome]) -> TraceChunk:
        """Evaluate the pairs of outcomes as `fold` does, and return all values of the comparison after each.

        Columns are `champion,challenger,pair,y_true,champion_pred,challenger_pred`, then one per series,
        without the names of the models. Slow, as it evaluates one pair at a time.
        """
        rows: list[list[Cell]] = []
        for outcome in outcomes:
            for pair in outcome.pairs or ():
                self.fold([msgspec.structs.replace(outcome, pairs=(pair,))])
                comparison = self._enter(outcome.model, pair.model)
                if comparison is None:
                    continue
                answers = {outcome.model: outcome.predicted_class, pair.model: pair.predicted_class}
                row = np.array([comparison.row], np.int64)
                rows.append(
                    [
                        comparison.champion,
                        comparison.challenger,
                        int(self._table.pairs(row)[0]),
                        outcome.true_class,
                        answers[comparison.champion],
                        answers[comparison.challenger],
                        *traced(row, self._table, self._cohorts),
                    ]
                )
        return TraceChunk(TRACED + trace_columns(self._table, self._cohorts), rows, [])

    def retire(self, model: str) -> None:
        """End the comparisons of a model."""
        ended = [pair for pair in self._comparisons if model in pair]
        for pair in ended:
            row = self._comparisons.pop(pair).row
            self._table.remove(row)
            if self._cohorts is not None:
                self._cohorts.remove(row)
        self._list()

    def families(self) -> list[Family]:
        """Collect all series of all comparisons."""
        by_name = [comparison for _, comparison in sorted(self._comparisons.items())]
        pairs = [(comparison.challenger, comparison.champion) for comparison in by_name]
        rows = np.array([comparison.row for comparison in by_name], np.int64)
        families = report(pairs, rows, self._table)
        if self._cohorts is None:
            return families
        judged = self._cohorts.are_judged(rows)
        return families + by_cohorts(list(compress(pairs, judged)), self._cohorts.read(rows[judged]))

    def verdicts(self) -> list[ComparisonVerdict]:
        """List the verdict on every challenger, by name: the one by cohorts if there is one."""
        by_name = [comparison for _, comparison in sorted(self._comparisons.items())]
        rows = np.array([comparison.row for comparison in by_name], np.int64)
        current, last = self._table.verdicts(rows), self._table.last_seconds(rows)
        headlines = [None] * len(rows) if self._cohorts is None else self._cohorts.read(rows).headlines
        found: list[ComparisonVerdict] = []
        for index, (each, headline) in enumerate(zip(by_name, headlines, strict=True)):
            latest = float(last[index])
            names, utility = (each.champion, each.challenger), each.utility.kind
            last_ms = 0 if math.isnan(latest) else round(latest * 1_000)
            if headline is not None and headline["is_there"]:
                verdict = int(headline["verdict"])
                since_ms = int(headline["since_ms"]) if verdict else None
                status = STATUSES[int(headline["status"])]
                by_cohorts = ComparisonVerdict(*names, verdict, since_ms, last_ms, "cohorts", status, utility)
                found.append(by_cohorts)
                continue
            value, since = float(current.verdict[0, index]), float(current.since_seconds[0, index])
            verdict = 0 if math.isnan(value) else int(value)
            since_ms = None if math.isnan(since) else round(since * 1_000)
            found.append(ComparisonVerdict(*names, verdict, since_ms, last_ms, utility=utility))
        return found

    def estimators(self) -> dict[str, str]:
        """Describe each configured comparison, and the verdicts of each utility, by their fingerprints."""
        utilities = dict.fromkeys((UtilitySpec(), *self._spec.utilities)) if self._spec.comparisons else ()
        verdicts = {self._table.verdict_section(u): f"verdict of comparisons by {u.kind}" for u in utilities}
        if self._cohorts is not None and self._spec.comparisons:
            verdicts[self._cohorts.section] = self._cohorts.title
        return verdicts | {
            fingerprint("comparison", each, None, 0): f"comparison of {each.champion} with "
            f"{', '.join(each.challengers)}"
            for each in self._spec.comparisons
        }

    def snapshot(self) -> bytes:
        """Encode the whole state; equal states give equal bytes."""
        by_name = sorted(self._comparisons.items())
        rows = [each.row for _, each in by_name]
        further = repeat({}) if self._cohorts is None else self._cohorts.snapshots(rows)
        comparisons = [
            _ComparisonSnapshot(
                *pair, list(each.classes), self._table.snapshot(each.row, each.utility) | of_cohorts
            )
            for (pair, each), of_cohorts in zip(by_name, further, strict=False)
        ]
        return _ENCODER.encode(_Snapshot(self._spec.max_classes, self.over_limit, comparisons))

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before any pair was evaluated.

        Comparisons no longer configured are left out.

        Estimators whose parameters changed start empty. So do verdicts by the balanced utility if
        `max_classes` changed, as they count labels.

        Raises
        ------
        ValueError
            If it is not a snapshot of this version, or one of its sections is not.
        """
        state = _DECODER.decode(snapshot)
        self.over_limit = state.over_limit
        for kept in state.comparisons:
            comparison = self._enter(kept.champion, kept.challenger)
            if comparison is None or comparison.champion != kept.champion:
                continue
            sections = kept.sections
            if comparison.utility.kind == "balanced" and state.max_classes != self._spec.max_classes:
                sections = {name: body for name, body in sections.items() if not name.startswith("verdict/")}
            else:
                for name in kept.classes:
                    comparison.classes[name] = len(comparison.classes)
            self._table.restore(comparison.row, comparison.utility, sections)
            if self._cohorts is not None and (judged := sections.get(self._cohorts.section)) is not None:
                self._cohorts.restore(comparison.row, judged)

    def _enter(self, one: str, other: str) -> _Comparison | None:
        """Find or create the comparison of two models; None if it is not configured or there is no room."""
        champion = champion_of(self._spec.comparisons, one, other)
        if champion is None:
            return None
        challenger = other if champion == one else one
        comparison = self._comparisons.get((champion, challenger))
        if comparison is not None:
            return comparison
        if len(self._comparisons) >= self._spec.max_comparisons:
            return None
        utility = utility_of(self._spec, champion)
        row = self._table.add_row(balanced=utility.kind == "balanced")
        if self._cohorts is not None:
            self._cohorts.add(row, champion)
        costs = cost_table_of(utility) if utility.kind == "costs" else None
        comparison = _Comparison(champion, challenger, row, utility, costs, Classes(self._spec.max_classes))
        self._comparisons[champion, challenger] = comparison
        self._listed.append(comparison)
        if utility.kind != "accuracy":
            self._judged_otherwise.append(len(self._listed) - 1)
        return comparison

    def _list(self) -> None:
        """Number all comparisons anew, and forget known pairs: those refused before may now have room."""
        self._listed = list(self._comparisons.values())
        self._judged_otherwise = [
            number for number, each in enumerate(self._listed) if each.utility.kind != "accuracy"
        ]
        self._names = ()


def _by_class(
    names: Sequence[str], columns: Sequence[NDArray[np.int32]], index: Callable[[str], int]
) -> NDArray[np.int64]:
    """Return `index(name)` of each class in `columns`, by class number; 0 for classes not in them.

    `index` is called once per class, in the order in which classes appear in the rows of `columns`.
    """
    found = np.zeros(len(names), np.int64)
    for number in dict.fromkeys(np.stack(columns, axis=1).ravel().tolist()):
        found[number] = index(names[number])
    return found
