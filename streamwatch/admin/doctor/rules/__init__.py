"""All rules, which files group by subject, and their application to the facts of a daemon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from streamwatch.admin.doctor.facts import MODEL, Facts, Finding
from streamwatch.admin.doctor.rules import labels, models, records

RULES = (
    labels.classes_disjoint,
    records.clock_behind,
    labels.delays_moved,
    models.detectors_silent,
    records.disk_low,
    records.diverged,
    models.early_hint_stands,
    records.evicted,
    records.held_back,
    labels.horizon_short,
    labels.labels_before_predictions,
    labels.labels_cut_off,
    labels.labels_missing,
    labels.labels_orphaned,
    labels.labels_sorted,
    models.labels_stopped,
    records.lag_grows,
    models.limits_reached,
    records.log_lost,
    records.not_durable,
    records.not_ready,
    labels.nothing_joins,
    records.out_of_order,
    models.persistent_wins,
    labels.predictions_repeated,
    models.predictions_stopped,
    records.records_misdated,
    models.segments_full,
    models.times_misread,
    records.undecodable,
    records.undelivered,
    models.verdicts_far,
    models.verdicts_left_out,
)
"""All rules, functions that yield their findings from facts, in alphabetical order."""


def examine(facts: Facts) -> Sequence[Finding]:
    """Apply all rules; return their findings, the most important first."""
    found = [replace(finding, rule=rule.__name__) for rule in RULES for finding in rule(facts)]
    return sorted(found, key=lambda finding: finding.weight)


ALIKE: Final = 4
"""Least number of models with the same finding that are shown as one finding."""
NAMED: Final = 8
"""Most further models that such a finding names; the rest are counted."""


def grouped(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Merge findings of one rule with the same cause and change about `ALIKE` models or more into one.

    The merged finding has the observation of the first model and names the others.
    """
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        key = (finding.rule, finding.cause, finding.change) if finding.subject.startswith(MODEL) else None
        alike.setdefault(key or (finding.rule, finding.subject, finding.observation), []).append(finding)
    shown: list[Finding] = []
    for of_one_kind in alike.values():
        if len(of_one_kind) < ALIKE or not of_one_kind[0].subject.startswith(MODEL):
            shown += of_one_kind
        else:
            shown.append(_as_one(of_one_kind))
    return sorted(shown, key=lambda finding: finding.weight)


def _as_one(findings: Sequence[Finding]) -> Finding:
    first, *others = findings
    named = ", ".join(other.subject.removeprefix(MODEL) for other in others[:NAMED])
    more = f" and {len(others) - NAMED:,} more" if len(others) > NAMED else ""
    return replace(
        first, observation=f"{first.observation}; the same of {len(others):,} others: {named}{more}"
    )
