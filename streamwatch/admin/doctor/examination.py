"""Applies every rule to what is known of a daemon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding
from streamwatch.admin.doctor.rules import RULES


def examine(facts: Facts) -> Sequence[Finding]:
    """Findings of all rules, the most important first; empty where nothing was found."""
    found = [replace(finding, rule=rule.name) for rule in RULES for finding in rule.find(facts)]
    return sorted(found, key=lambda finding: finding.weight)
