"""The daemon is not ready."""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight


def _find(facts: Facts) -> Iterator[Finding]:
    if facts.reasons:
        # Before it reads, brokers were not asked: state is opened and estimators are compiled first.
        kafka = facts.now.value("kafka_up") == 0 and any("Kafka" in reason for reason in facts.reasons)
        yield Finding(
            Weight.NOTHING_WORKS,
            "daemon",
            f"is not ready: {'; '.join(facts.reasons)}",
            "the brokers do not answer, or refuse this user"
            if kafka
            else "it is starting, recovering or waiting",
            "streamwatch check shows what the brokers answer; kafka.bootstrap_servers, kafka.security"
            if kafka
            else "wait; if it lasts, the log gives the reason",
        )


RULE = Rule("not_ready", _find)
