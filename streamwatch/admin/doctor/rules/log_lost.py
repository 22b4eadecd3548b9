"""The log was found changed, and records were lost."""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight


def _find(facts: Facts) -> Iterator[Finding]:
    losses = {
        cause: count for cause, count in facts.now.by("kafka_data_loss_total", "cause").items() if count
    }
    if not losses:
        return
    lost = facts.now.total("kafka_records_lost_total")
    times = ", ".join(f"{cause} {count:,.0f} times" for cause, count in losses.items())
    yield Finding(
        Weight.INCOMPLETE,
        "Kafka",
        f"lost records before they were read: {times}; {lost:,.0f} are known to be lost",
        "retention deleted records before they were read, or a topic was deleted and created again",
        "a longer retention.ms, or fewer and shorter pauses; the log names topic, partition and offset",
    )


RULE = Rule("log_lost", _find)
