"""Many labels meet no prediction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight

MANY: Final = 0.1


def _find(facts: Facts) -> Iterator[Finding]:
    orphaned = facts.now.total("labels_orphaned_total")
    accepted = facts.now.total("labels_accepted_total")
    joined = facts.now.total("labels_joined_total")
    if joined and accepted and orphaned > MANY * accepted:
        yield Finding(
            Weight.INCOMPLETE,
            "labels",
            f"{orphaned / accepted:.1%} of them met no prediction ({orphaned:,.0f} of {accepted:,.0f})",
            "some predictions are on no topic that is read, or part of the ids is written otherwise",
            "topics.predictions: list every topic that scores these ids; streamwatch inspect shows lone ids",
        )


RULE = Rule("labels_orphaned", _find)
