"""Rules about records, the host's clock, and the daemon itself: its disk, its state, its receivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from streamwatch.admin.doctor.facts import Facts, Finding, Weight
from streamwatch.edge.decoders.mapping import REASONS
from streamwatch.inspection.streams import are_misread

LEAST: Final = 0.001
"""Share of invalid records from which it is reported."""
MOST: Final = 0.2
"""Share from which the numbers of the topic may mean nothing."""
CURES: Final[Mapping[str, str]] = {
    "schema_registry_framing": "the topic is not plain JSON: use the format of its schema registry",
    "missing_id": "mapping: id: <where the id is>",
    "missing_model": "mapping: model: <where the model is>, or a constant: model: =name",
    "missing_prediction": "mapping: prediction: <where the class is>",
    "missing_label": "mapping: label: <where the class is>",
    "invalid_timestamp": "mapping: timestamp_unit: s, ms, us, ns or iso8601, or timestamp: null",
    "invalid_scores": "mapping: scores: null, or where an object of class → probability is",
    "invalid_label_probability": "mapping: min_label_probability: <the smallest probability>, at most 1",
    "invalid_label_requested": "mapping: label_requested: null, or where true or false is",
    "unknown_kind": "mapping: kind: {field: …, prediction: …, label: …}",
    "fold_without_scheme": "mapping: fold: null, or folds: {scheme: …}",
    "record_too_large": "kafka.max_record_bytes",
}
"""Setting to change, by reason of rejection."""


def undecodable(facts: Facts) -> Iterator[Finding]:
    """Records of a topic are invalid."""
    read = facts.now.by("records_evaluated_total", "topic")
    for topic, invalid in facts.now.by("records_invalid_total", "topic").items():
        share = invalid / max(read.get(topic, 0.0), invalid) if invalid else 0.0
        if share < LEAST:
            continue
        reasons = facts.now.by("records_invalid_total", "reason", topic=topic)
        reason = max(reasons, key=lambda name: reasons[name])
        sampled = facts.topics.get(topic)
        where = f", such as {sampled.invalid[reason]}" if sampled and reason in sampled.invalid else ""
        yield Finding(
            Weight.NOTHING_TRUE if share >= MOST else Weight.INCOMPLETE,
            f"topic {topic}",
            f"has {share:.1%} invalid records ({invalid:,.0f}), mostly {reason}{where}",
            f"{reason}: {REASONS.get(reason, 'breaks a rule')}",
            CURES.get(
                reason,
                "streamwatch inspect shows what its records look like; kafka.dead_letter_topic keeps them",
            ),
        )


LEAST_EVALUATED: Final = 0.01
"""Share of records out of order from which it is reported."""


LONGEST_SETTLE: Final = 600.0
"""Greatest mean lateness in seconds for which a longer `time.settle` is advised."""


def out_of_order(facts: Facts) -> Iterator[Finding]:
    """Records arrive after later ones were evaluated."""
    read = facts.now.by("records_evaluated_total", "topic")
    corrected = facts.now.total("timestamps_corrected_total")
    for topic, count in facts.now.by("records_out_of_order_total", "topic").items():
        if not read.get(topic) or count < LEAST_EVALUATED * read[topic]:
            continue
        late = facts.now.total("records_lateness_seconds_total", topic=topic) / count
        if late > LONGEST_SETTLE:
            cause = "the clocks of producers differ by so much, or one sets times in another unit"
            change = "the producer's clock, or message.timestamp.type=LogAppendTime on the topic"
        elif corrected >= count:
            cause = "records whose timestamps are not believed count as of the last time that was believed"
            change = (
                "the producer's clock, or message.timestamp.type=LogAppendTime; time.settle does not help"
            )
        else:
            cause = "the clocks of producers differ, or records become visible later than time.settle"
            settle = f"{max(2, round(2 * late))}s"
            change = f"time: {{settle: {settle}}}, so that live numbers equal those of a replay"
        yield Finding(
            Weight.INCOMPLETE,
            f"topic {topic}",
            f"has {count / read[topic]:.1%} of its records out of order, {late:,.1f} s late on average",
            cause,
            change,
        )


def records_misdated(facts: Facts) -> Iterator[Finding]:
    """Kafka's timestamps of a topic are seconds, where milliseconds are expected."""
    topics = {
        dict(labels)["topic"]: seconds
        for (name, labels), seconds in facts.now.samples.items()
        if name == "watermark_timestamp_seconds" and are_misread([round(1_000 * seconds)])
    }
    for topic, seconds in sorted(topics.items()):
        yield Finding(
            Weight.NOTHING_TRUE,
            f"topic {topic}",
            f"is of {datetime.fromtimestamp(seconds, UTC):%B %Y}, by Kafka's timestamps of its records",
            "what writes it sets these in seconds, where Kafka has milliseconds: its predictions expire as "
            "soon as a record of another topic is evaluated",
            "let it set milliseconds, or message.timestamp.type=LogAppendTime on the topic; then start over",
        )


