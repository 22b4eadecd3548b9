"""Models predict ids again: two of them share a name, or ids are used again."""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight
from streamwatch.core.join.repeats import CAUSE, CHANGE, MANY


def _find(facts: Facts) -> Iterator[Finding]:
    revised = facts.configured is not None and facts.configured.conflicts != "first"
    found = [each for topic in facts.topics.values() for each in topic.repeats.many(revised=revised)]
    for each in found:
        yield Finding(
            Weight.NOTHING_TRUE, f"model {each.model}", f"{each.said} (newest records)", CAUSE, CHANGE
        )
    duplicates = facts.now.total("predictions_duplicate_total")
    conflicts = 0.0 if revised else facts.now.total("predictions_conflict_total")
    repeated = duplicates + conflicts
    count = facts.now.total("predictions_accepted_total") + repeated
    if not found and repeated > MANY * count:
        yield Finding(
            Weight.NOTHING_TRUE if conflicts > MANY * count else Weight.WORTH_KNOWING,
            "predictions",
            f"repeat an id and a model in {repeated / count:.1%} of cases ({repeated:,.0f} of {count:,.0f}; "
            f"{conflicts:,.0f} with another class): one of each counts",
            CAUSE,
            CHANGE,
        )


RULE = Rule("predictions_repeated", _find)
