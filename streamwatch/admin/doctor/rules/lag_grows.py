"""Reading does not keep up with writing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight

LEAST_RECORDS: Final = 1_000


def _find(facts: Facts) -> Iterator[Finding]:
    lag, before = (reading.total("consumer_lag_records") for reading in (facts.now, facts.before))
    if not facts.seconds or not facts.before.samples or lag < LEAST_RECORDS or lag <= before:
        return
    worst = max(
        facts.now.by("consumer_lag_records", "topic").items(), key=lambda pair: pair[1], default=("", 0.0)
    )
    rate = (
        facts.now.total("records_evaluated_total") - facts.before.total("records_evaluated_total")
    ) / facts.seconds
    yield Finding(
        Weight.AT_RISK,
        "lag",
        f"grew by {lag - before:,.0f} records in {facts.seconds:.0f} s and is {lag:,.0f}, mostly on "
        f"{worst[0]} ({rate:,.0f} records evaluated per second)",
        "more is written than one process evaluates, or something holds it back",
        "observe it for a minute (--seconds 60); then give the daemon a processor of its own, or use fewer "
        "monitors.forgetting",
    )


RULE = Rule("lag_grows", _find)
