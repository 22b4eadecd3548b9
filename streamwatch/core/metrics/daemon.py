"""Series of the daemon: Kafka, schemas, dead letters, internal events."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

DAEMON: Final = (
    gauge("build_info", "Version of the running program, as a label. The value is always 1.", "version"),
    gauge("kafka_up", "1 while the brokers answer, else 0."),
    gauge("ready", "1 when the state is open and partitions are assigned, else 0."),
    gauge("caught_up", "1 when every partition has been read to its end, else 0."),
    gauge("state_durable", "1 if the state survives a restart, else 0."),
    gauge("state_disk_low", "1 while reading is paused because the disk is nearly full, else 0."),
    gauge(
        "consumer_lag_records",
        "Records of a partition that are not read yet: its high watermark minus the position.",
        "partition",
        "topic",
    ),
    counter(
        "kafka_data_loss_total",
        "Times that records in Kafka were found deleted, replaced or unreadable, by cause.",
        "cause",
    ),
    counter(
        "kafka_records_lost_total", "Records lost in Kafka, by cause, if their number is known.", "cause"
    ),
    counter(
        "kafka_position_unverified_total",
        "Times that the log could not be verified, because the remembered record is no longer in it.",
    ),
    gauge(
        "schema_registry_up",
        "0 while records wait for the schema registry, else 1. Only exported if a registry is set.",
    ),
    gauge("schemas_cached", "Cached schemas, including names that the registry did not know."),
    counter(
        "dead_letters_written_total",
        "Invalid records written to kafka.dead_letter_topic since the start, stubs included.",
    ),
    counter(
        "dead_letter_stubs_total",
        "Dead letters written without key, value and headers of the record since the start, by reason: it was"
        " read without them, or brokers refused it with them.",
        "reason",
    ),
    counter(
        "dead_letters_dropped_total",
        "Invalid records that could not be written to kafka.dead_letter_topic since the start, by reason.",
        "reason",
    ),
    gauge(
        "series_dropped",
        "Series left out of this response to stay within monitors.max_series, by part of a model's "
        "series: rare classes go first, then rare values of segments, further forgettings, and others. "
        "The API has all.",
        "part",
    ),
    counter(
        "internal_events_total",
        "Internal events by name. Each is also a line in the log; frequent ones are sampled.",
        "event",
    ),
)
