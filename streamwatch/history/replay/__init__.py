"""The daemon over recorded events, without Kafka."""
