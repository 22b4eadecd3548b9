"""Many labels of a topic meet no prediction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight

MANY: Final = 0.1


def _find(facts: Facts) -> Iterator[Finding]:
    if not facts.now.total("labels_joined_total"):
        return
    by_topic = facts.now.by("topic_labels_total", "topic")
    for topic, accepted in by_topic.items():
        orphaned = facts.now.total("topic_label_results_total", topic=topic, result="orphaned")
        yield from _found(f"labels of {topic}", orphaned, accepted)
    if not by_topic:
        accepted = facts.now.total("labels_accepted_total")
        yield from _found("labels", facts.now.total("labels_orphaned_total"), accepted)


def _found(labels: str, orphaned: float, accepted: float) -> Iterator[Finding]:
    if accepted and orphaned > MANY * accepted:
        yield Finding(
            Weight.INCOMPLETE,
            labels,
            f"match no prediction in {orphaned / accepted:.1%} of cases ({orphaned:,.0f} of {accepted:,.0f})",
            "some predictions are on a topic that is not read, or some ids are written differently",
            "topics.predictions: list every topic that scores these ids; streamwatch inspect shows ids "
            "without a match",
        )


RULE = Rule("labels_orphaned", _find)