CORRECTED_SHARE: Final = 0.01
"""Share of corrected timestamps from which it is reported."""


def clock_behind(facts: Facts) -> Iterator[Finding]:
    """The host's clock is behind, or timestamps of records were corrected."""
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


_OF_STATE: Final[Mapping[str, tuple[str, str]]] = {
    "group_shared": (
        "is used by somebody else at the same time: another daemon, or a consumer that subscribes",
        "give each a kafka.group_id of its own; the log names the other state",
    ),
    "state_lost": (
        "was last used by another state, and this one was empty when the daemon started",
        "put that state's directory back, or choose a kafka.group_id that no other daemon uses",
    ),
    "state_replaced": (
        "was last used by another state",
        "put that state's directory back, or choose a kafka.group_id that no other daemon uses",
    ),
    "state_restored": (
        "was last used at a later commit of this state",
        "put the newer state directory back; what it had counted since is counted anew from the topics",
    ),
}
"""Observation and change, for causes of data loss that are about the consumer group and the state."""


OF_LOG: Final[Mapping[str, tuple[str, str]]] = {
    "retention": (
        "retention deleted records before they were read",
        "a longer retention.ms, or fewer and shorter pauses",
    ),
    "truncation": (
        "a partition got a leader that lacked the newest records",
        "unclean.leader.election.enable=false, and min.insync.replicas of at least 2 with acks=all",
    ),
    "recreated": ("a topic was deleted and created again", "nothing, if that was intended"),
    "partition_vanished": (
        "a topic was created again with fewer partitions",
        "nothing, if that was intended",
    ),
    "corrupt_batch": (
        "a batch in the log is damaged, or its broker cannot read it",
        "check the disk of the partition's leader",
    ),
    "oversized_batch": (
        "a batch is larger than kafka.max_batch_bytes",
        "kafka.max_batch_bytes, if there is memory for it",
    ),
}
"""Cause and change, for causes of data loss that are about the log."""
_UNKNOWN: Final = ("records are no longer in the log as they were", "look for it in Kafka's logs")


def _times(count: float) -> str:
    return "once" if count == 1 else f"{count:,.0f} times"


def log_lost(facts: Facts) -> Iterator[Finding]:
    """Records were lost, or the consumer group was used by another state."""
    found = facts.now.by("kafka_data_loss_total", "cause")
    losses = {cause: count for cause, count in found.items() if count}
    for cause, (what, remedy) in _OF_STATE.items():
        if cause not in losses:
            continue
        counted = f"{cause}, {_times(losses.pop(cause))}"
        cause_of_loss = "the offsets committed to the group name another state, or are refused"
        yield Finding(Weight.AT_RISK, "kafka.group_id", f"{what} ({counted})", cause_of_loss, remedy)
    if not losses:
        return
    numbers = facts.now.by("kafka_records_lost_total", "cause")
    known_to_be_lost = sum(numbers.get(cause, 0) for cause in losses)
    unknown = [cause for cause in losses if not numbers.get(cause)]
    lost = (
        f"{known_to_be_lost:,.0f} are known to be lost" if known_to_be_lost else "their number is not known"
    )
    if known_to_be_lost and unknown:
        lost += f", without those of {', '.join(unknown)}"
    times = ", ".join(f"{cause} {_times(count)}" for cause, count in losses.items())
    known = [OF_LOG.get(cause, _UNKNOWN) for cause in losses]
    yield Finding(
        Weight.INCOMPLETE,
        "Kafka",
        f"lost records before they were read: {times}; {lost}",
        "; ".join(dict.fromkeys(cause for cause, _ in known)),
        "; ".join(dict.fromkeys([*(change for _, change in known), "the log names topic and offset"])),
    )


