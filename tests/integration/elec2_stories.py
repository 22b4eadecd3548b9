"""Elec2's predictions and labels as records of topics: delayed, shuffled, repeated, missing, contradictory.

Every id has one story, so that what a join must make of it depends on the order of its records alone:
whatever comes too late comes hours too late.
"""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

GOLDEN = Path(__file__).parents[1] / "golden" / "elec2_three_models.csv.gz"
MODELS = ("nb@5", "ht@5", "levbag@8")
PARTITIONS = 4

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
HORIZON = HOUR
LONGEST_DELAY = 30 * MINUTE
TOO_LATE = 6 * HOUR
DEDUP_ENTRIES = 24 * HOUR

SHARES = {
    "never": 0.03,
    "label twice": 0.05,
    "prediction twice": 0.05,
    "other prediction": 0.005,
    "other label": 0.005,
    "label first": 0.01,
    "label per model": 0.05,
    "withdrawn": 0.002,
    "too late": 0.002,
    "negative delay": 0.001,
    "orphan": 0.001,
    "broken": 0.002,
}
BROKEN = {
    "invalid_json": b"{broken",
    "schema_registry_framing": b"\x00\x00\x00\x00\x07abc",
    "missing_label": b'{"timestamp": 1}',
    "invalid_class": b'{"label": "a\\u0000b"}',
}


class Item(NamedTuple):
    """One record, before it has an offset."""

    record_ms: int
    side: Literal["prediction", "label"]
    partition: int
    id: str | None
    value: bytes | None


@dataclass(frozen=True)
class Written:
    """What a record says, for whoever recomputes; `broken` is the reason it cannot be used for."""

    side: Literal["prediction", "label"]
    id: str
    model: str | None = None
    cls: str | None = None
    timestamp_ms: int = 0
    too_late: bool = False
    broken: str | None = None


Told = tuple[Item, Written]
Place = tuple[str, int, int]
"""Topic, partition, offset."""


def in_one_order(places: Mapping[Place, Told]) -> list[Place]:
    """By time, predictions before labels, partition and offset; one sort of everything.

    A record's time is the latest of its partition so far; what is broken has none of its own.
    """
    latest: dict[tuple[str, int], int] = {}
    keys: list[tuple[int, bool, Place]] = []
    for place, (item, written) in sorted(places.items()):
        known = latest.get(place[:2], -1)
        latest[place[:2]] = known if written.broken else max(known, item.record_ms)
        keys.append((latest[place[:2]], item.side == "label", place))
    return [place for *_, place in sorted(keys)]


def recording() -> list[dict[str, str]]:
    """Read the recording: its true class, and what each model predicted, row by row."""
    with gzip.open(GOLDEN, "rt") as file:
        return list(csv.DictReader(file))


def soon(chance: random.Random, record_ms: int) -> int:
    """Draw the time of a label: some minutes after its prediction."""
    return record_ms + min(round(chance.expovariate(1 / (2 * MINUTE))), LONGEST_DELAY)


