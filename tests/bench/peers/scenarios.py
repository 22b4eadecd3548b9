"""What is read: thin and fat messages, few and many models, labels soon and late, partitions, compression."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scenario:
    """One pair of topics; every peer reads the same."""

    name: str
    title: str
    models: int = 3
    """Predictions of each id, of as many models."""
    partitions: int = 4
    """Of each topic."""
    value_bytes: int = 0
    """To which values are filled up; 0 leaves them as they are, about 85."""
    delay_seconds: float = 30.0
    """Median, of record time, after which labels come."""
    compression: str = "none"
    messages: int = 1_000_000
    """About. What is done once in each process, 0.05 s of CPU in the daemon's, must not count for much."""


BASE = Scenario("thin", "thin (85 B), 3 models an id, labels 30 s later, 4 partitions")
SCENARIOS = (
    BASE,
    Scenario("fat", "fat (1 kB)", value_bytes=1_000, messages=500_000),
    Scenario("hundred", "100 models an id", models=100),
    Scenario("late", "labels an hour later: all waits first", delay_seconds=3_600.0),
    Scenario("one", "1 partition", partitions=1),
    Scenario("thirty-two", "32 partitions", partitions=32),
    Scenario("zstd", "compressed by zstd", compression="zstd"),
)
