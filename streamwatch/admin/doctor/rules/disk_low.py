"""Reading waits for room on the disk."""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight


def _find(facts: Facts) -> Iterator[Finding]:
    if facts.now.value("state_disk_low"):
        size = facts.now.total("state_bytes")
        yield Finding(
            Weight.NOTHING_WORKS,
            "disk",
            f"is nearly full, so reading is paused (the state takes {size / 1e6:,.0f} MB)",
            "the free space is below state.min_free_megabytes",
            "free some space, give the state a larger disk, or lower join.horizon and join.max_pending",
        )


RULE = Rule("disk_low", _find)
