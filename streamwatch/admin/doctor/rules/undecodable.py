"""Records of a topic cannot be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight
from streamwatch.edge.decoders.reasons import REASONS

LEAST: Final = 0.001
MOST: Final = 0.2
"""Share from which what is shown may mean nothing."""
CURES: Final[Mapping[str, str]] = {
    "schema_registry_framing": "the topic is not plain JSON: use the format of its schema registry",
    "missing_id": "mapping: id: <where the id is>",
    "missing_model": "mapping: model: <where the model is>, or a constant: model: =name",
    "missing_prediction": "mapping: prediction: <where the class is>",
    "missing_label": "mapping: label: <where the class is>",
    "invalid_timestamp": "mapping: timestamp_unit: s, ms, us, ns or iso8601, or timestamp: null",
    "invalid_scores": "mapping: scores: null, or where an object of class → probability is",
    "unknown_kind": "mapping: kind: {field: …, prediction: …, label: …}",
    "fold_without_scheme": "mapping: fold: null, or folds: {scheme: …}",
    "record_too_large": "kafka.max_record_bytes",
}


def _find(facts: Facts) -> Iterator[Finding]:
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
            f"a record {REASONS.get(reason, 'breaks a rule')}",
            CURES.get(
                reason,
                "streamwatch inspect shows what its records look like; kafka.dead_letter_topic keeps them",
            ),
        )


RULE = Rule("undecodable", _find)
