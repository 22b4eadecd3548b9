"""A partition keeps everything else waiting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight

PATIENCE_SECONDS: Final = 30.0


def _find(facts: Facts) -> Iterator[Finding]:
    held = facts.now.total("merge_held_records")
    for (name, labels), seconds in sorted(facts.now.samples.items(), key=lambda sample: -sample[1]):
        if name == "merge_hold_seconds" and seconds > PATIENCE_SECONDS:
            place = dict(labels)
            yield Finding(
                Weight.NOTHING_WORKS,
                f"partition {place['partition']} of {place['topic']}",
                f"has held {held:,.0f} records back for {seconds:,.0f} s",
                "records are evaluated in order of time, and the next record of this partition is unknown: "
                "its broker does not answer, a transaction is open, or it is still being read",
                "check the leader and the producers of the partition; time.max_hold_back bounds the wait",
            )
            return


RULE = Rule("held_back", _find)
