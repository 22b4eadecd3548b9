"""The source for Apache Kafka, and for other brokers with its protocol."""

from __future__ import annotations

from streamwatch.edge.sources.kafka.checking import (
    KafkaUnreachable,
    Probed,
    list_topics,
    probe,
    probe_group,
    probe_writing,
)
from streamwatch.edge.sources.kafka.connection import TopicsMissing
from streamwatch.edge.sources.kafka.data_loss import LogLost, ReadingEnded
from streamwatch.edge.sources.kafka.refusals import ReadDenied, WriteDenied
from streamwatch.edge.sources.kafka.source import KafkaSource
from streamwatch.edge.sources.kafka.spec import Ago, At, KafkaSpec, Start, parse_start
from streamwatch.edge.sources.kind import SourceKind

__all__ = [
    "KIND",
    "Ago",
    "At",
    "KafkaSource",
    "KafkaSpec",
    "KafkaUnreachable",
    "LogLost",
    "Probed",
    "ReadDenied",
    "ReadingEnded",
    "Start",
    "TopicsMissing",
    "WriteDenied",
    "list_topics",
    "parse_start",
    "probe",
    "probe_group",
    "probe_writing",
]


KIND = SourceKind("kafka", KafkaSource, (TopicsMissing, ReadingEnded))
