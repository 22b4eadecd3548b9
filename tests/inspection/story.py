"""Predictions and labels as a company might shape them, with the mapping that a person would write."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from streamwatch.history.recordings.lines import LineRecord

START_MS = 1_764_000_000_000
HOUR = 3_600_000


@dataclass(frozen=True)
class Item:
    """One request of a story: what was predicted, what became of it, and when."""

    number: int
    made_ms: int
    labelled_ms: int
    predicted: str
    true: str
    score: float
    """Of the predicted class."""
    user: str
    uuid: str
    amount: float
    country: str


@dataclass
class Payload:
    """Records by topic, and what is right about them.

    `predictions` and `labels` have for each topic the paths that matter; `cannot` the words that must be
    reported where a person could not write a mapping either.
    """

    name: str
    topics: dict[str, list[LineRecord]] = field(default_factory=dict)
    predictions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cannot: Sequence[str] = ()

    def add(
        self,
        topic: str,
        record_ms: int,
        value: Any,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
    ) -> None:
        records = self.topics.setdefault(topic, [])
        content = raw if raw is not None else None if value is None else json.dumps(value).encode()
        records.append(
            LineRecord(
                len(records) + 1,
                content,
                topic,
                0,
                len(records),
                record_ms,
                0,
                None if key is None else key.encode(),
                tuple((name, text.encode()) for name, text in (headers or {}).items()),
            )
        )

    def sort(self) -> Payload:
        """Put each topic's records into the order of their times, as a log has them."""
        for topic, records in self.topics.items():
            records.sort(key=lambda record: record.timestamp)
            self.topics[topic] = [
                LineRecord(at + 1, r.value, topic, 0, at, r.timestamp, r.timestamp_type, r.key, r.headers)
                for at, r in enumerate(records)
            ]
        return self


def story(
    seed: int,
    count: int = 400,
    *,
    classes: Sequence[str] = ("legit", "fraud"),
    weights: Sequence[float] = (0.8, 0.2),
    right: float = 0.85,
    delay_ms: int = HOUR,
    users: int = 60,
) -> list[Item]:
    """Requests ten seconds apart, each labelled after a delay drawn around `delay_ms`."""
    chance = random.Random(seed)
    items: list[Item] = []
    for number in range(count):
        true = chance.choices(classes, weights)[0]
        others = [name for name in classes if name != true]
        predicted = true if chance.random() < right else chance.choice(others)
        made_ms = START_MS + number * 10_000 + chance.randrange(9_000)
        items.append(
            Item(
                number,
                made_ms,
                made_ms + round(delay_ms * chance.uniform(0.2, 1.8)),
                predicted,
                true,
                round(chance.uniform(0.5, 1.0), 4),
                f"u{chance.randrange(users):04d}",
                str(uuid.UUID(int=chance.getrandbits(128), version=4)),
                round(chance.lognormvariate(3, 1), 2),
                chance.choice(["DE", "FR", "US", "BR"]),
            )
        )
    return items


def iso(stamp_ms: int) -> str:
    """ISO 8601 with milliseconds, in UTC."""
    return datetime.fromtimestamp(stamp_ms / 1_000, UTC).isoformat(timespec="milliseconds")


Maker = Callable[[], Payload]
