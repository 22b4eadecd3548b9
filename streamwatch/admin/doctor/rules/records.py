"""Rules about records: invalid, out of order, lost, evicted or waiting, and about the host's clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from streamwatch.admin.doctor.facts import Facts, Finding, Rule, Weight
from streamwatch.edge.decoders.mapping import REASONS

# Records of a topic are invalid.


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


def _undecodable(facts: Facts) -> Iterator[Finding]:
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


UNDECODABLE = Rule("undecodable", _undecodable)


# Records arrive after later ones were evaluated.


LEAST_EVALUATED: Final = 0.01
"""Share of records out of order from which it is reported."""


def _out_of_order(facts: Facts) -> Iterator[Finding]:
    read = facts.now.by("records_evaluated_total", "topic")
    for topic, count in facts.now.by("records_out_of_order_total", "topic").items():
        if not read.get(topic) or count < LEAST_EVALUATED * read[topic]:
            continue
        late = facts.now.total("records_lateness_seconds_total", topic=topic) / count
        yield Finding(
            Weight.INCOMPLETE,
            f"topic {topic}",
            f"has {count / read[topic]:.1%} of its records out of order, {late:.1f} s late on average",
            "the clocks of producers differ, or records become visible later than time.settle",
            f"time: {{settle: {max(2, round(2 * late))}s}}, so that live numbers equal those of a replay",
        )


OUT_OF_ORDER = Rule("out_of_order", _out_of_order)


# The host's clock is behind, or timestamps of records were corrected.


CORRECTED_SHARE: Final = 0.01
"""Share of corrected timestamps from which it is reported."""


def _clock_behind(facts: Facts) -> Iterator[Finding]:
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


CLOCK_BEHIND = Rule("clock_behind", _clock_behind)


# Records were lost, or the consumer group was used by another state.


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


def _log_lost(facts: Facts) -> Iterator[Finding]:
    found = facts.now.by("kafka_data_loss_total", "cause")
    losses = {cause: count for cause, count in found.items() if count}
    for cause in losses.keys() & _OF_STATE.keys():
        what, remedy = _OF_STATE[cause]
        times = losses.pop(cause)
        counted = f"{cause}, {'once' if times == 1 else f'{times:,.0f} times'}"
        cause_of_loss = "the offsets committed to the group name another state, or are refused"
        yield Finding(Weight.AT_RISK, "kafka.group_id", f"{what} ({counted})", cause_of_loss, remedy)
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


LOG_LOST = Rule("log_lost", _log_lost)


# A partition holds back the records of all others.


PATIENCE_SECONDS: Final = 30.0
"""Duration from which it is reported."""


def _held_back(facts: Facts) -> Iterator[Finding]:
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


HELD_BACK = Rule("held_back", _held_back)


# Lag grows.


LEAST_RECORDS: Final = 1_000
"""Lag in records from which it is reported."""


def _lag_grows(facts: Facts) -> Iterator[Finding]:
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


LAG_GROWS = Rule("lag_grows", _lag_grows)


# Predictions, labels or dedup entries are evicted because there are too many.


LIMITS: Final[Mapping[str, str]] = {
    "predictions_evicted_total": "max_pending",
    "labels_evicted_total": "max_labels",
    "dedup_entries_evicted_total": "max_dedup_entries",
}
"""Setting of the section `join` by metric."""


def _evicted(facts: Facts) -> Iterator[Finding]:
    for name, limit in LIMITS.items():
        if count := facts.now.total(name):
            yield Finding(
                Weight.INCOMPLETE,
                f"join.{limit}",
                f"is reached: {count:,.0f} of the oldest were evicted",
                "more entries wait than the limit allows: labels are slower or rarer than expected",
                f"join: {{{limit}: …}} (streamwatch check computes the cost), or a shorter join.horizon",
            )


EVICTED = Rule("evicted", _evicted)
