"""Set of comparisons by model names: takes outcomes with partners, returns series."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgspec
import numpy as np

from streamwatch.core.estimators.comparisons.report import TRACED, report, trace_columns, traced
from streamwatch.core.estimators.comparisons.state import CHALLENGER_WRONG, CHAMPION_WRONG
from streamwatch.core.estimators.comparisons.table import ComparisonTable
from streamwatch.core.estimators.fingerprints import fingerprint
from streamwatch.core.estimators.models.index import utility_of
from streamwatch.core.estimators.names import Classes
from streamwatch.core.estimators.trace_chunk import Cell, TraceChunk
from streamwatch.core.estimators.verdicts.costs import CostTable, cost_table_of
from streamwatch.core.events import Outcome
from streamwatch.core.series import Family
from streamwatch.core.specs import MonitorsSpec, UtilitySpec, champion_of


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

    champion: str
    challenger: str
    classes: list[str]
    """Classes by local index, as counted for the balanced utility; empty under any other."""
    sections: dict[str, bytes]


class _Snapshot(msgspec.Struct, frozen=True):
    """Snapshot of all comparisons."""

    max_classes: int
    over_limit: int
    comparisons: list[_ComparisonSnapshot]
    """Sorted by name."""


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(_Snapshot)


def without(snapshot: bytes, sections: Collection[str]) -> bytes:
    """Leave these sections out of an encoded snapshot."""
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
        self._comparisons: dict[tuple[str, str], _Comparison] = {}
        self._found: dict[str, dict[str, _Comparison | None]] = {}
        """Comparison by the model of an outcome and its partner.

        None if there is no room or none is configured.
        """
        self.over_limit = 0
        """Number of pairs of outcomes left out because no further comparison was allowed."""

    def fold(self, outcomes: Iterable[Outcome]) -> None:
        """Evaluate the pairs of outcomes, in order."""
        rows: list[int] = []
        bits: list[int] = []
        leads: list[float] = []
        classes: list[int] = []
        event_ms: list[int] = []
        for outcome in outcomes:
            if outcome.pairs is None:
                continue
            model, true_class, own_class = outcome.model, outcome.true_class, outcome.predicted_class
            found = self._found.setdefault(model, {})
            own_wrong = own_class != true_class
            for partner, partner_class in outcome.pairs:
                try:
                    comparison = found[partner]
                except KeyError:
                    comparison = found[partner] = self._enter(model, partner)
                if comparison is None:
                    self.over_limit += 1
                    continue
                partner_wrong = partner_class != true_class
                leads_by = comparison.champion == partner
                champion_wrong, challenger_wrong = (
                    (partner_wrong, own_wrong) if leads_by else (own_wrong, partner_wrong)
                )
                rows.append(comparison.row)
                bits.append(CHAMPION_WRONG * champion_wrong | CHALLENGER_WRONG * challenger_wrong)
                if comparison.costs is None:
                    leads.append(float(champion_wrong - challenger_wrong))
                else:
                    champion, challenger = (
                        (partner_class, own_class) if leads_by else (own_class, partner_class)
                    )
                    leads.append(_lead_by_costs(comparison.costs, true_class, champion, challenger))
                counted = comparison.utility.kind == "balanced"
                classes.append(comparison.classes[true_class] if counted else 0)
                event_ms.append(outcome.event_ms)
        self._table.fold(
            np.array(rows, np.int64),
            np.array(bits, np.uint8),
            np.array(leads, np.float64),
            np.array(classes, np.int64),
            np.array(event_ms, np.int64),
        )

    def trace(self, outcomes: Iterable[Outcome]) -> TraceChunk:
        """Evaluate the pairs of outcomes as `fold` does, and return all values of the comparison after each.

        Columns are `champion,challenger,pair,y_true,champion_pred,challenger_pred`, then one per series,
        without the names of the models. Slow, as it evaluates one pair at a time.
        """
        rows: list[list[Cell]] = []
        for outcome in outcomes:
            for pair in outcome.pairs or ():
                self.fold([msgspec.structs.replace(outcome, pairs=(pair,))])
                comparison = self._found[outcome.model][pair.model]
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
                        *traced(row, self._table),
                    ]
                )
        return TraceChunk(TRACED + trace_columns(self._table), rows, [])

    def retire(self, model: str) -> bool:
        """End the comparisons of a model, and return whether there were any."""
        ended = [pair for pair in self._comparisons if model in pair]
        for pair in ended:
            self._table.remove(self._comparisons.pop(pair).row)
        if ended:
            self._found.clear()  # there is room now for pairs refused before
        else:
            self._found.pop(model, None)
            for found in self._found.values():
                found.pop(model, None)
        return bool(ended)

    def families(self) -> list[Family]:
        """Collect all series of all comparisons."""
        by_name = [comparison for _, comparison in sorted(self._comparisons.items())]
        pairs = [(comparison.challenger, comparison.champion) for comparison in by_name]
        return report(pairs, np.array([comparison.row for comparison in by_name], np.int64), self._table)

    def estimators(self) -> dict[str, str]:
        """Describe each configured comparison, and the verdicts of each utility, by their fingerprints."""
        utilities = dict.fromkeys((UtilitySpec(), *self._spec.utilities)) if self._spec.comparisons else ()
        verdicts = {self._table.verdict_section(u): f"verdict of comparisons by {u.kind}" for u in utilities}
        return verdicts | {
            fingerprint("comparison", each, None, 0): f"comparison of {each.champion} with "
            f"{', '.join(each.challengers)}"
            for each in self._spec.comparisons
        }

    def snapshot(self) -> bytes:
        """Encode the whole state; equal states give equal bytes."""
        return _ENCODER.encode(
            _Snapshot(
                self._spec.max_classes,
                self.over_limit,
                [
                    _ComparisonSnapshot(
                        *pair, list(each.classes), self._table.snapshot(each.row, each.utility)
                    )
                    for pair, each in sorted(self._comparisons.items())
                ],
            )
        )

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before any pair was evaluated.

        Comparisons no longer configured are left out.

        Estimators whose parameters changed start empty. So do verdicts by the balanced utility if
        `max_classes` changed, as they count labels.

        Raises
        ------
        msgspec.DecodeError
            If it is not a snapshot of this version.
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
        costs = cost_table_of(utility) if utility.kind == "costs" else None
        comparison = _Comparison(champion, challenger, row, utility, costs, Classes(self._spec.max_classes))
        self._comparisons[champion, challenger] = comparison
        return comparison


def _lead_by_costs(costs: CostTable, true_class: str, champion: str, challenger: str) -> float:
    """Utility of the challenger's answer minus that of the champion's."""
    row = costs.utilities[costs.index(true_class)]
    return float(row[costs.index(challenger)] - row[costs.index(champion)])
