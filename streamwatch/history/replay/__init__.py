"""Replay: the daemon's evaluation of recordings, without Kafka."""
