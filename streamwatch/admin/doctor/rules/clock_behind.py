"""The host's clock is behind, or timestamps of records are not believed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight

CORRECTED_SHARE: Final = 0.01


def _find(facts: Facts) -> Iterator[Finding]:
    if facts.now.value("host_clock_behind"):
        yield Finding(
            Weight.INCOMPLETE,
            "this host's clock",
            "is behind: most records have later times",
            "the clock of the machine that runs streamwatch is wrong",
            "synchronise it with a time service (chrony, systemd-timesyncd)",
        )
    corrected = facts.now.by("timestamps_corrected_total", "reason")
    read = facts.now.total("records_evaluated_total")
    count = sum(corrected.values())
    if read and count > CORRECTED_SHARE * read:
        yield Finding(
            Weight.INCOMPLETE,
            "timestamps",
            f"of {count:,.0f} records ({count / read:.1%}) were not believed: {', '.join(corrected)}",
            "a producer sets record times that are far ahead, or none at all",
            "set message.timestamp.type=LogAppendTime on the topic, or correct the producer's clock",
        )


RULE = Rule("clock_behind", _find)
