"""What is read: thin and fat messages, few and many models, labels soon and late, partitions, compression;
and under which settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
    predictions_per_second: float = 3_000.0
    """Of record time, of all models together. As many predictions wait as come within the delay."""
    compression: str = "none"
    batch_bytes: int = 16_384
    """What a producer sends to a partition at a time; most do by default."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the daemon, beside those that all scenarios share. With any, only the bare loop is run beside it."""
    payload: str = "plain"
    """Make of the messages, of `payloads.PAYLOADS`. Only the bare loop, which decodes it too, is run beside
    the daemon with any other."""
    messages: int = 1_000_000
    """About. What is done once in each process, 0.05 s of CPU in the daemon's, must not count for much."""


BASE = Scenario("thin", "thin (85 B), 3 models an id, labels 30 s later, 4 partitions")
SCENARIOS = (
    BASE,
    Scenario("fat", "fat (1 kB)", value_bytes=1_000, messages=500_000),
    Scenario("hundred", "100 models an id", models=100),
    Scenario(
        "many",
        "500 models an id, 20 classes, 64 partitions",
        models=500,
        partitions=64,
        payload="twenty classes",
    ),
    Scenario(
        "crowded",
        "500 models an id, 20 classes, 64 partitions, nearly all predictions wait before their labels come",
        models=500,
        partitions=64,
        predictions_per_second=500_000.0,
        payload="twenty classes",
    ),
    Scenario("classes", "1,000 classes", payload="thousand classes", messages=500_000),
    Scenario(
        "tenants",
        "10,000 models, three of them an id",
        payload="ten thousand models",
        settings={"monitors": {"max_models": 10_000, "max_series": 1_100_000}},
    ),
    Scenario("uuids", "ids are UUIDs", payload="uuids", messages=500_000),
    Scenario("numbers", "ids are numbers", payload="numbers", messages=500_000),
    Scenario("batches", "producers that send 1 MB at a time", batch_bytes=1_000_000),
    Scenario("late", "labels an hour later: all waits first", delay_seconds=3_600.0),
    Scenario("one", "1 partition", partitions=1),
    Scenario("thirty-two", "32 partitions", partitions=32),
    Scenario("zstd", "compressed by zstd", compression="zstd"),
    Scenario("six", "6 models an id", models=6),
    Scenario(
        "compared",
        "6 models an id, one champion compared with five challengers",
        models=6,
        settings={"monitors": {"comparisons": [{"champion": "stable-v1", "challengers": ["*"]}]}},
    ),
    Scenario("ordered", "in the order of predictions", settings={"join": {"order": "prediction_time"}}),
    Scenario(
        "both", "first and last predictions (`conflicts: both`)", settings={"join": {"conflicts": "both"}}
    ),
    Scenario(
        "everything",
        "everything on: 6 models an id, compared, scores of 3 classes, two segments, the order of"
        " predictions, `conflicts: both`",
        models=6,
        payload="scores and segments",
        settings={
            "monitors": {"comparisons": [{"champion": "stable-v1", "challengers": ["*"]}]},
            "join": {"order": "prediction_time", "conflicts": "both"},
        },
    ),
    Scenario(
        "folds",
        "10 folds of a model, each predicts every id",
        models=10,
        payload="folds",
        settings={"folds": {"scheme": "bootstrap", "k": 10}},
    ),
    Scenario("scores-3", "scores of 3 classes", payload="three scores", messages=500_000),
    Scenario("scores-100", "scores of 100 classes", payload="hundred scores", messages=100_000),
    Scenario("iso", "times in ISO 8601", payload="iso", messages=500_000),
    Scenario("avro", "Avro, beside fastavro", payload="avro", messages=500_000),
    Scenario(
        "segments",
        "two segments, of 20 and 3 values",
        payload="segments",
        messages=500_000,
    ),
    Scenario("array", "three models in one record", payload="array", messages=500_000),
)
