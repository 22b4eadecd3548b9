"""Rules about the daemon itself: its disk, its state, its receivers."""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.admin.doctor.facts import Facts, Finding, Rule, Weight

# Reading waits for free disk space.


def _disk_low(facts: Facts) -> Iterator[Finding]:
    if facts.now.value("state_disk_low"):
        size = facts.now.total("state_bytes")
        yield Finding(
            Weight.NOTHING_WORKS,
            "disk",
            f"is nearly full, so reading is paused (the state takes {size / 1e6:,.0f} MB)",
            "the free space is below state.min_free_megabytes",
            "free some space, give the state a larger disk, or lower join.horizon and join.max_pending",
        )


DISK_LOW = Rule("disk_low", _disk_low)


# The state does not survive a restart.


def _not_durable(facts: Facts) -> Iterator[Finding]:
    if facts.now.value("state_durable") == 0 and not facts.reasons:
        yield Finding(
            Weight.AT_RISK,
            "state",
            "is not durable: a restart reads the topics again from kafka.start_from",
            "state.kind is memory; what retention has deleted by then is lost",
            "state: {kind: rocksdb, directory: …}",
        )


NOT_DURABLE = Rule("not_durable", _not_durable)


# The daemon is not ready.


def _not_ready(facts: Facts) -> Iterator[Finding]:
    if facts.reasons:
        # `kafka_up` is also 0 while state is opened and estimators are compiled, before brokers are asked.
        if facts.now.value("kafka_up") == 0 and any("Kafka" in reason for reason in facts.reasons):
            cause = "the brokers do not answer, or refuse this user"
            change = (
                "streamwatch check shows what the brokers answer; kafka.bootstrap_servers, kafka.security"
            )
        elif facts.now.value("schema_registry_up") == 0:
            cause = "the schema registry cannot be reached, refuses this user, or has an error for one schema"
            change = (
                "repair the registry, schema_registry.url or its credentials; a schema that it cannot return "
                "is repaired or deleted there: then records that name it are invalid, and others go on"
            )
        else:
            cause, change = (
                "it is starting, recovering or waiting",
                "wait; if it lasts, the log gives the reason",
            )
        yield Finding(
            Weight.NOTHING_WORKS, "daemon", f"is not ready: {'; '.join(facts.reasons)}", cause, change
        )


NOT_READY = Rule("not_ready", _not_ready)


# Notifications do not reach a receiver, or there is none.


def _undelivered(facts: Facts) -> Iterator[Finding]:
    now = facts.now
    receivers = now.by("notifications_failed_total", "receiver") | now.by(
        "notifications_dropped_total", "receiver"
    )
    for receiver in receivers:
        dropped = now.total("notifications_dropped_total", receiver=receiver)
        waiting = now.total("notifications_pending", receiver=receiver)
        failed = now.by("notifications_failed_total", "reason", receiver=receiver)
        if not dropped and not (waiting and any(failed.values())):
            continue
        reason = max(failed, key=lambda name: failed[name], default="unknown")
        yield Finding(
            Weight.INCOMPLETE,
            f"receiver {receiver}",
            f"{dropped:,.0f} notifications given up, {waiting:,.0f} wait; most attempts fail with {reason}",
            "the endpoint refuses them or cannot be reached",
            f"streamwatch alerts test --receiver {receiver} shows the answer; then correct alerts.receivers",
        )
    if facts.configured is not None and not facts.configured.has_receivers and now.total("alarms_total"):
        yield Finding(
            Weight.WORTH_KNOWING,
            "alerts.receivers",
            f"is empty: {now.total('alarms_total'):,.0f} alarms were sent to nobody",
            "alarms appear only on the page and in /metrics",
            "alerts: {receivers: [{name: …, type: slack, url_file: …}]}, or the rules in deploy/prometheus",
        )


UNDELIVERED = Rule("undelivered", _undelivered)
