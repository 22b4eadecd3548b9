"""Records come after later ones were evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight

LEAST: Final = 0.01


def _find(facts: Facts) -> Iterator[Finding]:
    read = facts.now.by("records_evaluated_total", "topic")
    for topic, count in facts.now.by("records_out_of_order_total", "topic").items():
        if not read.get(topic) or count < LEAST * read[topic]:
            continue
        late = facts.now.total("records_lateness_seconds_total", topic=topic) / count
        yield Finding(
            Weight.INCOMPLETE,
            f"topic {topic}",
            f"has {count / read[topic]:.1%} of its records out of order, {late:.1f} s late on average",
            "the clocks of producers differ, or records become visible later than time.settle",
            f"time: {{settle: {max(2, round(2 * late))}s}}, so that live numbers equal those of a replay",
        )


RULE = Rule("out_of_order", _find)
