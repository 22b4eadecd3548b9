"""State does not survive a restart."""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight


def _find(facts: Facts) -> Iterator[Finding]:
    if facts.now.value("state_durable") == 0 and not facts.reasons:
        yield Finding(
            Weight.AT_RISK,
            "state",
            "is not durable: a restart reads the topics again from kafka.start_from",
            "state.kind is memory; what retention has deleted by then is lost",
            "state: {kind: rocksdb, directory: …}",
        )


RULE = Rule("not_durable", _find)
