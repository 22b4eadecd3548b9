"""Series of the daemon: Kafka, schemas, dead letters, internal events."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

DAEMON: Final = (
    gauge("build_info", "Always 1; the label is the version that runs.", "version"),
    gauge("kafka_up", "1 while the brokers answer."),
    gauge("ready", "1 when state is open and partitions are assigned."),
    gauge("caught_up", "1 when every partition has been read to its end."),
    gauge("state_durable", "1 when state survives a restart."),
    gauge("state_disk_low", "1 while reading waits for room on the disk."),
    gauge(
        "consumer_lag_records",
        "Records of a partition not read yet: its high watermark minus the position.",
        "partition",
        "topic",
    ),
    counter("kafka_data_loss_total", "Times the log was found changed under the reader, by cause.", "cause"),
    counter(
        "kafka_records_lost_total", "Records lost thereby, by cause, where their number is known.", "cause"
    ),
    counter(
        "kafka_position_unverified_total",
        "Times the log could not be recognised, since the record remembered is no longer in it.",
    ),
    gauge("schema_registry_up", "1 unless records wait for a schema registry; only where one is set."),
    gauge("schemas_cached", "Schemas at hand, and names that the registry did not know."),
    counter(
        "dead_letters_written_total",
        "Invalid records written to kafka.dead_letter_topic since the start.",
    ),
    counter(
        "dead_letters_dropped_total",
        "Invalid records that kafka.dead_letter_topic did not take, since the start.",
        "reason",
    ),
    counter(
        "internal_events_total",
        "Internal events by name; each is also a line in the log (frequent ones sampled).",
        "event",
    ),
)
