"""Every rule there is, by what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamwatch.admin.doctor.facts import Facts, Finding
from streamwatch.admin.doctor.rules import labels, models, records, running

RULES = (
    labels.CLASSES_DISJOINT,
    records.CLOCK_BEHIND,
    models.DETECTORS_SILENT,
    running.DISK_LOW,
    models.EARLY_HINT_STANDS,
    records.EVICTED,
    records.HELD_BACK,
    labels.HORIZON_SHORT,
    labels.LABELS_CUT_OFF,
    labels.LABELS_MISSING,
    labels.LABELS_ORPHANED,
    labels.LABELS_SORTED,
    records.LAG_GROWS,
    models.LIMITS_REACHED,
    records.LOG_LOST,
    running.NOT_DURABLE,
    running.NOT_READY,
    labels.NOTHING_JOINS,
    records.OUT_OF_ORDER,
    models.PERSISTENT_WINS,
    labels.PREDICTIONS_REPEATED,
    models.SEGMENTS_FULL,
    records.UNDECODABLE,
    running.UNDELIVERED,
)
"""In alphabetical order; findings are ordered by their weight."""


# Applies every rule to what is known of a daemon.


def examine(facts: Facts) -> Sequence[Finding]:
    """Findings of all rules, the most important first; empty where nothing was found."""
    found = [replace(finding, rule=rule.name) for rule in RULES for finding in rule.find(facts)]
    return sorted(found, key=lambda finding: finding.weight)