PATIENCE_SECONDS: Final = 30.0
"""Duration from which it is reported."""


def held_back(facts: Facts) -> Iterator[Finding]:
    """A partition holds back the records of all others."""
    held = facts.now.total("merge_held_records")
    for (name, labels), seconds in sorted(facts.now.samples.items(), key=lambda sample: -sample[1]):
        if name == "merge_hold_seconds" and seconds > PATIENCE_SECONDS:
            partition = dict(labels)
            yield Finding(
                Weight.NOTHING_WORKS,
                f"partition {partition['partition']} of {partition['topic']}",
                f"has held {held:,.0f} records back for {seconds:,.0f} s",
                "records are evaluated in order of time, and the next record of this partition is unknown: "
                "its broker does not answer, a transaction is open, or it is still being read",
                "check the leader and the producers of the partition; time.max_hold_back bounds the wait",
            )
            return


LEAST_RECORDS: Final = 1_000
"""Lag in records from which it is reported."""


def lag_grows(facts: Facts) -> Iterator[Finding]:
    """Lag grows."""
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


LIMITS: Final[Mapping[str, str]] = {
    "predictions_evicted_total": "max_pending",
    "labels_evicted_total": "max_labels",
    "dedup_entries_evicted_total": "max_dedup_entries",
}
"""Setting of the section `join` by metric."""


def evicted(facts: Facts) -> Iterator[Finding]:
    """Predictions, labels or dedup entries are evicted because there are too many."""
    for name, limit in LIMITS.items():
        if count := facts.now.total(name):
            yield Finding(
                Weight.INCOMPLETE,
                f"join.{limit}",
                f"is reached: {count:,.0f} of the oldest were evicted",
                "more entries wait than the limit allows: labels are slower or rarer than expected",
                f"join: {{{limit}: …}} (streamwatch check computes the cost), or a shorter join.horizon",
            )


# Rules about the daemon itself: its disk, its state, its receivers.


def disk_low(facts: Facts) -> Iterator[Finding]:
    """Reading waits for free disk space."""
    if facts.now.value("state_disk_low"):
        size = facts.now.total("state_bytes")
        yield Finding(
            Weight.NOTHING_WORKS,
            "disk",
            f"is nearly full, so reading is paused (the state takes {size / 1e6:,.0f} MB)",
            "the free space is below state.min_free_megabytes",
            "free some space, give the state a larger disk, or lower join.horizon and join.max_pending",
        )


def not_durable(facts: Facts) -> Iterator[Finding]:
    """The state does not survive a restart."""
    if facts.now.value("state_durable") == 0 and not facts.reasons:
        yield Finding(
            Weight.AT_RISK,
            "state",
            "is not durable: a restart reads the topics again from kafka.start_from",
            "state.kind is memory; what retention has deleted by then is lost",
            "state: {kind: rocksdb, directory: …}",
        )


def not_ready(facts: Facts) -> Iterator[Finding]:
    """The daemon is not ready."""
    if facts.reasons and not facts.now.value("standby_diverged"):  # else `diverged` says so
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


MOST_WAITING_MB: Final = 64
"""Results that may wait in a replica, beyond which it stops reading (`daemon.publisher.MOST_BYTES`)."""


def diverged(facts: Facts) -> Iterator[Finding]:
    """A replica's numbers are not the holder's."""
    if facts.now.value("standby_diverged"):
        waiting = facts.now.total("publishing_waiting_bytes")
        why = "; ".join(facts.reasons) or "its outcomes or alarms are not the holder's"
        yield Finding(
            Weight.NOTHING_WORKS,
            "replica",
            f"{why} ({waiting / 2**20:,.0f} MB of results wait in it)",
            "records were out of order, were lost, or were read under other settings than the holder's",
            "copy the holder's state to it (docs/how-to/standby.md, Copy a state): it takes over from nobody "
            f"and stops reading once {MOST_WAITING_MB} MB wait",
        )


def undelivered(facts: Facts) -> Iterator[Finding]:
    """Notifications do not reach a receiver, or there is none."""
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