class Teller:
    """Draws the stories; equal seeds tell equal ones.

    Parameters
    ----------
    start_ms
        When the first row is predicted.
    seed
        Of what is drawn.
    label_ms
        Draws the time of a label, given that of its prediction.
    """

    def __init__(
        self, start_ms: int, seed: int = 1, label_ms: Callable[[random.Random, int], int] = soon
    ) -> None:
        self.start_ms = start_ms
        self.rng = random.Random(seed)
        self._label_ms = label_ms

    def records(self) -> list[Told]:
        """All records by timestamp, and at the end one that lets everything pending expire."""
        rows = recording()
        times_ms = [self.start_ms + i * SECOND for i in range(len(rows))]
        told = self.told(rows, times_ms)
        end_ms = self.start_ms + len(rows) * SECOND + HORIZON + 5 * MINUTE
        told.append(self.nothing("end", end_ms, self.rng.randrange(PARTITIONS)))
        return told

    def told(self, rows: Sequence[dict[str, str]], times_ms: Sequence[int]) -> list[Told]:
        """Records of rows that are predicted at these times, by timestamp."""
        told: list[Told] = []
        kinds, weights = [*SHARES, "plain"], [*SHARES.values(), 1.0 - sum(SHARES.values())]
        for i, (row, record_ms) in enumerate(zip(rows, times_ms, strict=True)):
            (story,) = self.rng.choices(kinds, weights)
            if story == "too late" and i > len(rows) // 2:
                story = "plain"  # its label must not be the end of the stream
            told += self.story(story, f"e{i}", record_ms, row["y_true"], row)
        return sorted(told, key=lambda record: record[0].record_ms)

    def story(self, kind: str, name: str, record_ms: int, truth: str, row: dict[str, str]) -> Iterator[Told]:
        """Every record about one id."""
        label_ms = self._label_ms(self.rng, record_ms)
        again_ms = label_ms + self.rng.randrange(10 * MINUTE)
        other = "UP" if truth == "DOWN" else "DOWN"
        match kind:
            case "orphan":
                yield self.label(f"nobody-{name}", label_ms, truth)
            case "broken":
                reason = self.rng.choice(list(BROKEN))
                yield self.broken(name, "label", label_ms, reason)
            case "withdrawn":
                first = self.prediction(name, record_ms, MODELS[0], row[MODELS[0]])
                yield first
                yield self.nothing(name, record_ms + SECOND, first[0].partition)
                yield self.label(name, label_ms + MINUTE, truth)
            case _:
                yield from self.labelled(kind, name, record_ms, label_ms, truth, row)
        match kind:
            case "label twice":
                yield self.label(name, again_ms, truth)
            case "other label":
                yield self.label(name, again_ms, other)
            case "prediction twice":
                yield self.prediction(name, again_ms, MODELS[1], row[MODELS[1]])
            case "other prediction":
                predicted = "UP" if row[MODELS[2]] == "DOWN" else "DOWN"
                yield self.prediction(name, again_ms, MODELS[2], predicted)

    def labelled(
        self, kind: str, name: str, record_ms: int, label_ms: int, truth: str, row: dict[str, str]
    ) -> Iterator[Told]:
        """Predictions of all models, and their label in whatever way it comes."""
        for model in MODELS:
            yield self.prediction(name, record_ms, model, row[model])
        match kind:
            case "never":
                return
            case "label per model":
                for model in MODELS:
                    yield self.label(name, label_ms + self.rng.randrange(MINUTE), truth, model=model)
            case "label first":
                yield self.label(name, record_ms - self.rng.randrange(LONGEST_DELAY), truth)
            case "too late":
                yield self.label(name, record_ms + TOO_LATE, truth, too_late=True)
            case "negative delay":
                yield self.label(name, label_ms, truth, own_ms=record_ms - 5 * SECOND)
            case _:
                yield self.label(name, label_ms, truth)

    def prediction(self, name: str, record_ms: int, model: str, predicted: str) -> Told:
        value = json.dumps({"model": model, "prediction": predicted, "timestamp": record_ms}).encode()
        item = Item(record_ms, "prediction", self.rng.randrange(PARTITIONS), name, value)
        return item, Written("prediction", name, model, predicted, record_ms)

    def label(
        self,
        name: str,
        record_ms: int,
        truth: str,
        *,
        model: str | None = None,
        own_ms: int | None = None,
        too_late: bool = False,
    ) -> Told:
        own_ms = record_ms if own_ms is None else own_ms
        document = {"label": truth, "timestamp": own_ms} | ({"model": model} if model else {})
        item = Item(record_ms, "label", self.rng.randrange(PARTITIONS), name, json.dumps(document).encode())
        return item, Written("label", name, model, truth, own_ms, too_late)

    def nothing(self, name: str, record_ms: int, partition: int) -> Told:
        """A null value: it withdraws what is pending, and moves the clock, as what is broken does not."""
        return Item(record_ms, "prediction", partition, name, None), Written("prediction", name)

    def broken(self, name: str, side: Literal["prediction", "label"], record_ms: int, reason: str) -> Told:
        item = Item(record_ms, side, self.rng.randrange(PARTITIONS), name, BROKEN[reason])
        return item, Written(side, name, broken=reason)
