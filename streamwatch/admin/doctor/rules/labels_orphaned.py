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
            f"{orphaned / accepted:.1%} of them met no prediction ({orphaned:,.0f} of {accepted:,.0f})",
            "some predictions are on no topic that is read, or part of the ids is written otherwise",
            "topics.predictions: list every topic that scores these ids; streamwatch inspect shows lone ids",
        )


RULE = Rule("labels_orphaned", _find)
